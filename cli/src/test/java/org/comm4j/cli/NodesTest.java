package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.comm4j.api.CommConfig;
import org.comm4j.api.JoinException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Launches on several hosts: their launchers run here, or in network namespaces of their own.
@Timeout(120)
final class NodesTest {
  /// Each rank says who it is, and what all of them sum up to.
  private static final String SUM =
      """
      float[] ranks = new float[100_000];
      java.util.Arrays.fill(ranks, comm.rank());
      comm.allReduce(ranks, org.comm4j.api.ReduceOp.SUM);
      IO.println("rank " + comm.rank() + " on " + comm.backend() + " node "
          + System.getenv("COMM_NODE_RANK") + " sum " + ranks[99_999]);
      """;

  @TempDir private Path folder;
  private final List<AutoCloseable> opened = new ArrayList<>();

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable each : opened.reversed()) {
      each.close();
    }
  }

  private static String freePlace() throws Exception {
    InetSocketAddress place = FreePlace.any();
    return place.getAddress().getHostAddress() + ":" + place.getPort();
  }

  private String program(String body) throws Exception {
    return Files.writeString(
            folder.resolve("Body.java"),
            """
            void main() throws Exception {
              try (var comm = org.comm4j.api.Communicators.open()) {
                %s
              }
            }
            """
                .formatted(body))
        .toString();
  }

  private Launches start(
      List<String> by,
      Map<String, String> environment,
      int nodes,
      String master,
      int ranks,
      String... options)
      throws Exception {
    List<String> arguments = new ArrayList<>(List.of("run", "--nnodes", Integer.toString(nodes)));
    arguments.addAll(List.of("--master", master, "-n", Integer.toString(ranks)));
    arguments.addAll(List.of(options));
    var launch = Launches.start(by, environment, arguments.toArray(String[]::new));
    opened.add(launch);
    return launch;
  }

  /// A launch of two.
  ///
  /// @param options more of them, then the program
  private Launches start(String master, int ranks, String... options) throws Exception {
    return start(List.of(), Map.of(), 2, master, ranks, options);
  }

  @Test
  void run_sameLineOnEachHost_numbersHostsAndRanks() throws Exception {
    String place = freePlace();
    String program = program(SUM);
    Launches one = start(place, 1, program);
    Launches two = start(place, 2, program);
    Commands.Done first = one.await();
    Commands.Done second = two.await();
    assertThat(first.code()).as(first.err()).isEqualTo(ExitCode.FINE);
    assertThat(second.code()).as(second.err()).isEqualTo(ExitCode.FINE);
    boolean isInOrder = first.err().contains("node 0 of 2, with ranks 0 to 0 of 3");
    assertThat(List.of(first.err(), second.err()))
        .anyMatch(err -> err.contains("node 0 of 2"))
        .anyMatch(err -> err.contains("node 1 of 2"));
    List<String> lines = new ArrayList<>(first.out().lines().toList());
    lines.addAll(second.out().lines().toList());
    assertThat(lines)
        .containsExactlyInAnyOrder(
            "[0] rank 0 on shm node 0 sum 3.0",
            "[1] rank 1 on shm node %d sum 3.0".formatted(isInOrder ? 1 : 0),
            "[2] rank 2 on shm node 1 sum 3.0");
  }

  @Test
  void run_otherHostIsLate_saysOnceForWhomItWaitsAndWhere() throws Exception {
    String place = freePlace();
    String program = program(SUM);
    Launches one = startNode(0, "ours", place, program);
    String said =
        "comm-cli: node 0 waits at --master %s, for the other host, 60 s at most (--join-timeout)"
            .formatted(place.replace(":", ", port "));
    one.errorLine(line -> line.startsWith(said));
    Commands.Done second = startNode(1, "ours", place, program).await();
    Commands.Done first = one.await();
    assertThat(second.code()).as(second.err()).isEqualTo(ExitCode.FINE);
    assertThat(first.code()).as(first.err()).isEqualTo(ExitCode.FINE);
    assertThat(first.err()).containsOnlyOnce(" waits at ");
  }

  /// Somebody has taken the same port and the same secret for two launches, and told them apart.
  @Test
  void run_otherSession_isRefusedAndHarmsNobody() throws Exception {
    String place = freePlace();
    String program = program(SUM);
    List<Launches> ours = new ArrayList<>();
    ours.add(startNode(0, "ours", place, program));
    Commands.Done other = startNode(1, "another", place, program).await();
    assertThat(other.code()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(other.err())
        .contains("session 'ours', not 'another'", "its own port for --master")
        .doesNotContain("COMM_MASTER");
    ours.add(startNode(1, "ours", place, program));
    for (Launches each : ours) {
      Commands.Done done = each.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
      assertThat(done.out()).contains("sum 1.0");
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void run_nodeRankGivenTwice_namesItAndHarmsNobody(int duplicate) throws Exception {
    String place = freePlace();
    String program = program(SUM);
    List<Launches> ours = new ArrayList<>();
    for (int node = 0; node < duplicate; node++) {
      ours.add(startNode(3, node, "ours", place, program));
    }
    for (int i = 0; i < 2; i++) {
      ours.add(startNode(3, duplicate, "ours", place, program));
    }
    Launches refused = Launches.firstToEnd(ours); // either of the two
    ours.remove(refused);
    Commands.Done other = refused.await();
    assertThat(other.code()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(other.err())
        .containsPattern("--node-rank: %d, but .*pid \\d+ on .* came with it".formatted(duplicate))
        .contains("0..2 that no other host has", "leave --node-rank out on all")
        .doesNotContain("COMM_RANK", "rank %d has".formatted(duplicate));
    for (int node = duplicate + 1; node < 3; node++) {
      ours.add(startNode(3, node, "ours", place, program));
    }
    for (Launches each : ours) {
      Commands.Done done = each.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
      assertThat(done.out()).contains("sum 3.0");
    }
  }

  /// As where hosts are numbered from 1, or all get the same line.
  @Test
  void run_nobodyIsNodeZero_saysThatItIsMissing() throws Exception {
    String place = freePlace();
    var done = start(place, 1, "--node-rank", "1", "--join-timeout", "1s", "--", "true").await();
    assertThat(done.code()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(done.err())
        .contains(
            "--node-rank: 1, but no host came with 0 to --master " + place.replace(":", ", port "))
        .contains("Connection refused", "its own --node-rank of 0..1")
        .doesNotContain("COMM_MASTER_ADDR", "rank 0");
  }

  /// In words of hosts, by the name of who has come.
  @Test
  void run_anotherHostNeverComes_eachSaysWhichAndWhatToDo() throws Exception {
    String place = freePlace();
    Launches one = startOfThree(place, 0, "60s");
    one.errorLine(line -> line.contains(" waits at --master "));
    Launches two = startOfThree(place, 1, "2s"); // which counts for both, from now on
    for (Launches each : List.of(one, two)) {
      Commands.Done done = each.await();
      assertThat(done.code()).isEqualTo(ExitCode.RANK_FAILED);
      assertThat(done.err())
          .containsPattern(
              "node 2 of 3 has not come to --master %s, within [\\d.]+ s \\(come: 0, 1 on [^ ]+\\);"
                  .formatted(place.replace(":", ", port ")))
          .contains("start the same command on that host", "--join-timeout")
          .doesNotContain("rank ", "COMM_JOIN_TIMEOUT", "\tat ");
    }
  }

  /// They have asked for numbers until one was free, which is no matter of the one that is missing.
  @Test
  void run_anotherHostNeverComesAndNoneHasANumber_nobodyWasRefused() throws Exception {
    String place = freePlace();
    String[] patient = {"--join-timeout", "60s", "--", "true"};
    Launches one = start(List.of(), Map.of(), 3, place, 1, patient);
    one.errorLine(line -> line.contains(" waits at --master "));
    String[] hasty = {"--join-timeout", "2s", "--", "true"};
    Launches two = start(List.of(), Map.of(), 3, place, 1, hasty);
    for (Launches each : List.of(one, two)) {
      Commands.Done done = each.await();
      assertThat(done.code()).isEqualTo(ExitCode.RANK_FAILED);
      assertThat(done.err())
          .containsPattern("node 2 of 3 has not come .* \\(come: 0, 1 on [^ ]+\\); start")
          .doesNotContain("rank ", "refused");
    }
  }

  private Launches startOfThree(String place, int node, String patience) throws Exception {
    String[] options = {"--node-rank", "" + node, "--join-timeout", patience, "--", "true"};
    return start(List.of(), Map.of(), 3, place, 1, options);
  }

  /// The ranks of a host that never open, though its launcher has come. Only the rank that waits
  /// for them is in a hurry: on a busy machine its launcher may wait long for the other one.
  @Test
  void run_ranksElsewhereNeverOpen_othersSayWhoIsThere() throws Exception {
    String place = freePlace();
    String program =
        Files.writeString(
                folder.resolve("Waits.java"),
                """
                void main() throws Exception {
                  if (System.getenv("COMM_NODE_RANK").equals("1"))
                    new java.util.concurrent.CountDownLatch(1).await();
                  var launch = org.comm4j.api.CommConfig.fromEnvironment(System.getenv());
                  var hasty = launch.toBuilder().joinTimeout(java.time.Duration.ofSeconds(2));
                  org.comm4j.api.Communicators.open(hasty.build()).close();
                }
                """)
            .toString();
    Launches one = start(place, 1, "--node-rank", "0", "--grace", "0.5", program);
    Launches two = start(place, 2, "--node-rank", "1", "--grace", "0.5", program);
    List<Commands.Done> all = List.of(one.await(), two.await());
    assertThat(all).extracting(Commands.Done::code).containsOnly(ExitCode.RANK_FAILED);
    assertThat(all)
        .extracting(Commands.Done::err)
        .anySatisfy(err ->
            assertThat(err)
                .containsPattern(
                    "ranks 1, 2 of 3 did not join within [\\d.]+ s \\(joined: 0 on [^ ]+\\);"));
  }

  private Launches startNode(int node, String session, String master, String program)
      throws Exception {
    return startNode(2, node, session, master, program);
  }

  private Launches startNode(int nodes, int node, String session, String master, String program)
      throws Exception {
    return start(
        List.of(),
        Map.of("COMM_SESSION", session),
        nodes,
        master,
        1,
        "--node-rank",
        Integer.toString(node),
        program);
  }

  @Test
  void run_rankFails_endsTheRanksOfAllHosts() throws Exception {
    String place = freePlace();
    String program =
        program(
            """
            comm.barrier();
            if (comm.rank() == 1) Runtime.getRuntime().halt(7);
            new java.util.concurrent.CountDownLatch(1).await();
            """);
    Commands.Done first;
    Commands.Done second;
    try (var one = start(place, 1, "--node-rank", "0", "--grace", "0.5", program);
        var two = start(place, 1, "--node-rank", "1", "--grace", "0.5", program)) {
      first = one.await();
      second = two.await();
    }
    assertThat(first.code()).as(first.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(second.code()).as(second.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(first.err()).contains("comm-cli: node 1: rank 1 ended with exit code 7");
    assertThat(second.err()).contains("comm-cli: rank 1 ended with exit code 7");
  }

  /// What came first, or is the cause of the other, is seen on neither of them alone.
  @Test
  void run_ranksOfBothHostsFail_eachNamesTheOtherToo() throws Exception {
    String place = freePlace();
    Path goOn = folder.resolve("goOn");
    String body =
        "[ $COMM_NODE_RANK = 0 ] && exit 6; while [ ! -e %s ]; do sleep 0.05; done; exit 7"
            .formatted(goOn);
    Launches one = start(place, 1, "--node-rank", "0", "--", "sh", "-c", body);
    Launches two = start(place, 1, "--node-rank", "1", "--", "sh", "-c", body);
    one.errorLine(line -> line.equals("comm-cli: rank 0 ended with exit code 6"));
    Files.createFile(goOn);
    Commands.Done first = one.await();
    Commands.Done second = two.await();
    assertThat(List.of(first.code(), second.code())).containsOnly(ExitCode.RANK_FAILED);
    assertThat(first.err()).containsOnlyOnce("comm-cli: node 1: rank 1 ended with exit code 7");
    assertThat(second.err())
        .containsOnlyOnce("comm-cli: rank 1 ended with exit code 7")
        .containsOnlyOnce("comm-cli: node 0: rank 0 ended with exit code 6");
  }

  /// The host of the session hears of it, and those who wait for that rank do not wait longer.
  @Test
  void run_rankElsewhereEndsBeforeItJoins_othersHearOfItAtOnce() throws Exception {
    String place = freePlace();
    String program =
        Files.writeString(
                folder.resolve("Never.java"),
                """
                void main() {
                  if (!System.getenv("COMM_NODE_RANK").equals("1"))
                    org.comm4j.api.Communicators.open().close();
                }
                """)
            .toString();
    Launches one = start(place, 1, "--node-rank", "0", program);
    Launches two = start(place, 1, "--node-rank", "1", program);
    List<Commands.Done> all = List.of(one.await(), two.await());
    assertThat(all).extracting(Commands.Done::code).containsOnly(ExitCode.RANK_FAILED);
    assertThat(all.get(0).err()).contains("rank 1 ended with exit code 0 before it had joined");
    assertThat(all.get(1).err()).contains("comm-cli: node 0: rank 0 ended with exit code 1");
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void run_launcherIsKilled_endsTheOthersAndNamesIt(int killed) throws Exception {
    String place = freePlace();
    String program =
        program(
            """
            comm.barrier();
            IO.println("ready");
            new java.util.concurrent.CountDownLatch(1).await();
            """);
    String other = Integer.toString(1 - killed);
    Launches one = start(place, 1, "--node-rank", other, "--grace", "0.5", program);
    Launches two = start(place, 1, "--node-rank", Integer.toString(killed), program);
    one.line(line -> line.contains("ready"));
    two.line(line -> line.contains("ready"));
    two.kill();
    Commands.Done rest = one.await();
    assertThat(rest.code()).as(rest.err()).isEqualTo(ExitCode.RANK_FAILED);
    assertThat(rest.err())
        .containsPattern("comm-cli: node " + killed + " \\(.*\\) is gone: .*connection");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--nnodes 2 -n 1 true | --master: not given",
        "--nnodes 2 --node-rank 2 --master h:1 -n 1 -- true | --node-rank: 2 (expected: 0..1",
        "--nnodes 2 --node-rank 0 --master 192.0.2.1 -n 1 -- true | --node-rank: 0, but --master 192.0.2.1 is no address of this host",
        "--nnodes 0 --master h:1 -n 1 -- true | --nnodes: 0 (expected: 1 or more",
        "--nnodes 2 --master h:x -n 1 -- true | --master: 'h:x' (expected: HOST or HOST:PORT",
        "--nnodes 2 --master h:70000 -n 1 -- true | port from 1 to 65535",
        "--nnodes 2 --master no.such.host.invalid -n 1 -- true | --master: 'no.such.host.invalid'",
        "--nnodes 2 --master 192.0.2.1 -n 1 -- true | no secret that ranks could prove they know",
        "--nnodes 2 --master 127.0.0.1 -n 1 --backend local -- true | --nnodes: not for backend local",
      })
  void run_wrongCluster_saysWhatIsExpected(String arguments, String expected) throws Exception {
    List<String> all = new ArrayList<>(List.of("run"));
    all.addAll(List.of(arguments.split(" ")));
    var done = Launches.run(all.toArray(String[]::new));
    assertThat(done.code()).isIn(ExitCode.USAGE, ExitCode.RANK_FAILED);
    assertThat(done.err()).contains(expected).doesNotContain("no host came");
  }

  /// The launchers' session knows only ranks and the variables that number them.
  @Test
  void meet_otherNumberOfHosts_speaksOfHosts() throws Exception {
    String place = freePlace();
    CommConfig config = CommConfig.builder().joinTimeout(Duration.ofSeconds(60)).build();
    try (var pool = Executors.newFixedThreadPool(2)) {
      Map<Integer, Future<?>> launchers = new HashMap<>();
      for (int hosts : new int[] {2, 3}) {
        Cluster cluster = Cluster.of(hosts, OptionalInt.empty(), place, Optional.empty());
        launchers.put(hosts, pool.submit(() -> Nodes.meet(cluster, 1, config, _ -> {})));
      }
      launchers.forEach((hosts, launcher) ->
          assertThatThrownBy(launcher::get)
              .cause()
              .isInstanceOf(JoinException.class)
              .hasMessageStartingWith("--nnodes: " + hosts + ", but another host at --master")
              .hasMessageContaining("the same --nnodes")
              .hasMessageNotContaining("COMM_"));
    }
  }

  /// Torchrun's port is this one's too.
  @Test
  void meet_portIsTaken_asksForAnotherAtMaster() throws Exception {
    InetAddress address = FreePlace.any().getAddress();
    try (var listener = new ServerSocket(0, 1, address)) {
      String place = address.getHostAddress() + ":" + listener.getLocalPort();
      Cluster cluster = Cluster.of(2, OptionalInt.of(0), place, Optional.empty());
      CommConfig config = CommConfig.builder().joinTimeout(Duration.ofMillis(500)).build();
      assertThatThrownBy(() -> Nodes.meet(cluster, 1, config, _ -> {}))
          .isInstanceOf(JoinException.class)
          .hasMessageContaining("choose another port for --master")
          .hasMessageNotContaining("COMM_MASTER");
    }
  }

  /// As behind a firewall that drops what comes.
  @Test
  void meet_nodeZeroDoesNotAnswer_saysToLetTcpThrough() throws Exception {
    InetAddress address = FreePlace.any().getAddress();
    try (var listener = new ServerSocket(0, 1, address)) {
      for (int i = 0; i < 4; i++) { // as many as it takes, and more
        var channel = SocketChannel.open();
        opened.add(channel);
        channel.configureBlocking(false);
        channel.connect(listener.getLocalSocketAddress());
      }
      String place = address.getHostAddress() + ":" + listener.getLocalPort();
      Cluster cluster = Cluster.of(2, OptionalInt.of(1), place, Optional.empty());
      CommConfig config = CommConfig.builder().joinTimeout(Duration.ofMillis(500)).build();
      assertThatThrownBy(() -> Nodes.meet(cluster, 1, config, _ -> {}))
          .isInstanceOf(JoinException.class)
          .hasMessageContaining("it does not answer (let TCP through to that port); start");
    }
  }

  /// It is not written as the system would write it.
  @Test
  void meet_addressOfVersion6_isTakenAsItIs() throws Exception {
    var loopback = InetAddress.ofLiteral("::1");
    assumeTrue(NetworkInterface.getByInetAddress(loopback) != null, "no IPv6 on this host");
    String place = "[::1]:" + FreePlace.port(loopback);
    Cluster cluster = Cluster.of(2, OptionalInt.empty(), place, Optional.empty());
    CommConfig config = CommConfig.builder().joinTimeout(Duration.ofSeconds(60)).build();
    try (var pool = Executors.newFixedThreadPool(2)) {
      List<Future<Nodes>> launchers = new ArrayList<>();
      for (int i = 0; i < 2; i++) {
        launchers.add(pool.submit(() -> Nodes.meet(cluster, 1, config, _ -> {})));
      }
      try (Nodes one = launchers.get(0).get();
          Nodes two = launchers.get(1).get()) {
        assertThat(one.worldSize()).isEqualTo(2);
        assertThat(two.worldSize()).isEqualTo(2);
      }
    }
  }

  /// Three hosts of which the second has two ranks; then the third is cut off.
  @Test
  void run_hostsWithNetworks_talkOverUdpAndNameTheOneThatIsCutOff() throws Exception {
    assumeTrue(
        NetworkNamespaces.canBeMade(),
        "network namespaces need root and the command ip (iproute2)");
    Path secret = Files.writeString(folder.resolve("secret"), "0123456789abcdef0123456789abcdef\n");
    Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("rw-------"));
    Map<String, String> environment =
        Map.of("COMM_SECRET_FILE", secret.toString(), "COMM_LIVENESS", "5s");
    String program =
        program(
            SUM
                + """
                float[] one = {1};
                while (true) comm.allReduce(one, org.comm4j.api.ReduceOp.SUM);
                """);
    var hosts = NetworkNamespaces.make(3);
    opened.add(hosts);
    List<Launches> launches = new ArrayList<>();
    for (int host = 0; host < 3; host++) {
      int ranks = host == 1 ? 2 : 1;
      launches.add(start(hosts.in(host), environment, 3, hosts.address(0), ranks, program));
    }
    for (int host = 0; host < 3; host++) {
      launches.get(host).line(line -> line.contains("on aeron") && line.endsWith("sum 6.0"));
    }
    hosts.cutOff(2);
    for (int host = 0; host < 2; host++) {
      Commands.Done done = launches.get(host).await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.RANK_FAILED);
      assertThat(done.err()).contains("PeerFailedException").contains("silent for");
    }
    assertThat(launches.get(2).await().code()).isEqualTo(ExitCode.RANK_FAILED);
  }
}
