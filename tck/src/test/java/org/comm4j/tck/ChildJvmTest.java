package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ChildJvmTest {
  private static final Pattern ENDLESS = Pattern.compile("does not end: child (\\d+)\\s*");

  @Test
  void run_ends_givesExitCodeAndOutput() throws Exception {
    List<String> command = List.of("sh", "-c", "echo one; echo two >&2; exit 3");
    assertThat(ChildJvm.run(command)).isEqualTo("3: one\ntwo\n");
  }

  /// Its child holds the output open, as it would for ever.
  @Test
  void run_neverEnds_givesTheOutputSoFarAndKillsAllOfIt() throws Exception {
    List<String> command = List.of("sh", "-c", "sleep 600 & echo child $!; wait");
    var output = ENDLESS.matcher(ChildJvm.run(command, Duration.ofSeconds(3)));
    assertThat(output.matches()).isTrue();
    long child = Long.parseLong(output.group(1));
    Expect.eventually("F10", "the child is gone", () -> !runs(child));
  }

  /// Whether it runs a program, as one that nobody has taken notice of yet does not.
  private static boolean runs(long pid) {
    return ProcessHandle.of(pid).flatMap(each -> each.info().command()).isPresent();
  }
}
