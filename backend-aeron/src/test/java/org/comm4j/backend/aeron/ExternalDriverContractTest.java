package org.comm4j.backend.aeron;

import java.util.Objects;
import org.comm4j.api.CommConfig;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/// The contract where all ranks use one media driver that was there before them, and all messages
/// go through its sockets.
class ExternalDriverContractTest extends AeronContract {
  private static @Nullable ExternalDriver driver;

  @BeforeAll
  static void start() {
    driver = ExternalDriver.start();
  }

  @AfterAll
  static void close() {
    Objects.requireNonNull(driver).close();
  }

  @Override
  protected CommConfig config() {
    return Objects.requireNonNull(driver).config(super.config()).toBuilder()
        .option("COMM_AERON_IPC", "false")
        .build();
  }

  @Override
  protected String wanted() {
    return ABOUT_DRIVERS;
  }
}
