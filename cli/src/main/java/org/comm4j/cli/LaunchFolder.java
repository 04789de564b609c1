package org.comm4j.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.Stream;

/// A folder for the files of a launch, which only its user may enter. It is removed when it is
/// closed, or else when this JVM ends, by a signal too.
final class LaunchFolder implements AutoCloseable {
  private static final String PREFIX = "comm-cli-";
  private static final int TRIES = 10;

  /// Those of this JVM, which has one end for all of them.
  private static final Set<Path> OWN = new HashSet<>(); // and it guards what is static here

  private static boolean isWatched;
  private static boolean isEnding;

  private final Path path;

  private LaunchFolder(Path path) {
    this.path = path;
  }

  /// Makes one among the temporary files.
  ///
  /// @throws IOException if that is not possible, or the JVM is ending
  static LaunchFolder create() throws IOException {
    synchronized (OWN) { // or a signal could come between making a folder and noting it
      if (isEnding) {
        throw new IOException("comm-cli is being ended");
      }
      if (!isWatched) {
        Runtime.getRuntime()
            .addShutdownHook(new Thread(LaunchFolder::removeAll, "remove folders of launches"));
        isWatched = true;
      }
      Path path = Files.createTempDirectory(PREFIX);
      OWN.add(path);
      return new LaunchFolder(path);
    }
  }

  Path path() {
    return path;
  }

  /// A file or folder in it.
  Path resolve(String name) {
    return path.resolve(name);
  }

  @Override
  public void close() {
    synchronized (OWN) {
      remove(path);
      OWN.remove(path);
    }
  }

  /// Removes all of this JVM, which is ending: for who halts it, which runs no shutdown hooks.
  static void removeAll() {
    synchronized (OWN) {
      isEnding = true;
      for (int i = 0; i < TRIES && OWN.stream().anyMatch(Files::exists); i++) {
        OWN.forEach(LaunchFolder::remove); // again, if somebody was just writing there
      }
    }
  }

  private static void remove(Path folder) {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(file);
      }
    } catch (IOException | UncheckedIOException _) {
      // it was deleted before, or the system does it
    }
  }
}
