package org.comm4j.cli;

import java.io.IOException;
import java.nio.file.Path;
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
    return OwnFolder.create(root, PREFIX);
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
