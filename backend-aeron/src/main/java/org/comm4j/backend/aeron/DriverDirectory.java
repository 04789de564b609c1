package org.comm4j.backend.aeron;

import io.aeron.CncFileDescriptor;
import io.aeron.CommonContext;
import io.aeron.exceptions.AeronException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Availability;
import org.comm4j.core.session.LocalHost;

/// The directory of a media driver that somebody else runs. It is looked at, used, and otherwise
/// left alone.
final class DriverDirectory {
  private static final Set<PosixFilePermission> WRITE_OF_OTHERS =
      EnumSet.of(PosixFilePermission.GROUP_WRITE, PosixFilePermission.OTHERS_WRITE);
  private static final String START =
      "start an Aeron media driver with that aeron.dir first, or set COMM_AERON_DRIVER to shared or embedded";

  private DriverDirectory() {}

  /// {@return the one that is asked for, else where drivers of this user are unless told otherwise}
  static Path of(Options options) {
    return Path.of(
            options.directory().isEmpty()
                ? CommonContext.getAeronDirectoryName()
                : options.directory())
        .toAbsolutePath();
  }

  /// Makes sure that a driver of this user lives there, and one that we can talk to.
  ///
  /// @param silenceNs how long a driver that lives may be silent
  /// @throws TransportFailedException if not
  static void check(Path directory, long silenceNs) {
    if (look(directory, silenceNs) instanceof Availability.Unavailable no) {
      throw new TransportFailedException(no.reason() + "; " + no.remedy(), null);
    }
  }

  /// {@return whether a driver of this user lives there, and one that we can talk to}
  ///
  /// @param silenceNs how long a driver that lives may be silent
  static Availability look(Path directory, long silenceNs) {
    try {
      Availability owner = lookAtOwner(directory);
      return owner instanceof Availability.Unavailable ? owner : lookAtDriver(directory, silenceNs);
    } catch (IOException | UnsupportedOperationException e) {
      return refused(directory, "can't be read: " + e, "make it readable");
    }
  }

  private static Availability lookAtOwner(Path directory) throws IOException {
    if (!Files.isDirectory(directory, LinkOption.NOFOLLOW_LINKS)) {
      return refused(directory, "is not a directory", START);
    }
    int self = LocalHost.uid();
    int owner = (Integer) Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS);
    if (owner != self) {
      return refused(
          directory,
          "belongs to user %d, this process to user %d".formatted(owner, self),
          "run the media driver as the user of the ranks");
    }
    Set<PosixFilePermission> mode =
        Files.getPosixFilePermissions(directory, LinkOption.NOFOLLOW_LINKS);
    return mode.stream().anyMatch(WRITE_OF_OTHERS::contains)
        ? refused(
            directory,
            "has mode %s: others could change what ranks read"
                .formatted(PosixFilePermissions.toString(mode)),
            "start the media driver with a umask of 077")
        : Availability.ready();
  }

  private static Availability lookAtDriver(Path directory, long silenceNs) throws IOException {
    Path control = directory.resolve(CncFileDescriptor.CNC_FILE);
    if (!Files.isRegularFile(control, LinkOption.NOFOLLOW_LINKS)) {
      return refused(directory, "has no " + CncFileDescriptor.CNC_FILE, START);
    }
    try {
      CncFileDescriptor.checkVersion(version(control));
      long silenceMs = TimeUnit.NANOSECONDS.toMillis(silenceNs);
      return CommonContext.isDriverActive(directory.toFile(), silenceMs, _ -> {})
          ? Availability.ready()
          : refused(
              directory,
              "has no live media driver: none has given a sign of life for %d ms"
                  .formatted(silenceMs),
              START);
    } catch (AeronException e) {
      return refused(
          directory,
          "belongs to another version of Aeron: " + e.getMessage(),
          "run a media driver of the version that comm4j uses, 1.51");
    }
  }

  private static int version(Path control) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.nativeOrder());
    try (FileChannel channel = FileChannel.open(control)) {
      channel.read(bytes, CncFileDescriptor.cncVersionOffset(0));
    }
    return bytes.getInt(0);
  }

  private static Availability refused(Path directory, String what, String remedy) {
    return Availability.unavailable(
        "the media driver's directory %s %s".formatted(directory, what), remedy);
  }
}
