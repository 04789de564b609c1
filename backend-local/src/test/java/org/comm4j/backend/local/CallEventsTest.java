package org.comm4j.backend.local;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

/// Ranks in a Java that can't record their calls; core and cli test one that can.
class CallEventsTest {
  @Test
  void run_javaWithoutFlightRecorder_worksAndSaysNothing() throws Exception {
    Process child =
        ChildJvm.start(
                List.of("--limit-modules=jdk.management"),
                AllocatedBytes.class,
                "local",
                RepeatedCall.BARRIER.name(),
                "1000000")
            .redirectErrorStream(true)
            .start();
    List<String> output;
    try (var reader = child.inputReader()) {
      output = reader.lines().toList();
    }
    assertThat(child.waitFor(120, SECONDS)).isTrue();
    assertThat(child.exitValue()).as("%s", output).isZero();
    assertThat(output).as("what it prints: a number").hasSize(1);
  }
}
