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
  private static final String DRIVER = "driver";

  private final Path root;
  private final OwnFolder folder;
  private final Path driver;

  private DriverFolder(Path root, OwnFolder folder, Path driver) {
    this.root = root;
    this.folder = folder;
    this.driver = driver;
  }

  /// Where the folders of drivers go that serve one rank each, which nobody else looks for there.
  ///
  /// @param here how many ranks of this host have one
  static Path rootOfOwn(int here) {
    return OwnFolder.root((long) here * Dimensions.DRIVER_BYTES);
  }

  /// @throws TransportFailedException if that is not possible, or there is no space for a driver:
  ///   it would fail in the middle of its start, with an error of the JVM's
  static DriverFolder create(Path root) {
    sweep(root);
    long free = OwnFolder.usableBytes(root);
    if (free < Dimensions.DRIVER_BYTES) {
      throw new TransportFailedException(
          "the media driver does not start: it needs %d bytes in %s, of which %d are free; free some, or make it larger (with Docker --shm-size)"
              .formatted(Dimensions.DRIVER_BYTES, root, free),
          null);
    }
    try {
      OwnFolder folder = OwnFolder.create(root, PREFIX);
      return new DriverFolder(root, folder, folder.path().toRealPath().resolve(DRIVER));
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
  /// @param root of this rank, which the other one has too
  /// @param said where that is, perhaps behind links, which may lead elsewhere at any time
  /// @param name of the driver, for messages
  /// @return where it is, without links
  static Path check(Path root, Path said, String name) {
    Path folder = said.getParent();
    if (folder != null && said.endsWith(DRIVER)) {
      try {
        Path real = folder.toRealPath();
        if (root.toRealPath().equals(real.getParent())
            && real.getFileName().toString().startsWith(PREFIX)
            && OwnFolder.isOfThisUser(real)) {
          return real.resolve(DRIVER);
        }
      } catch (IOException _) {
        // there is no such folder, or not for this user
      }
    }
    throw new TransportFailedException(
        "%s is said to be in %s (expected: in a folder %s… of %s that has mode rwx------ and is of this user); if a stranger takes part in the session set COMM_SECRET_FILE on all ranks, or set COMM_AERON_DRIVER to embedded"
            .formatted(name, said, PREFIX, root),
        null);
  }

  /// Where the driver's files go, without links; does not exist yet.
  Path driver() {
    return driver;
  }

  @Override
  public void close() {
    folder.close();
    sweep(root); // peers may have been killed
  }

  /// Removes what killed processes have left, wherever that may be.
  static void sweep() {
    sweep(OwnFolder.root());
    sweep(OwnFolder.temporary());
  }

  /// Removes what killed processes have left.
  static void sweep(Path root) {
    OwnFolder.sweep(root, PREFIX);
  }
}
