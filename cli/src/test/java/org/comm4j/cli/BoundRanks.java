package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import org.comm4j.core.session.Processors;

/// Two ranks that are bound to cores, and say which processors they have.
final class BoundRanks {
  private static final String SAYS = "Cpus_allowed_list:";

  private BoundRanks() {}

  static void assumeTwoCores() {
    assumeTrue(canBind(), "two ranks can't be bound on a host with one core");
  }

  private static boolean canBind() {
    try {
      var _ = Binding.of(Binding.To.CORE, 2);
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  static String[] run(String backend) {
    return new String[] {
      "run",
      "-n",
      "2",
      "--bind-to",
      "core",
      "--backend",
      backend,
      "--",
      "grep",
      SAYS,
      "/proc/self/status"
    };
  }

  static void assertHaveTheirCores(Commands.Done done) {
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    for (int rank = 0; rank < 2; rank++) {
      String label = "[" + rank + "] " + SAYS;
      List<String> lines = done.out().lines().filter(line -> line.startsWith(label)).toList();
      assertThat(lines).as(done.out()).hasSize(1);
      assertThat(Processors.parse(lines.getFirst().substring(label.length()).strip()))
          .isEqualTo(Processors.parse(place(rank)));
    }
  }

  private static String place(int rank) {
    return Binding.of(Binding.To.CORE, 2).command(rank, List.of()).getLast();
  }
}
