package org.comm4j.cli;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Path;
import org.comm4j.core.session.OpenFiles;
import org.comm4j.core.session.OwnFolder;

/// Where the files of a launch are. What a killed one has left, the next launch removes.
final class LaunchFolder {
  private static final String PREFIX = "comm-cli-launch-";

  private LaunchFolder() {}

  /// Where memory is shared, on Linux.
  static Path sharedMemory() {
    return Path.of("/dev/shm");
  }

  private static Path temporary() {
    return Path.of(System.getProperty("java.io.tmpdir"));
  }

  /// Makes one among the temporary files.
  ///
  /// @return the caller closes it
  /// @throws IOException if that is not possible, or the JVM is ending
  static OwnFolder create() throws IOException {
    return create(temporary());
  }

  /// Makes one.
  ///
  /// @param root where
  static OwnFolder create(Path root) throws IOException {
    try {
      return OwnFolder.create(root, PREFIX);
    } catch (FileSystemException e) {
      throw new IOException(
          "no folder for the launch's files in %s: %s%s".formatted(root, e, remedy(e)), e);
    }
  }

  private static String remedy(FileSystemException e) {
    String files = OpenFiles.remedy(e);
    return files.isEmpty()
        ? "; let it be written to, or name another place with JDK_JAVA_OPTIONS=-Djava.io.tmpdir=FOLDER"
        : files;
  }

  /// Removes what killed processes have left.
  static void sweep() {
    sweep(sharedMemory());
    sweep(temporary());
  }

  /// @param root where
  static void sweep(Path root) {
    OwnFolder.sweep(root, PREFIX);
  }
}
