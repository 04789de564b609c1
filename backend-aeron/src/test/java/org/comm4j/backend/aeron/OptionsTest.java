package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.comm4j.api.CommConfig;
import org.comm4j.core.session.PortRange;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OptionsTest {
  static final Options NONE =
      new Options("", 0, 0, PortRange.ANY, true, Options.DriverKind.EMBEDDED, "", true, false);

  static Options of(Map<String, String> environment) {
    return Options.of(CommConfig.fromEnvironment(environment));
  }

  private static Options of(String variable, String value) {
    return of(Map.of(variable, value));
  }

  @Test
  void of_nothingGiven_leavesAllOpen() {
    assertThat(of(Map.of())).isEqualTo(NONE);
  }

  @Test
  void of_values_areTaken() {
    assertThat(of("COMM_AERON_MTU", "1408").mtu()).isEqualTo(1408);
    assertThat(of("COMM_AERON_TERM", "1MiB").termBytes()).isEqualTo(1 << 20);
    assertThat(of("COMM_AERON_PORTS", "40000-40009").ports())
        .isEqualTo(new PortRange(40_000, 40_009));
    assertThat(of("COMM_AERON_DRIVER", "shared").driver()).isEqualTo(Options.DriverKind.SHARED);
    assertThat(of("COMM_AERON_IPC", "false").ipc()).isFalse();
    assertThat(of("COMM_AERON_SHARED", "0").sharesMemory()).isFalse();
    assertThat(of("COMM_AERON_SHARED", "1").sharesMemory()).isTrue();
    assertThat(of("COMM_AERON_INTEGRITY", "mac").isSealed()).isTrue();
    assertThat(of("COMM_AERON_INTEGRITY", "none").isSealed()).isFalse();
  }

  @Test
  void of_directoryOfAnExternalDriver_isTaken() {
    Options options =
        of(Map.of("COMM_AERON_DRIVER", "external", "COMM_AERON_DIRECTORY", "/a/driver"));
    assertThat(DriverDirectory.of(options)).hasToString("/a/driver");
  }

  @ParameterizedTest
  @CsvSource({
    "COMM_AERON_MTU, 1500, a multiple of 32",
    "COMM_AERON_MTU, 65536, 65504",
    "COMM_AERON_MTU, 32, from 1KiB",
    "COMM_AERON_MTU, large, a multiple of 32",
    "COMM_AERON_TERM, 100000, a power of two",
    "COMM_AERON_TERM, 32KiB, from 64KiB",
    "COMM_AERON_TERM, 2GiB, to 1GiB",
    "COMM_AERON_PORTS, 40000, two ports",
    "COMM_AERON_PORTS, 40009-40000, two ports",
    "COMM_AERON_PORTS, 0-10, two ports",
    "COMM_AERON_PORTS, 65000-70000, two ports",
    "COMM_AERON_DRIVER, own, 'embedded, shared or external'",
    "COMM_AERON_IPC, auto, '1 or true, 0 or false'",
    "COMM_AERON_ADDRESS, 999.1.1.1, an IP address",
    "COMM_AERON_ADDRESS, fe80:, an IP address",
    "COMM_AERON_ADDRESS, 10.0.0.1:4000, an IP address",
    "COMM_AERON_INTEGRITY, true, mac or none",
    "COMM_AERON_DIRECTORY, /dev/shm/aeron-me, unless COMM_AERON_DRIVER is external"
  })
  void of_badValue_isRefusedByName(String variable, String value, String expected) {
    assertThatThrownBy(() -> of(variable, value))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(variable, "'" + value + "'", expected);
  }
}
