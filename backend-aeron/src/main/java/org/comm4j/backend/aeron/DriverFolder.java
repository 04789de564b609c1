package org.comm4j.backend.aeron;

import java.io.IOException;
import java.nio.file.Path;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.OpenFiles;
import org.comm4j.core.session.OwnFolder;

/// A folder of a media driver's own, which nobody else may enter. What a killed process has left,
/// the others remove when they end, or who started them ([AeronProvider#removeRemains]), or the
/// next one that begins.
final class DriverFolder implements AutoCloseable {
  /// Against too little space.
  static final String REMEDY =
      "free some, make it larger (with Docker --shm-size) or lower COMM_AERON_TERM";

  private static final String PREFIX = "comm4j-aeron-";

  private final Path root;
  private final OwnFolder folder;

  private DriverFolder(Path root, OwnFolder folder) {
    this.root = root;
    this.folder = folder;
  }

  static DriverFolder create(Path root) {
    sweep(root);
    try {
      return new DriverFolder(root, OwnFolder.create(root, PREFIX));
    } catch (IOException e) {
      String files = OpenFiles.remedy(e);
      throw new TransportFailedException(
          "no folder for the media driver in %s: %s%s"
              .formatted(root, e, files.isEmpty() ? "; " + REMEDY : files),
          e);
    }
  }

  /// Makes sure that a driver of another rank is where [#create] puts it: what the session says of
  /// it may be somebody else's word.
  ///
  /// @param name of the driver, for messages
  static void check(Path driver, String name) {
    Path folder = driver.getParent();
    if (folder == null || !OwnFolder.isOfThisUser(folder)) {
      throw new TransportFailedException(
          "%s is said to be in %s (expected: in a folder of mode rwx------ of this user); if a stranger takes part in the session set COMM_SECRET_FILE on all ranks, or set COMM_AERON_DRIVER to embedded"
              .formatted(name, driver),
          null);
    }
  }

  /// Where the driver's files go; does not exist yet.
  Path driver() {
    return folder.path().resolve("driver");
  }

  @Override
  public void close() {
    folder.close();
    sweep(root); // peers may have been killed
  }

  /// Removes what killed processes have left.
  static void sweep(Path root) {
    OwnFolder.sweep(root, PREFIX);
  }
}
