package org.comm4j.tck;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.EvictedException;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Secret;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.session.LocalHost;
import org.comm4j.core.session.SessionServer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Joins that go wrong: each has its reason, on the rank concerned, and in the time that is
/// promised ([Promise#JOIN_ANSWERED]).
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class JoinTest {
  /// What has no promise has happened by then.
  private static final Duration SOON = Duration.ofSeconds(10);

  private static final Authenticator SECRET = Authenticator.of(Configs.secret(2, 1).build());

  @TempDir private Path directory;
  private final List<AutoCloseable> opened = new ArrayList<>();

  enum Place {
    LAUNCHER,
    RANK_0,
    FILE
  }

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable resource : opened.reversed()) {
      resource.close();
    }
  }

  private CommConfig.Builder configs(Place place, int size) {
    return switch (place) {
      case LAUNCHER -> Configs.launched(size, server("job", size).port());
      case RANK_0 -> Configs.tcp(size, Joining.freePort());
      case FILE -> Configs.file(size, directory);
    };
  }

  private SessionServer server(String job, int size) {
    return server(job, size, Authenticator.NONE);
  }

  private SessionServer server(String job, int size, Authenticator authenticator) {
    var server =
        SessionServer.start(
            InetAddress.getLoopbackAddress(),
            0,
            job,
            size,
            authenticator,
            new SessionServer.Listener() {});
    opened.add(server);
    return server;
  }

  /// How a join has ended.
  ///
  /// @param result a session or a [JoinException]
  /// @param startNanos by [System#nanoTime()], as `endNanos`
  private record Outcome(Object result, long startNanos, long endNanos) {
    /// @param sinceNanos when the reason was there, if the rank waited before
    JoinException refusedSoon(long sinceNanos) {
      assertThat(result).isInstanceOf(JoinException.class);
      Duration took = Duration.ofNanos(endNanos - Math.max(startNanos, sinceNanos));
      Promise.JOIN_ANSWERED.keep("a failed join", result.toString(), took);
      return (JoinException) result;
    }
  }

  private CompletableFuture<Outcome> join(CommConfig.Builder config, int rank) {
    return join(Joining.rank(config, rank));
  }

  private CompletableFuture<Outcome> join(CommConfig config) {
    var outcome = new CompletableFuture<Outcome>();
    var thread =
        new Thread(() -> {
          long start = System.nanoTime();
          Object result = Joining.join(config);
          long end = System.nanoTime();
          if (result instanceof Session session) {
            synchronized (opened) {
              opened.add(session);
            }
          }
          outcome.complete(new Outcome(result, start, end));
        });
    thread.setDaemon(true);
    thread.start();
    return outcome;
  }

  /// Has a rank join, and returns when it is in and waits for the others: two want to be that rank,
  /// and one of them has been refused.
  private CompletableFuture<Outcome> waiting(CommConfig.Builder config, int rank) {
    var one = join(config, rank);
    var other = join(config, rank);
    CompletableFuture.anyOf(one, other).orTimeout(20, TimeUnit.SECONDS).join();
    JoinException failure = refusedSoon(one.isDone() ? one : other);
    assertThat(failure.reason()).isEqualTo(Reason.DUPLICATE_RANK);
    return one.isDone() ? other : one;
  }

  private static CommConfig.Builder changed(
      CommConfig.Builder config, UnaryOperator<CommConfig.Builder> change) {
    return change.apply(config.build().toBuilder());
  }

  /// How a join of a rank that had no need to wait has failed.
  private static JoinException refusedSoon(CompletableFuture<Outcome> join) {
    return end(join).refusedSoon(Long.MIN_VALUE);
  }

  /// How a join has failed whose reason was there only then, by [System#nanoTime()].
  private static JoinException refusedSoon(CompletableFuture<Outcome> join, long sinceNanos) {
    return end(join).refusedSoon(sinceNanos);
  }

  /// How a join has failed at the deadline for others to come.
  private static JoinException refusedAfter(Duration deadline, CompletableFuture<Outcome> join) {
    Outcome outcome = end(join);
    return outcome.refusedSoon(outcome.startNanos() + deadline.toNanos());
  }

  private static Outcome end(CompletableFuture<Outcome> join) {
    return join.orTimeout(40, TimeUnit.SECONDS).join();
  }

  private static Session in(CompletableFuture<Outcome> join) {
    Object result = end(join).result();
    assertThat(result).isInstanceOf(Session.class);
    return (Session) result;
  }

  @ParameterizedTest
  @EnumSource
  void join_otherWorldSize_failsOnAllWhoHaveJoined(Place place) {
    CommConfig.Builder config = configs(place, 4);
    var join0 = waiting(config, 0);
    var join1 = waiting(config, 1);
    long start = System.nanoTime();
    var odd = join(changed(config, c -> c.worldSize(5)), 4);
    for (var join : List.of(join0, join1, odd)) {
      JoinException failure = refusedSoon(join, start);
      assertThat(failure.reason()).isEqualTo(Reason.WORLD_SIZE);
      assertThat(failure).hasMessageContaining("5").hasMessageContaining("4");
    }
  }

  @ParameterizedTest
  @EnumSource
  void join_moreRanksThanASessionTakes_saysHowMany(Place place) {
    CommConfig.Builder config = configs(place, 16_385);
    JoinException why = refusedSoon(join(config, 0));
    assertThat(why.reason()).isEqualTo(Reason.CONFIGURATION);
    assertThat(why).hasMessageStartingWith("COMM_WORLD_SIZE: 16385 (expected: at most 16384");
  }

  @ParameterizedTest
  @EnumSource
  void join_rankIsTaken_refusesTheSecondOnly(Place place) {
    CommConfig.Builder config = configs(place, 2);
    var rank0 = join(config, 0);
    RankProcess first = process(Joining.rank(config, 1));
    assertThat(first.line()).startsWith("joined");
    in(rank0);
    RankProcess second = process(Joining.rank(config, 1));
    assertThat(second.line())
        .startsWith("refused DUPLICATE_RANK")
        .contains("rank 1 has joined already")
        .contains("pid " + first.pid());
    assertThat(first.command("news")).doesNotContain("rank=");
  }

  @ParameterizedTest
  @EnumSource
  void join_someDoNotCome_namesThem(Place place) {
    Duration deadline = Duration.ofSeconds(2);
    CommConfig.Builder config = changed(configs(place, 4), c -> c.joinTimeout(deadline));
    var join0 = join(config, 0);
    var join2 = join(config, 2);
    for (var join : List.of(join0, join2)) {
      JoinException failure = refusedAfter(deadline, join);
      assertThat(failure.reason()).isEqualTo(Reason.MISSING_RANKS);
      assertThat(failure)
          .hasMessageContaining("ranks 1, 3 of 4")
          .hasMessageContaining("(joined: 0, 2 on " + LocalHost.identity().name() + ");")
          .hasMessageContaining("COMM_JOIN_TIMEOUT");
    }
  }

  @Test
  void join_afterTheGroupGaveUp_isLate() {
    CommConfig.Builder config = configs(Place.LAUNCHER, 2);
    Duration deadline = Duration.ofSeconds(1);
    var early = join(changed(config, c -> c.joinTimeout(deadline)), 0);
    assertThat(refusedAfter(deadline, early).reason()).isEqualTo(Reason.MISSING_RANKS);
    JoinException late = refusedSoon(join(config, 1));
    assertThat(late.reason()).isEqualTo(Reason.LATE);
    assertThat(late.getMessage()).containsPattern("rank 1 of 2 did not join within \\d+\\.\\d s");
    var again0 = join(config, 0);
    var again1 = join(config, 1);
    in(again0);
    in(again1);
  }

  @ParameterizedTest
  @EnumSource
  void join_otherSettings_namesRanksAndSettings(Place place) {
    CommConfig.Builder config = configs(place, 3);
    var join0 = waiting(config, 0);
    long start = System.nanoTime();
    var join1 = join(changed(config, c -> c.backend("aeron")), 1);
    for (var join : List.of(join0, join1)) {
      JoinException failure = refusedSoon(join, start);
      assertThat(failure.reason()).isEqualTo(Reason.CONFIGURATION);
      assertThat(failure)
          .hasMessageContaining("rank 0")
          .hasMessageContaining("rank 1")
          .hasMessageContaining("backend=aeron");
    }
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "FILE")
  void join_otherJob_isRefusedAndHarmsNobody(Place place) {
    CommConfig.Builder config = configs(place, 2);
    var join0 = join(config, 0);
    for (int rank : new int[] {1, 0}) { // 0 would host it, but somebody listens there
      var other = join(changed(config, c -> c.session("other")), rank);
      JoinException failure = refusedSoon(other);
      assertThat(failure.reason()).isEqualTo(Reason.OTHER_JOB);
      assertThat(failure).hasMessageContaining("'job'").hasMessageContaining("'other'");
    }
    var join1 = join(config, 1);
    in(join0);
    in(join1);
  }

  @ParameterizedTest
  @EnumSource
  void join_onePeerDiesMeanwhile_failsOnAll(Place place) {
    CommConfig.Builder config = configs(place, 3);
    var join0 = waiting(config, 0);
    // Two want to be rank 1. When one of them is refused, the other one is in.
    RankProcess one = process(Joining.rank(config, 1));
    RankProcess other = process(Joining.rank(config, 1));
    ExecutorService readers = Executors.newFixedThreadPool(2);
    opened.add(readers::shutdownNow);
    var refused =
        CompletableFuture.anyOf(
            CompletableFuture.supplyAsync(() -> one.line() + " one", readers),
            CompletableFuture.supplyAsync(() -> other.line() + " other", readers));
    String answer = String.valueOf(refused.orTimeout(20, TimeUnit.SECONDS).join());
    assertThat(answer).startsWith("refused DUPLICATE_RANK");
    long start = System.nanoTime();
    (answer.endsWith(" one") ? other : one).kill();
    JoinException failure = refusedSoon(join0, start);
    assertThat(failure.reason()).isEqualTo(Reason.PEER_FAILED);
    assertThat(failure).hasMessageContaining("rank 1 died before all had joined");
  }

  @Test
  void join_onePeerEndsBeforeItJoins_failsOnAllThatWaitOrCome() {
    var server = server("job", 3);
    CommConfig.Builder config = Configs.launched(3, server.port());
    var join0 = waiting(config, 0);
    long start = System.nanoTime();
    server.ended(1, "ended with exit code 7");
    for (var join : List.of(join0, join(config, 2))) {
      JoinException failure = refusedSoon(join, start);
      assertThat(failure.reason()).isEqualTo(Reason.PEER_FAILED);
      assertThat(failure)
          .hasMessageContaining("rank 1 ended with exit code 7 before it had joined");
    }
  }

  @ParameterizedTest
  @EnumSource
  void join_again_formsTheNextGroup(Place place) {
    CommConfig.Builder config = configs(place, 2);
    for (int round = 0; round < 5; round++) {
      var join1 = join(config, 1);
      var join0 = join(config, 0);
      Session rank0 = in(join0);
      Session rank1 = in(join1);
      assertThat(rank0.id()).isEqualTo(rank1.id());
      // One of them is back before the other has left.
      Session first = round % 2 == 0 ? rank0 : rank1;
      first.close();
      var early = join(config, first.rank());
      (round % 2 == 0 ? rank1 : rank0).close();
      Session other = in(join(config, 1 - first.rank()));
      in(early).close();
      other.close();
    }
  }

  /// Rank 1 has tried before.
  @Test
  void join_hostStartsLater_works() throws Exception {
    int port = Joining.freePort();
    CommConfig.Builder config = Configs.tcp(2, port);
    CompletableFuture<Outcome> join1;
    try (var before = new ServerSocket(port, 16, InetAddress.getLoopbackAddress())) {
      join1 = join(config, 1);
      before.accept().close();
    }
    var join0 = join(config, 0);
    in(join1);
    in(join0);
  }

  @Test
  void join_nobodyListens_saysSo() {
    Duration deadline = Duration.ofSeconds(1);
    CommConfig.Builder config =
        changed(
            configs(Place.RANK_0, 2).option("COMM_SESSION_HOSTED", "launcher"),
            c -> c.joinTimeout(deadline));
    JoinException failure = refusedAfter(deadline, join(config, 1));
    assertThat(failure.reason()).isEqualTo(Reason.ADDRESS);
    assertThat(failure).hasMessageContaining("COMM_MASTER_PORT");
  }

  @Test
  void join_portIsTakenByAMuteStranger_isAddress() throws Exception {
    try (var stranger = new ServerSocket(0, 16, InetAddress.getLoopbackAddress())) {
      JoinException failure = refusedSoon(join(Configs.tcp(2, stranger.getLocalPort()), 0));
      assertThat(failure.reason()).isEqualTo(Reason.ADDRESS);
      assertThat(failure)
          .hasMessageContaining(String.valueOf(stranger.getLocalPort()))
          .hasMessageContaining("COMM_MASTER_PORT");
    }
  }

  /// As a server does with whom it does not know.
  @Test
  void join_portIsTakenByAStrangerThatCloses_isAddress() throws Exception {
    try (var stranger = new ServerSocket(0, 16, InetAddress.getLoopbackAddress())) {
      Thread.ofPlatform()
          .daemon()
          .start(() -> {
            try {
              while (true) {
                stranger.accept().close();
              }
            } catch (IOException e) {
              // The test is over.
            }
          });
      JoinException failure = refusedSoon(join(Configs.tcp(2, stranger.getLocalPort()), 0));
      assertThat(failure.reason()).isEqualTo(Reason.ADDRESS);
      assertThat(failure)
          .hasMessageContaining("closes the connection")
          .hasMessageContaining("COMM_MASTER_PORT");
    }
  }

  @Test
  void join_whoHadThePortOfRank0IsGone_rank0Listens() throws Exception {
    var other = new ServerSocket(0, 16, InetAddress.getLoopbackAddress());
    int port = other.getLocalPort();
    var join0 = join(Configs.tcp(2, port), 0);
    try (var _ = other.accept()) {
      other.close(); // first: else rank 0 might find the port taken again
    }
    in(join(Configs.tcp(2, port), 1));
    in(join0);
  }

  @Test
  void join_strangerTalks_isProtocol() throws Exception {
    try (var stranger = new ServerSocket(0, 16, InetAddress.getLoopbackAddress())) {
      var thread =
          new Thread(() -> {
            try (var socket = stranger.accept()) {
              socket.getOutputStream().write("SSH-2.0-OpenSSH_9.2\r\n".getBytes(UTF_8));
              socket.getInputStream().read();
            } catch (IOException e) {
              // The test is over.
            }
          });
      thread.start();
      JoinException failure = refusedSoon(join(Configs.tcp(2, stranger.getLocalPort()), 1));
      assertThat(failure.reason()).isEqualTo(Reason.PROTOCOL);
      thread.join(SOON.toMillis());
    }
  }

  @Test
  void join_addressOfTheNetwork_needsASecret() {
    CommConfig.Builder config =
        changed(Configs.tcp(2, Joining.freePort()), c -> c.masterAddress("192.0.2.1"));
    assertAddress(config, "no secret", "COMM_SECRET_FILE", "COMM_SESSION_INSECURE");
    assertAddress(
        changed(config, c -> c.secret(Secret.of("hunter2"))), "has 7 bytes", "at least 16");
    String unreachable = "can't listen on 192.0.2.1"; // an address that nobody has
    assertAddress(changed(config, c -> c.secret(Secret.of("0123456789abcdef"))), unreachable);
    assertAddress(changed(config, c -> c.option("COMM_SESSION_INSECURE", "true")), unreachable);
  }

  @Test
  void join_everyInterface_isRefused() {
    CommConfig.Builder config =
        Configs.tcp(2, Joining.freePort()).secret(Secret.of("0123456789abcdef"));
    assertAddress(changed(config, c -> c.masterAddress("0.0.0.0")), "every interface");
  }

  private void assertAddress(CommConfig.Builder config, String... parts) {
    JoinException failure = refusedSoon(join(config, 0));
    assertThat(failure.reason()).isEqualTo(Reason.ADDRESS);
    assertThat(failure).hasMessageContainingAll(parts);
  }

  @ParameterizedTest
  @ValueSource(strings = {"another secret!!", ""})
  void join_withoutTheSecret_isRefusedAndHarmsNobody(String secret) {
    CommConfig.Builder config = Configs.secret(2, server("job", 2, SECRET).port());
    var rank0 = join(config, 0);
    CommConfig.Builder none = Configs.launched(2, config.build().masterPort().orElseThrow());
    JoinException failure =
        refusedSoon(
            join(secret.isEmpty() ? none : changed(none, c -> c.secret(Secret.of(secret))), 1));
    assertThat(failure.reason()).isEqualTo(Reason.AUTHENTICATION);
    assertThat(failure).hasMessageContaining("give all ranks the same COMM_SECRET_FILE");
    in(join(config, 1));
    in(rank0);
  }

  @Test
  void join_hostHasNoSecret_isRefused() {
    JoinException failure = refusedSoon(join(Configs.secret(2, server("job", 2).port()), 0));
    assertThat(failure.reason()).isEqualTo(Reason.AUTHENTICATION);
    assertThat(failure).hasMessageContaining("has not a secret, but this rank has one");
  }

  @ParameterizedTest
  @CsvSource({
    "rw-r-----, 0123456789abcdef, 'mode rw-r-----, chmod 600'",
    "rw-------, '', is empty",
  })
  void join_secretFileIsNoSecret_isRefused(String mode, String text, String expected)
      throws Exception {
    Path file = Files.writeString(directory.resolve("secret"), text + "\n");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
    CommConfig.Builder config = Configs.tcp(1, Joining.freePort()).secretFile(file);
    JoinException failure = refusedSoon(join(config, 0));
    assertThat(failure.reason()).isEqualTo(Reason.CONFIGURATION);
    assertThat(failure).hasMessageContainingAll(expected.split(", "));
  }

  @Test
  void join_secretInAFile_isTheSameAsInAVariable() throws Exception {
    Path file = Files.writeString(directory.resolve("secret"), "0123456789abcdef\n");
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    int port = server("job", 2, SECRET).port();
    var rank0 = join(Configs.launched(2, port).secretFile(file), 0);
    in(join(Configs.secret(2, port), 1));
    in(rank0);
  }

  @Test
  void join_noPlace_saysWhatToSet() {
    JoinException failure = refusedSoon(join(CommConfig.builder().rank(0).worldSize(2).build()));
    assertThat(failure.reason()).isEqualTo(Reason.ADDRESS);
    assertThat(failure).hasMessageContaining("COMM_SESSION");
    in(join(CommConfig.builder().rank(0).worldSize(1).build()));
  }

  @Test
  void join_directoryOpenToOthers_isRefused() throws Exception {
    Path open = directory.resolve("open");
    Files.createDirectory(open);
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    JoinException failure = refusedSoon(join(Configs.file(2, open), 0));
    assertThat(failure.reason()).isEqualTo(Reason.ADDRESS);
    assertThat(failure)
        .hasMessageContaining("open to others: rwxrwxrwx (expected: rwx------)")
        .hasMessageContaining("set COMM_SESSION_DIR to a directory of this user alone");
  }

  @Test
  void join_directoryThatCantBeMade_saysWhatIsMissingOnce() {
    JoinException failure =
        refusedSoon(join(Configs.file(2, directory.resolve("no").resolve("such")), 0));
    assertThat(failure)
        .hasMessageContaining("no/such does not exist")
        .hasMessageContaining("set COMM_SESSION_DIR");
    assertThat(failure.getCause()).isNotInstanceOf(JoinException.class);
  }

  @Test
  void join_fileIsALink_isRefusedAndNotFollowed() throws Exception {
    Path target = Files.writeString(directory.resolve("target"), "precious");
    Files.createSymbolicLink(directory.resolve("job.session"), target);
    JoinException failure = refusedSoon(join(Configs.file(2, directory), 0));
    assertThat(failure.reason()).isEqualTo(Reason.ADDRESS);
    assertThat(target).hasContent("precious");
  }

  @Test
  void join_filesOfCrashedRuns_areRemovedAndLiveOnesKept() throws Exception {
    CommConfig.Builder crashed = changed(configs(Place.FILE, 2), c -> c.session("crashed"));
    RankProcess rank0 = process(Joining.rank(crashed, 0));
    RankProcess rank1 = process(Joining.rank(crashed, 1));
    assertThat(rank0.line()).startsWith("joined");
    assertThat(rank1.line()).startsWith("joined");
    CommConfig.Builder alive = changed(configs(Place.FILE, 2), c -> c.session("alive"));
    RankProcess living = process(Joining.rank(alive, 1));
    Session here = in(join(alive, 0));
    assertThat(living.line()).startsWith("joined");
    rank0.stop(); // so that none of them sees the other one die
    rank1.stop();
    rank0.close();
    rank1.close();
    assertThat(directory.resolve("crashed.session")).exists();
    for (int i = 0; i < 1000; i++) {
      Path stale = directory.resolve("stale-" + i + ".session");
      Files.createFile(
          stale,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    }
    Path notOurs = Files.writeString(directory.resolve("window"), "of a backend");
    CommConfig.Builder next = changed(configs(Place.FILE, 2), c -> c.session("next"));
    var next0 = join(next, 0);
    var next1 = join(next, 1);
    in(next0);
    in(next1);
    try (var files = Files.list(directory)) {
      assertThat(files)
          .extracting(file -> file.getFileName().toString())
          .containsExactlyInAnyOrder("alive.session", "next.session", "window");
    }
    assertThat(notOurs).exists();
    assertThat(here.news()).isSameAs(Session.News.NONE);
    living.exchange("k", new byte[0]);
    here.exchange("k", new byte[0], SOON);
    // The crashed job may start again under its name.
    var again0 = join(crashed, 0);
    in(join(crashed, 1));
    in(again0);
  }

  @Test
  void server_portIsTaken_saysSo() throws Exception {
    SessionServer first = server("job", 2);
    Object outcome;
    try {
      outcome =
          SessionServer.start(
              InetAddress.getLoopbackAddress(),
              first.port(),
              "job",
              2,
              Authenticator.NONE,
              new SessionServer.Listener() {});
    } catch (JoinException e) {
      outcome = e;
    }
    assertThat(outcome).isInstanceOf(JoinException.class);
    assertThat(((JoinException) outcome).reason()).isEqualTo(Reason.ADDRESS);
  }

  @Test
  void server_dies_evictsItsRanks() throws Exception {
    SessionServer server = server("job", 2);
    CommConfig.Builder config = Configs.launched(2, server.port());
    var join0 = join(config, 0);
    Session rank1 = in(join(config, 1));
    Session rank0 = in(join0);
    var news = new CountDownLatch(2);
    rank0.onNews(news::countDown);
    rank1.onNews(news::countDown);
    long start = System.nanoTime();
    server.close();
    awaitDeath(news, start);
    assertThat(rank0.news().evicted()).contains("the launcher").contains("is gone");
    assertThat(rank0.news().failures()).isEmpty();
    assertThatThrownBy(() -> rank1.exchange("k", new byte[0], SOON))
        .isInstanceOf(EvictedException.class);
  }

  /// What the contract's table says of a launcher that is gone.
  @Test
  void server_diesInCalls_breaksTheCommunicatorOnAllRanks() throws Exception {
    SessionServer server = server("job", 2);
    CommConfig.Builder config = Configs.launched(2, server.port());
    var join0 = join(config, 0);
    List<Session> sessions = List.of(in(join(config, 1)), in(join0));
    List<MemoryTransport> transports = MemoryTransport.group(2, 4096, 0);
    List<BackendCommunicator> ranks = new ArrayList<>();
    List<Pending> calls = new ArrayList<>();
    for (Session session : sessions) {
      var rank =
          EngineCommunicator.open(
              "memory", session, transports.get(session.rank()), null, Joining.rank(config, 0));
      opened.add(rank::close);
      ranks.add(rank);
      CommData nothing = CommData.of(new int[1]);
      calls.add(rank.submit(new PointToPoint.Receive(nothing, 1 - session.rank(), 1)));
    }

    long start = System.nanoTime();
    server.close();

    for (Pending call : calls) {
      assertThatThrownBy(() -> call.await(SOON.toNanos()))
          .isInstanceOf(EvictedException.class)
          .hasMessageContainingAll("the launcher", "is gone: its control connection");
    }
    Promise.DEATH_KNOWN.keep("F5", "to hear of the death of the launcher", start);
    for (BackendCommunicator rank : ranks) {
      assertThat(rank.failure()).isInstanceOf(EvictedException.class);
      assertThatThrownBy(() -> rank.run(new Collective.Barrier())).isSameAs(rank.failure());
      assertThatThrownBy(rank::shrink).isInstanceOf(EvictedException.class);
    }
  }

  @Test
  void rank0_hostsAndIsKilled_isAFailedPeer() throws Exception {
    CommConfig.Builder config = configs(Place.RANK_0, 3);
    RankProcess host = process(Joining.rank(config, 0));
    var join1 = join(config, 1);
    Session rank2 = in(join(config, 2));
    Session rank1 = in(join1);
    assertThat(host.line()).startsWith("joined");
    var news = new CountDownLatch(2);
    rank1.onNews(news::countDown);
    rank2.onNews(news::countDown);
    long start = System.nanoTime();
    host.kill();
    awaitDeath(news, start);
    for (Session session : List.of(rank1, rank2)) {
      assertThat(session.news().evicted())
          .contains("rank 0, which hosted the session, is gone", "pid " + host.pid());
      assertThat(session.news().failures())
          .singleElement()
          .satisfies(failure -> {
            assertThat(failure.rank()).isZero();
            assertThat(failure.hosted()).isTrue();
            assertThat(failure.evidence())
                .contains("its control connection closed")
                .contains("pid " + host.pid());
          });
      assertThatThrownBy(() -> session.exchange("k", new byte[0], SOON))
          .isInstanceOfSatisfying(
              PeerFailedException.class, e -> assertThat(e.worldRanks()).containsExactly(0));
      assertThatThrownBy(() -> session.agree("a", List.of(1, 2), new byte[0], SOON))
          .isInstanceOf(PeerFailedException.class);
    }
  }

  /// As the communicator says itself: by its own ranks, of which the session knows nothing.
  @Test
  void shrink_sessionHasEndedWithRank0_isWhatTheContractSays() throws Exception {
    List<MemoryTransport> transports = MemoryTransport.group(3, 4096, 0);
    var isOver = new AtomicBoolean();
    try (var sessions = InMemorySessions.group(3);
        var threads = Executors.newCachedThreadPool(Thread.ofPlatform().daemon().factory())) {
      List<BackendCommunicator> worlds =
          sessions.sessions().stream()
              .map(session ->
                  EngineCommunicator.open(
                      "memory",
                      ending(session, isOver),
                      transports.get(session.rank()),
                      null,
                      CommConfig.builder().timeout(SOON).build()))
              .toList();
      worlds.forEach(world -> opened.add(world::close));
      List<Future<BackendCommunicator>> parts =
          worlds.stream()
              .map(world ->
                  threads.submit(() -> world.split(Math.min(world.rank(), 1), 0).orElseThrow()))
              .toList();
      BackendCommunicator part = parts.get(2).get(SOON.toSeconds(), TimeUnit.SECONDS);
      isOver.set(true);
      assertThatThrownBy(part::shrink)
          .isInstanceOf(EvictedException.class)
          .hasMessageContaining("rank 0 is gone");
      assertThatThrownBy(worlds.get(2)::shrink)
          .isInstanceOfSatisfying(
              PeerFailedException.class, e -> assertThat(e.ranks()).containsExactly(0));
    }
  }

  /// A session that ends with rank 0.
  private static Session ending(Session session, AtomicBoolean isOver) {
    return (Session)
        Proxy.newProxyInstance(
            Session.class.getClassLoader(),
            new Class<?>[] {Session.class},
            (_, method, arguments) -> {
              if (isOver.get() && method.getName().equals("agree")) {
                throw new PeerFailedException(List.of(0), List.of(0), "gone", null);
              }
              if (isOver.get() && method.getName().equals("news")) {
                return new Session.News(List.of(), List.of(), "rank 0 is gone");
              }
              try {
                return method.invoke(session, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  private static void awaitDeath(CountDownLatch news, long startNanos) throws Exception {
    assertThat(news.await(SOON.toSeconds(), TimeUnit.SECONDS)).isTrue();
    Promise.DEATH_KNOWN.keep("F5", "to hear of the death of the session's host", startNanos);
  }

  @Test
  void rank0_hostsAndIsStopped_isEvictedWhenItWakes() throws Exception {
    CommConfig.Builder config =
        changed(configs(Place.RANK_0, 3), c -> c.liveness(Duration.ofSeconds(2)));
    RankProcess host = process(Joining.rank(config, 0));
    var join1 = join(config, 1);
    Session rank2 = in(join(config, 2));
    Session rank1 = in(join1);
    assertThat(host.line()).startsWith("joined");
    var news = new CountDownLatch(2);
    rank1.onNews(news::countDown);
    rank2.onNews(news::countDown);
    host.stop();
    assertThat(news.await(SOON.toSeconds(), TimeUnit.SECONDS)).isTrue();
    assertThat(rank1.news().failures().get(0).evidence()).contains("silent for");
    host.resume();
    assertThat(host.awaitEvicted()).contains("given up");
  }

  @ParameterizedTest
  @EnumSource
  void abortProcesses_endsThemAllWithTheCode(Place place) throws Exception {
    CommConfig.Builder config = configs(place, 3);
    var ranks = new ArrayList<RankProcess>();
    for (int rank = 0; rank < 3; rank++) {
      ranks.add(process(Joining.rank(config, rank)));
    }
    for (RankProcess rank : ranks) {
      assertThat(rank.line()).startsWith("joined");
    }
    ranks.get(1).command("abortProcesses 42");
    for (RankProcess rank : ranks) {
      assertThat(rank.awaitExit()).isEqualTo(42);
    }
  }

  @Test
  void listener_hearsWhatHappens() throws Exception {
    var heard = new LinkedBlockingQueue<String>();
    var server =
        SessionServer.start(
            InetAddress.getLoopbackAddress(),
            0,
            "job",
            3,
            Authenticator.NONE,
            new SessionServer.Listener() {
              @Override
              public void formed(String id, List<Session.Member> members) {
                heard.add("formed " + members.size());
              }

              @Override
              public void failed(int rank, String evidence) {
                heard.add("failed " + rank);
              }

              @Override
              public void left(int rank) {
                heard.add("left " + rank);
              }

              @Override
              public void abortProcesses(int rank, int code) {
                heard.add("abort " + rank + " " + code);
              }
            });
    opened.add(server);
    CommConfig.Builder config = Configs.launched(3, server.port());
    RankProcess rank0 = process(Joining.rank(config, 0));
    RankProcess rank1 = process(Joining.rank(config, 1));
    RankProcess rank2 = process(Joining.rank(config, 2));
    assertThat(heard.poll(20, TimeUnit.SECONDS)).isEqualTo("formed 3");
    assertThat(rank0.line() + rank1.line() + rank2.line()).contains("joined");
    rank2.kill();
    assertThat(heard.poll(20, TimeUnit.SECONDS)).isEqualTo("failed 2");
    assertThat(rank1.command("close")).isEqualTo("done");
    assertThat(heard.poll(20, TimeUnit.SECONDS)).isEqualTo("left 1");
    rank0.command("abortProcesses 7");
    assertThat(heard.poll(20, TimeUnit.SECONDS)).isEqualTo("abort 0 7");
    assertThat(rank0.awaitExit()).isEqualTo(7);
  }

  private RankProcess process(CommConfig config) {
    RankProcess process = RankProcess.start(config);
    opened.add(process);
    return process;
  }
}
