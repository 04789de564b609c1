package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.comm4j.api.CommConfig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OptionsTest {
  private static Options of(String variable, String value) {
    return Options.of(CommConfig.fromEnvironment(Map.of(variable, value)));
  }

  @Test
  void of_nothingGiven_leavesAllOpen() {
    Options options = Options.of(CommConfig.fromEnvironment(Map.of()));
    assertThat(options).isEqualTo(new Options("", 0, 0, Options.Ports.ANY, true));
  }

  @Test
  void of_values_areTaken() {
    assertThat(of("COMM_AERON_MTU", "1408").mtu()).isEqualTo(1408);
    assertThat(of("COMM_AERON_TERM", "1MiB").termBytes()).isEqualTo(1 << 20);
    assertThat(of("COMM_AERON_PORTS", "40000-40009").ports())
        .isEqualTo(new Options.Ports(40_000, 40_009));
  }

  @ParameterizedTest
  @CsvSource({
    "COMM_AERON_MTU, 1500, a multiple of 32",
    "COMM_AERON_MTU, 65536, 65504",
    "COMM_AERON_MTU, 32, from 1024",
    "COMM_AERON_MTU, large, a multiple of 32",
    "COMM_AERON_TERM, 100000, a power of two",
    "COMM_AERON_TERM, 32KiB, from 64KiB",
    "COMM_AERON_TERM, 2GiB, to 1GiB",
    "COMM_AERON_PORTS, 40000, two ports",
    "COMM_AERON_PORTS, 40009-40000, two ports",
    "COMM_AERON_PORTS, 0-10, two ports",
    "COMM_AERON_PORTS, 65000-70000, two ports"
  })
  void of_badValue_isRefusedByName(String variable, String value, String expected) {
    assertThatThrownBy(() -> of(variable, value))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(variable, "'" + value + "'", expected);
  }
}
