package org.comm4j.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.Stream;

/// A folder for the files of a launch, which only its user may enter. It is removed when it is
/// closed, or else when this JVM ends, by a signal too. A lock in it says that its process lives:
/// what a killed one has left, the next launch removes.
///
/// A POSIX lock is gone when its process closes *any* channel of the file, so no process probes a
/// lock of its own. And who probes another's holds it for that moment, so a lock gets its name when
/// its process has it.
final class LaunchFolder implements AutoCloseable {
  private static final String PREFIX = "comm-cli-launch-";
  private static final String LOCK = "lock";
  private static final String BEGINNING = "lock.new";
  private static final Set<PosixFilePermission> OWNER_ONLY =
      PosixFilePermissions.fromString("rwx------");

  /// How long a process may take from making its folder to having the lock.
  private static final Duration STARTING = Duration.ofMinutes(1);

  private static final int TRIES = 10;

  /// Those of this JVM, which has one end for all of them.
  private static final Set<Path> OWN = new HashSet<>(); // and it guards what is static here

  private static boolean isWatched;
  private static boolean isEnding;

  private final Path path;
  private final FileChannel lock;

  private LaunchFolder(Path path, FileChannel lock) {
    this.path = path;
    this.lock = lock;
  }

  /// Where memory is shared, on Linux.
  static Path sharedMemory() {
    return Path.of("/dev/shm");
  }

  /// Makes one among the temporary files.
  ///
  /// @throws IOException if that is not possible, or the JVM is ending
  static LaunchFolder create() throws IOException {
    return create(temporary());
  }

  private static Path temporary() {
    return Path.of(System.getProperty("java.io.tmpdir"));
  }

  /// Makes one.
  ///
  /// @param root where
  static LaunchFolder create(Path root) throws IOException {
    synchronized (OWN) { // or a signal could come between making a folder and noting it
      watch();
      Path path = Files.createTempDirectory(root, PREFIX);
      OWN.add(path);
      try {
        return new LaunchFolder(path, lock(path));
      } catch (IOException e) {
        remove(path);
        OWN.remove(path);
        throw e;
      }
    }
  }

  private static void watch() throws IOException {
    try {
      if (!isWatched) {
        Runtime.getRuntime()
            .addShutdownHook(new Thread(LaunchFolder::removeAll, "remove folders of launches"));
        isWatched = true;
      }
    } catch (IllegalStateException e) {
      isEnding = true;
    }
    if (isEnding) {
      throw new IOException("this JVM is ending, and makes no folder any more");
    }
  }

  private static FileChannel lock(Path folder) throws IOException {
    Path beginning = folder.resolve(BEGINNING);
    FileChannel channel =
        FileChannel.open(beginning, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    try {
      var _ = tryLock(channel); // without locks in this file system nobody can probe it either
      Files.move(beginning, folder.resolve(LOCK), StandardCopyOption.ATOMIC_MOVE);
      return channel;
    } catch (IOException e) {
      channel.close();
      throw e;
    }
  }

  private static boolean tryLock(FileChannel channel) {
    try {
      return channel.tryLock() != null;
    } catch (IOException | OverlappingFileLockException e) {
      return false;
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
    try {
      lock.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Removes what killed processes have left.
  static void sweep() {
    sweep(sharedMemory());
    sweep(temporary());
  }

  /// @param root where
  static void sweep(Path root) {
    synchronized (OWN) {
      try (DirectoryStream<Path> folders = Files.newDirectoryStream(root, PREFIX + "*")) {
        for (Path each : folders) {
          if (!OWN.contains(each) && isOfThisUser(each) && isAbandoned(each)) {
            remove(each);
          }
        }
      } catch (IOException | DirectoryIteratorException _) {
        // whoever may look there will remove it
      }
    }
  }

  /// Whether it is a folder that nobody else can have put anything into.
  private static boolean isOfThisUser(Path folder) {
    try {
      Object self = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
      Object owner = Files.getAttribute(folder, "unix:uid", LinkOption.NOFOLLOW_LINKS);
      return owner.equals(self)
          && Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
          && Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS).equals(OWNER_ONLY);
    } catch (IOException | UnsupportedOperationException e) {
      return false;
    }
  }

  private static boolean isAbandoned(Path folder) {
    Path file = folder.resolve(LOCK);
    try {
      if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
        Instant made = Files.getLastModifiedTime(folder).toInstant();
        return made.isBefore(Instant.now().minus(STARTING));
      }
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
        return tryLock(channel);
      }
    } catch (IOException e) {
      return false; // somebody removes it at the same time
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
