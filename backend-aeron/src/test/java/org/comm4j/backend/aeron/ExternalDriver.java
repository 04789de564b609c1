package org.comm4j.backend.aeron;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.function.UnaryOperator;
import org.comm4j.api.CommConfig;
import org.comm4j.core.session.OwnFolder;

/// A media driver as an operator might run it, with most of Aeron's own settings.
record ExternalDriver(Path directory, MediaDriver driver) implements AutoCloseable {
  static ExternalDriver start() {
    return start(UnaryOperator.identity());
  }

  /// @param changes to the driver's settings
  static ExternalDriver start(UnaryOperator<MediaDriver.Context> changes) {
    try {
      Path directory =
          Files.createTempDirectory(
              OwnFolder.root(),
              "external-driver-",
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      return new ExternalDriver(
          directory,
          MediaDriver.launch(
              changes.apply(
                  new MediaDriver.Context()
                      .aeronDirectoryName(directory.toString())
                      .warnIfDirectoryExists(false)
                      .threadingMode(ThreadingMode.SHARED)
                      .dirDeleteOnShutdown(true))));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Of ranks that use it.
  CommConfig config(CommConfig base) {
    return config(base, directory);
  }

  static CommConfig config(CommConfig base, Path directory) {
    return base.toBuilder()
        .option("COMM_AERON_DRIVER", "external")
        .option("COMM_AERON_DIRECTORY", directory.toString())
        .build();
  }

  @Override
  public void close() {
    driver.close();
  }
}
