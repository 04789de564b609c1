package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.comm4j.tck.ChildJvm;
import org.junit.jupiter.api.Test;

/// Ranks in a Java that can't record their calls; core and cli test one that can.
class CallEventsTest {
  @Test
  void run_javaWithoutFlightRecorder_worksAndSaysNothing() throws Exception {
    List<String> withoutRecorder = List.of("--limit-modules=jdk.management");
    List<String> command =
        ShmProcessTest.JVM.command(
            withoutRecorder, AllocatedBytes.class, "local", RepeatedCall.BARRIER.name(), "1000000");
    assertThat(ChildJvm.run(command)).matches("0: BARRIER [\\d.]+\\s*");
  }
}
