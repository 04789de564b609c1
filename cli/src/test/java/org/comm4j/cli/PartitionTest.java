package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What becomes of ranks on two hosts (network namespaces) when the network between these is cut
/// and later heals. Ranks 0 and 1 are on the first, ranks 2 and 3 on the second. No launcher has
/// started them, so rank 0 hosts the session: its side goes on, and the other one is out for good.
@Timeout(120)
final class PartitionTest {
  private static final int RANKS = 4;
  private static final int FIRST = 0;
  private static final int SECOND = 1;

  /// With less a rank that starts on a busy machine may be taken for dead: it shares few cores with
  /// the seven others of two tests.
  private static final Duration LIVENESS = Duration.ofSeconds(5);

  private static final Duration PROMISED = LIVENESS.multipliedBy(2);
  private static final Duration CUT = LIVENESS.multipliedBy(3);

  private static final Pattern SILENT_FOR = Pattern.compile("silent for ([0-9.]+) s");

  private static final String SILENT = " failed: (it has given up the session's host: )?silent for";

  /// What ranks 0 and 1 get: ranks of the other host, as many as are known to be gone by then.
  private static final Pattern LOST_SECOND =
      Pattern.compile("PeerFailedException: (rank [23]|ranks (2, 3|3, 2))" + SILENT + ".*");

  /// What ranks 2 and 3 get where nothing comes from the first host.
  private static final Pattern LOST_FIRST =
      Pattern.compile("PeerFailedException: rank 0" + SILENT + ".*");

  /// What they get where only what they send is lost: they may still hear that they are given up.
  /// But what the host of the session sends is rare where nothing confirms it; then that is silent.
  private static final Pattern OUT =
      Pattern.compile(
          LOST_FIRST
              + "|"
              + LOST_SECOND
              + "|EvictedException: the others have given up rank [23]: silent for.*");

  @TempDir private Path folder;
  private final List<AutoCloseable> opened = new ArrayList<>();
  private final List<Launches> ranks = new ArrayList<>();

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable each : opened.reversed()) {
      each.close();
    }
  }

  /// Also ranks of one host talk over UDP, and with drivers that have got to know all four.
  @Test
  @Execution(ExecutionMode.CONCURRENT) // much of it waits for ranks to be given up
  void cut_bothWays_eachSideNamesTheOtherAndOnlyTheHostsGoesOn() throws Exception {
    NetworkNamespaces hosts = hosts();
    List<Path> memories = startRanks(hosts, false);
    long cutNs = System.nanoTime();
    hosts.cutOff(SECOND);
    assertAllFail(LOST_FIRST);
    Duration left = CUT.minusNanos(System.nanoTime() - cutNs);
    Thread.sleep(left.isPositive() ? left : Duration.ZERO); // so long; nobody waits for its end
    hosts.reconnect(SECOND);
    assertFirstGoesOnAndSecondEnds();
    assertThat(memories).allSatisfy(memory -> assertThat(memory).doesNotExist());
  }

  @ParameterizedTest
  @ValueSource(ints = {FIRST, SECOND})
  @Execution(ExecutionMode.CONCURRENT)
  void cut_oneWay_allFailAlikeAndOnlyTheSideOfTheHostGoesOn(int from) throws Exception {
    NetworkNamespaces hosts = hosts();
    List<Path> memories = startRanks(hosts, true);
    hosts.loseFrom(from, 1 - from);
    assertAllFail(from == FIRST ? LOST_FIRST : OUT);
    hosts.deliverFrom(from, 1 - from);
    assertFirstGoesOnAndSecondEnds();
    assertThat(memories).allSatisfy(memory -> assertThat(memory).doesNotExist());
  }

  private NetworkNamespaces hosts() throws Exception {
    assumeTrue(
        NetworkNamespaces.canBeMade(),
        "network namespaces need root and the command ip (iproute2)");
    var hosts = NetworkNamespaces.make(2);
    opened.add(hosts);
    return hosts;
  }

  /// Starts all ranks and waits until they are in the middle of it.
  ///
  /// @param shared whether ranks of one host share memory
  /// @return where the drivers have theirs
  private List<Path> startRanks(NetworkNamespaces hosts, boolean shared) throws Exception {
    Path secret = Files.writeString(folder.resolve("secret"), "0123456789abcdef0123456789abcdef\n");
    Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("rw-------"));
    for (int rank = 0; rank < RANKS; rank++) {
      Map<String, String> environment =
          Map.of(
              "COMM_RANK",
              Integer.toString(rank),
              "COMM_WORLD_SIZE",
              Integer.toString(RANKS),
              "COMM_MASTER_ADDR",
              hosts.address(FIRST),
              "COMM_SECRET_FILE",
              secret.toString(),
              "COMM_BACKEND",
              "aeron",
              "COMM_LIVENESS",
              LIVENESS.toString(),
              "COMM_AERON_SHARED",
              Boolean.toString(shared));
      List<String> by = hosts.in(rank < 2 ? FIRST : SECOND);
      var launch = Launches.startRank(by, environment, PartitionedRanks.class);
      opened.add(launch);
      ranks.add(launch);
    }
    List<Path> memories = new ArrayList<>();
    for (int rank = 0; rank < RANKS; rank++) {
      memories.add(Path.of(said(rank, "in ")));
    }
    return memories;
  }

  /// What a rank says behind some words.
  private String said(int rank, String words) throws InterruptedException {
    String start = "rank " + rank + " " + words;
    return ranks.get(rank).line(line -> line.startsWith(start)).substring(start.length());
  }

  /// All hear of it in time, and those of the second host that they can't go on.
  ///
  /// @param second what these may get
  private void assertAllFail(Pattern second) throws InterruptedException {
    for (int rank = 0; rank < RANKS; rank++) {
      assertTold(said(rank, "got "), rank < 2 ? LOST_SECOND : second);
    }
    for (int rank = 2; rank < RANKS; rank++) {
      assertTold(said(rank, "is out: "), second);
    }
  }

  /// How long somebody was silent by then is what counts, by the clock of who has noticed it.
  private static void assertTold(String what, Pattern expected) {
    assertThat(what).matches(expected);
    Matcher silent = SILENT_FOR.matcher(what);
    assertThat(silent.find()).isTrue();
    long silentMs = Math.round(Double.parseDouble(silent.group(1)) * 1000);
    assertThat(Duration.ofMillis(silentMs)).as(what).isLessThan(PROMISED);
  }

  /// With the network whole again: what the second host's drivers send while the first one's ranks
  /// go on disturbs nobody, and nothing brings its ranks back.
  private void assertFirstGoesOnAndSecondEnds() throws Exception {
    for (Launches rank : ranks.subList(0, 2)) {
      rank.endInput();
    }
    for (int rank = 0; rank < 2; rank++) {
      assertThat(said(rank, "goes on as ")).isEqualTo(rank + " of 2");
      assertEnds(rank);
    }
    for (Launches rank : ranks.subList(2, RANKS)) {
      rank.endInput();
    }
    for (int rank = 2; rank < RANKS; rank++) {
      assertEnds(rank);
      assertThat(said(rank, "still gets ")).isEqualTo(said(rank, "got "));
      assertThat(said(rank, "is still out: ")).isEqualTo(said(rank, "is out: "));
    }
  }

  private void assertEnds(int rank) throws InterruptedException {
    Commands.Done done = ranks.get(rank).await();
    assertThat(done.code()).as(done.out() + done.err()).isEqualTo(ExitCode.FINE);
  }
}
