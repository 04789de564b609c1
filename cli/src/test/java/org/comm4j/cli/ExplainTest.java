package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonParser;
import java.util.Map;
import org.comm4j.core.schedule.CollectiveKind;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class ExplainTest {
  @ParameterizedTest
  @EnumSource(CollectiveKind.class)
  void explain_anyCollective_namesAlgorithmReasonAndSteps(CollectiveKind kind) {
    for (String windows : new String[] {"0", "64KiB"}) {
      var done =
          Commands.run(
              new Explain(), kind.label(), "-n", "5", "--count", "7", "--windows", windows);
      assertThat(done.err()).isEmpty();
      assertThat(done.code()).isEqualTo(ExitCode.FINE);
      assertThat(done.out()).contains("algorithm: ", "why:  ", "rank 4", "  round 0: ");
    }
  }

  @Test
  void explain_backendWithPlansOfOurs_showsThem() {
    var done =
        Commands.run(new Explain(), "allReduce", "-n", "5", "--count", "7", "--backend", "local");
    assertThat(done.err()).isEmpty();
    assertThat(done.out()).contains("algorithm: ", "rank 4");
  }

  /// Ready or not: no machine that tests this needs a GPU.
  @Test
  void explain_backendWithItsOwnAlgorithms_saysWhichAndWhy() {
    var done = Commands.run(new Explain(), "allReduce", "-n", "4", "--backend", "cuda");
    assertThat(done.err()).isEmpty();
    assertThat(done.out()).contains("two-stage on at most 108 blocks", "from sm_100 on one-stage");
  }

  @Test
  void explain_backendWithItsOwnAlgorithms_isReadByProgramsToo() {
    String[] line = {"allReduce", "-n", "4", "--backend", "cuda", "--format", "json"};
    assertThat(
            JsonParser.parseString(Commands.run(new Explain(), line).out())
                .getAsJsonObject()
                .get("way")
                .getAsString())
        .contains("two-stage on at most 108 blocks");
    line[line.length - 1] = "csv";
    assertThat(Commands.run(new Explain(), line).out().lines()).hasSize(2).first().isEqualTo("way");
  }

  /// Within hosts it shares memory only where there are several.
  @Test
  void explain_backendOfMessages_hasWindowsWhereItUsesThem() {
    String line = "allReduce -n 4 --backend aeron --limit 0";
    assertThat(Commands.run(new Explain(), line.split(" ", -1)).out())
        .contains("on 4 ranks, messages only");
    assertThat(Commands.run(new Explain(), (line + " --windows 64KiB").split(" ", -1)).out())
        .contains("windows of 64 KiB");
    assertThat(Commands.run(new Explain(), (line + " --ranks-per-host 2").split(" ", -1)).out())
        .contains("hosts of 2 ranks", "hierarchical");
    assertThat(Commands.run(new Explain(), line.replace("aeron", "shm").split(" ", -1)).out())
        .contains("windows of 1 MiB");
  }

  @Test
  void explain_backendOfTheEnvironment_countsUnlessAnotherIsGiven() {
    var aeron = new Explain(Map.of("COMM_BACKEND", "aeron"));
    assertThat(Commands.run(aeron, "allReduce", "-n", "4").out()).contains("messages only");
    var cuda = Map.of("COMM_BACKEND", "cuda");
    String[] line = {"allReduce", "-n", "4"};
    assertThat(Commands.run(new Explain(cuda), line).out()).contains("two-stage on at most");
    String[] other = {"allReduce", "-n", "4", "--backend", "shm"};
    assertThat(Commands.run(new Explain(cuda), other).out()).contains("windows of 1 MiB");
    String[] auto = {"allReduce", "-n", "4", "--backend", "auto"};
    assertThat(Commands.run(new Explain(cuda), auto).out()).contains("windows of 1 MiB");
  }

  @Test
  void explain_orderedByTheEnvironment_isTheLeftFold() {
    Map<String, String> ordered = Map.of("COMM_REDUCTION", "ordered");
    var done = Commands.run(new Explain(ordered), "allReduce", "-n", "4");
    assertThat(done.out()).contains("with sum, ordered, on 4 ranks", "the left fold over ranks");
    assertThat(Commands.run(new Explain(ordered), "broadcast", "-n", "4").code())
        .isEqualTo(ExitCode.FINE);
    assertThat(Commands.run(new Explain(Map.of()), "allReduce", "-n", "4").out())
        .contains("with sum on 4 ranks");
  }

  @Test
  void explain_manyRanks_isBoundedAndSaysWhatIsLeftOut() {
    var done =
        Commands.run(new Explain(), "all-reduce", "-n", "4096", "--windows", "0", "--limit", "9");
    assertThat(done.code()).isEqualTo(ExitCode.FINE);
    assertThat(done.out().lines().count()).isLessThan(40);
    assertThat(done.out()).contains("more rounds are left out; --rank shows one rank");
  }

  @ParameterizedTest
  @CsvSource({"sum, false", "avg, true"})
  void explain_finish_dividesAveragesOnly(String op, boolean isDivided) {
    var done = Commands.run(new Explain(), "reduce", "-n", "3", "--windows", "0", "--op", op);
    assertThat(done.out()).contains("finish output");
    assertThat(done.out().contains(" / 3")).isEqualTo(isDivided);
  }

  /// Where two ranks fold and round at once.
  @ParameterizedTest
  @CsvSource({"sum, false", "avg, true"})
  void explain_finishOfTwo_dividesAveragesOnly(String op, boolean isDivided) {
    var done = Commands.run(new Explain(), "reduce", "-n", "2", "--dtype", "bf16", "--op", op);
    assertThat(done.out()).contains("finish input");
    assertThat(done.out().contains(" / 2")).isEqualTo(isDivided);
    assertThat(done.out()).doesNotContain(" / 1");
  }

  @Test
  void explain_ring_costsWhatRingsCost() {
    var done =
        Commands.run(
            new Explain(),
            "allReduce",
            "-n",
            "4",
            "--bytes",
            "4KiB",
            "--windows",
            "0",
            "--algorithm",
            "ring",
            "--format",
            "json");
    var ring =
        JsonParser.parseString(done.out())
            .getAsJsonObject()
            .getAsJsonArray("algorithms")
            .get(0)
            .getAsJsonObject();
    assertThat(ring.get("algorithm").getAsString()).isEqualTo("ring");
    assertThat(ring.get("messages").getAsInt()).isEqualTo(2 * (4 - 1));
    assertThat(ring.get("sent_bytes").getAsInt()).isEqualTo(4096 / 4 * 2 * (4 - 1));
    assertThat(ring.get("latency").getAsInt()).isEqualTo(2 * (4 - 1));
  }

  @Test
  void explain_hostsOfSomeRanks_leadersSpeakWithEachOther() {
    var done = Commands.run(new Explain(), "allReduce", "-n", "4", "--ranks-per-host", "2");
    assertThat(done.out()).contains("hosts of 2 ranks", "hierarchical", "memory+messages");
    // ranks 1 and 3 lead nobody: they read and publish
    assertThat(done.out().lines().filter(line -> line.contains("send ")))
        .isNotEmpty()
        .noneMatch(line -> line.matches(".*(to|from) [13]\\b.*"));
  }

  @ParameterizedTest
  @CsvSource({
    "allReduc -n 2,'allReduc',allReduce",
    "allReduce -n 0,-n: 0,1..",
    "reduce -n 4 --root 4,--root: 4,0..3",
    "reduce -n 4 --rank 7,--rank: 7,0..3",
    "reduce -n 4 --ranks-per-host 0,--ranks-per-host: 0,1 or more",
    "reduce -n 4 --bytes 3,--bytes: 3,a multiple of 4",
    "reduce -n 4 --bytes 3KB,'3KB',3KiB",
    "reduce -n 4 --dtype f31,'f31',bf16",
    "broadcast -n 2 --op max,--op: max,'reduceScatterV, scan'",
    "barrier -n 2 --op sum,--op: sum,allReduce",
    "allReduce -n 4 --root 0,--root: 0,'for allReduce (expected: with one of broadcast, reduce, '",
    "barrier -n 2 --root 1,--root: 1,which have a root",
    "broadcast -n 2 --ordered,--ordered,'for broadcast (expected: with one of reduce, allReduce, '",
    "scan -n 4 --dtype bool,--op: sum,bit-xor",
    "scan -n 4 --algorithm rings,--algorithm: 'rings',chain",
    "scan -n 4 --count 4 --bytes 16,--count,mutually exclusive"
  })
  void explain_wrongUse_namesValueAndExpectation(String line, String value, String expected) {
    var done = Commands.run(new Explain(), line.split(" ", -1));
    assertThat(done.code()).isEqualTo(ExitCode.USAGE);
    assertThat(done.err()).contains(value).contains(expected);
  }
}
