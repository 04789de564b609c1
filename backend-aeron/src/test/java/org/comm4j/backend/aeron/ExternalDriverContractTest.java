package org.comm4j.backend.aeron;

import java.util.Objects;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/// `aeron` keeps the contract where all ranks use one media driver that was there before them, and
/// all messages go through its sockets.
class ExternalDriverContractTest extends CommunicatorContract {
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

  /// Messages go as with drivers of the ranks' own, which run the whole contract every time.
  @Override
  protected String wanted() {
    return Boolean.getBoolean("comm4j.full") ? ".*" : ".*(anyArguments|[FLO]\\d).*";
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return ThreadGroups.open(new AeronProvider(), size, config);
  }
}
