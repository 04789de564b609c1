package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.comm4j.api.CommConfig;
import org.comm4j.api.EvictedException;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.Secret;
import org.comm4j.api.spi.Session.Failure;
import org.comm4j.api.spi.Session.Member;
import org.comm4j.core.session.FrameCodec.ProtocolException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class SessionServerTest {
  private static final Authenticator SECRET =
      Authenticator.of(CommConfig.builder().secret(Secret.of("0123456789abcdef")).build());

  private final SessionServer server = start(2);
  private final InetSocketAddress address =
      new InetSocketAddress(InetAddress.getLoopbackAddress(), server.port());

  @AfterEach
  void close() {
    server.close();
  }

  private static SessionServer start(int worldSize) {
    return start(worldSize, 0);
  }

  private static SessionServer start(int worldSize, int port) {
    return SessionServer.start(
        InetAddress.getLoopbackAddress(),
        port,
        "job",
        worldSize,
        Authenticator.NONE,
        new SessionServer.Listener() {});
  }

  /// Starts one in the process of a rank.
  private static SessionServer startFor(JoinRequest request) {
    return startFor(request, System::nanoTime);
  }

  private static SessionServer startFor(JoinRequest request, LongSupplier nanoTime) {
    return SessionServer.startFor(
        request, InetAddress.getLoopbackAddress(), 0, Authenticator.NONE, nanoTime, _ -> {});
  }

  private static JoinRequest request(String version, int rank) {
    return request(version, rank, 2, 10_000);
  }

  private static JoinRequest request(int rank, int worldSize, int livenessMillis) {
    return request("1", rank, worldSize, livenessMillis);
  }

  private static JoinRequest request(String version, int rank, int worldSize, int livenessMillis) {
    return new JoinRequest(
        version,
        "job",
        0,
        new Member(rank, LocalHost.identity(), ProcessHandle.current().pid(), Set.of(), List.of()),
        worldSize,
        20_000,
        livenessMillis,
        "");
  }

  private TcpSession start(String version, int rank) {
    return start(address, request(version, rank), Authenticator.NONE);
  }

  private static TcpSession start(
      InetSocketAddress address, JoinRequest request, Authenticator authenticator) {
    return start(address, request, authenticator, System::nanoTime);
  }

  private static TcpSession start(
      InetSocketAddress address,
      JoinRequest request,
      Authenticator authenticator,
      LongSupplier nanoTime) {
    return TcpSession.start(
        Places.of(address), request, authenticator, 5_000_000_000L, true, nanoTime, _ -> {});
  }

  private static ReplicatedSession joined(TcpSession session) {
    CompletableFuture<ReplicatedSession> joined = session.joined();
    return joined.orTimeout(20, TimeUnit.SECONDS).join();
  }

  @Test
  void join_otherVersion_isRefusedAndHarmsNobody() {
    TcpSession rank0 = start("1", 0);
    // Who comes first decides which version it is, so rank 0 has to be in.
    TcpSession second = start("1", 0);
    Object refused =
        CompletableFuture.anyOf(
                rank0.joined().handle((_, _) -> rank0), second.joined().handle((_, _) -> second))
            .orTimeout(20, TimeUnit.SECONDS)
            .join();
    TcpSession waiting = refused.equals(rank0) ? second : rank0;
    TcpSession other = start("2", 1);
    assertThatThrownBy(() -> joined(other))
        .cause()
        .isInstanceOfSatisfying(
            JoinException.class,
            e -> {
              assertThat(e.reason()).isEqualTo(Reason.VERSION);
              assertThat(e)
                  .hasMessageContaining("rank 1 runs comm4j 2")
                  .hasMessageContaining("runs 1");
            });
    TcpSession rank1 = start("1", 1);
    joined(rank1).close();
    joined(waiting).close();
  }

  @Test
  void join_otherProtocol_isRefusedInWords() throws IOException, ProtocolException {
    try (var socket = new Socket(address.getAddress(), address.getPort())) {
      socket.setSoTimeout(20_000);
      write(socket, new Frame.ForeignJoin(99));
      var in = new DataInputStream(socket.getInputStream());
      assertThat(read(in)).isInstanceOf(Frame.Hello.class);
      assertThat(read(in))
          .isInstanceOfSatisfying(
              Frame.Refused.class,
              refused -> {
                assertThat(refused.reason()).isEqualTo(Reason.VERSION);
                assertThat(refused.message()).contains("99");
              });
      assertThat(in.read()).isNegative();
    }
  }

  /// Who has listened to a rank that joined can't join in its place.
  @Test
  void join_recordedBefore_isRefused() throws IOException, ProtocolException {
    try (var secret =
        SessionServer.start(
            InetAddress.getLoopbackAddress(),
            0,
            "job",
            2,
            SECRET,
            new SessionServer.Listener() {})) {
      Frame.Join recorded;
      try (var first = new Socket(address.getAddress(), secret.port())) {
        var hello = (Frame.Hello) read(new DataInputStream(first.getInputStream()));
        var join = new Frame.Join(request("1", 0), SECRET.nonce(), new byte[0]);
        recorded = join.withProof(SECRET.proof(Authenticator.Role.RANK, hello, join));
        write(first, recorded);
        var accepted = read(new DataInputStream(first.getInputStream()));
        assertThat(accepted).isInstanceOf(Frame.Accepted.class);
        assertThat(((Frame.Accepted) accepted).proof())
            .isEqualTo(SECRET.proof(Authenticator.Role.HOST, hello, join))
            .isNotEqualTo(recorded.proof());
      }
      try (var again = new Socket(address.getAddress(), secret.port())) {
        var in = new DataInputStream(again.getInputStream());
        assertThat(read(in)).isInstanceOf(Frame.Hello.class);
        write(again, recorded);
        assertThat(read(in))
            .isInstanceOfSatisfying(
                Frame.Refused.class,
                refused -> assertThat(refused.reason()).isEqualTo(Reason.AUTHENTICATION));
      }
    }
  }

  /// As behind a firewall that drops what comes.
  @Test
  void join_noAnswer_isNotTakenForNobody() throws IOException {
    List<SocketChannel> waiting = new ArrayList<>();
    try (var listener = new ServerSocket(0, 1, address.getAddress())) {
      var place = new InetSocketAddress(address.getAddress(), listener.getLocalPort());
      for (int i = 0; i < 4; i++) { // as many as it takes, which are two, and more
        var channel = SocketChannel.open();
        waiting.add(channel);
        channel.configureBlocking(i < 2);
        channel.connect(place);
      }
      var member =
          new Member(1, LocalHost.identity(), ProcessHandle.current().pid(), Set.of(), List.of());
      var request = new JoinRequest("1", "job", 0, member, 2, 500, 10_000, "");
      assertThatThrownBy(() -> joined(start(place, request, Authenticator.NONE)))
          .cause()
          .isInstanceOfSatisfying(
              JoinException.class,
              e -> {
                assertThat(e.reason()).isEqualTo(Reason.ADDRESS);
                assertThat(e)
                    .hasMessageContaining("let TCP through to that port")
                    .hasMessageNotContaining("nobody listens");
              });
    } finally {
      for (SocketChannel each : waiting) {
        each.close();
      }
    }
  }

  /// A host that knows no secret gives a rank's own proof back.
  @Test
  void join_hostReflectsTheProof_isRefused() throws Exception {
    try (var listener = new ServerSocket(0, 1, address.getAddress())) {
      TcpSession rank =
          start(
              new InetSocketAddress(address.getAddress(), listener.getLocalPort()),
              request("1", 1),
              SECRET);
      try (var host = listener.accept()) {
        host.setSoTimeout(20_000);
        var id = "00112233445566778899aabbccddeeff";
        write(host, new Frame.Hello(FrameCodec.PROTOCOL, SECRET.nonce(), id));
        var join = (Frame.Join) read(new DataInputStream(host.getInputStream()));
        write(host, new Frame.Accepted(0, "host", join.proof()));
        assertThatThrownBy(() -> joined(rank))
            .cause()
            .isInstanceOfSatisfying(
                JoinException.class,
                e -> {
                  assertThat(e.reason()).isEqualTo(Reason.AUTHENTICATION);
                  assertThat(e).hasMessageContaining("does not know the secret");
                });
      }
    }
  }

  /// The system's words are those of the user's language.
  @Test
  void listen_portOrAddressIsOfNoUse_isToldInAnyLanguage() throws IOException {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    InetAddress nobodys = InetAddress.ofLiteral("192.0.2.1");
    var failure = new BindException("Die Adresse wird bereits verwendet");
    assertThat(Acceptor.hint(failure, loopback)).contains("choose another");
    assertThat(Acceptor.hint(failure, nobodys)).contains("no address of this host");
    var join = new JoinException(Reason.ADDRESS, "can't listen", failure);
    var here = new InetSocketAddress(loopback, 5000);
    assertThat(DefaultSessionFactory.isTaken(join, here)).isTrue();
    assertThat(DefaultSessionFactory.isTaken(join, new InetSocketAddress(nobodys, 5000))).isFalse();
  }

  /// Who runs out of descriptors now and then lets ranks in between.
  @Test
  void accept_failsOnceAndAgain_isReportedAfterASecondWithoutAnybody() {
    var trouble = new Acceptor.Trouble();
    assertThat(lasts(trouble, 0, 100)).isFalse();
    trouble.end();
    assertThat(lasts(trouble, 950, 1050, 1900)).isFalse();
    assertThat(lasts(trouble, 1950)).isTrue();
    assertThat(lasts(trouble, 3000)).isFalse(); // nobody has tried for longer than that
  }

  private static boolean lasts(Acceptor.Trouble trouble, long... millis) {
    boolean lasts = false;
    for (long each : millis) {
      lasts |= trouble.lasts(TimeUnit.MILLISECONDS.toNanos(each));
    }
    return lasts;
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void listen_portIsTaken_leavesNothingOpen() {
    int tries = 20;
    int before = openFiles();
    for (int i = 0; i < tries; i++) {
      assertThatThrownBy(() -> start(2, address.getPort())).isInstanceOf(JoinException.class);
    }
    assertThat(openFiles()).isLessThan(before + tries);
  }

  private static int openFiles() {
    return Objects.requireNonNull(new File("/proc/self/fd").list()).length;
  }

  /// As a host does that is out of descriptors for a while.
  @Test
  void join_hostSaysNothingAtFirst_isTriedAgain() throws Exception {
    try (var listener = new ServerSocket(0, 2, address.getAddress())) {
      listener.setSoTimeout(20_000);
      var skippedNs = new AtomicLong();
      TcpSession rank =
          start(
              placeOf(listener),
              request("1", 1),
              Authenticator.NONE,
              () -> System.nanoTime() + skippedNs.get());
      try (var _ = listener.accept()) {
        skippedNs.set(TimeUnit.SECONDS.toNanos(5)); // after which it gives up to hear a greeting
        try (var host = listener.accept()) {
          greet(host, InMemorySessions.randomId());
        }
      } finally {
        rank.close();
      }
    }
  }

  /// As a rank does that is stopped just when it would wait for the greeting: it has come
  /// meanwhile.
  @Test
  void join_greetingIsThereWhenTheTimeIsOver_isHeard() throws Exception {
    try (var listener = ServerSocketChannel.open()) {
      listener.bind(new InetSocketAddress(address.getAddress(), 0));
      listener.configureBlocking(false);
      var host = new CompletableFuture<Socket>();
      var nowNs = new AtomicLong();
      TcpSession rank =
          start(
              (InetSocketAddress) listener.getLocalAddress(),
              request("1", 1),
              Authenticator.NONE,
              () -> {
                if (host.isDone()) {
                  return nowNs.addAndGet(TimeUnit.SECONDS.toNanos(6)); // it waits for 5
                }
                SocketChannel connected = acceptAndGreet(listener);
                if (connected != null) {
                  host.complete(connected.socket());
                }
                return nowNs.get();
              });
      try (Socket socket = host.orTimeout(20, TimeUnit.SECONDS).join()) {
        socket.setSoTimeout(20_000);
        assertThat(read(new DataInputStream(socket.getInputStream())))
            .isInstanceOf(Frame.Join.class);
      } finally {
        rank.close();
      }
    }
  }

  private static @Nullable SocketChannel acceptAndGreet(ServerSocketChannel listener) {
    try {
      SocketChannel connected = listener.accept();
      if (connected != null) {
        String id = InMemorySessions.randomId();
        write(connected.socket(), new Frame.Hello(FrameCodec.PROTOCOL, new byte[0], id));
      }
      return connected;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// As a rank does that is stopped before it tries, or has spent its patience elsewhere.
  @Test
  void join_timeIsOverBeforeItTries_triesOnce() throws Exception {
    try (var listener = new ServerSocket(0, 1, address.getAddress())) {
      listener.setSoTimeout(20_000);
      TcpSession rank = start(placeOf(listener), request("1", 1).forHost(0, 0), Authenticator.NONE);
      listener.accept().close();
      assertThatThrownBy(() -> joined(rank)).cause().isInstanceOf(JoinException.class);
    }
  }

  /// As one does that has little of its processor. Why it gives the group up is not lost.
  @Test
  void join_hostAnswersAfterTheDeadline_isHeard() throws Exception {
    try (var listener = new ServerSocket(0, 1, address.getAddress())) {
      var nowNs = new AtomicLong();
      var looks = new AtomicLong(); // at the clock
      TcpSession rank =
          start(
              placeOf(listener),
              request("1", 1),
              Authenticator.NONE,
              () -> {
                looks.incrementAndGet();
                return nowNs.get();
              });
      try (var host = listener.accept()) {
        long patienceMs = greet(host, InMemorySessions.randomId()).request().patienceMillis();
        write(host, new Frame.Accepted(Frame.NO_RANK, "host", new byte[0]));
        nowNs.set(TimeUnit.MILLISECONDS.toNanos(patienceMs) + TimeUnit.SECONDS.toNanos(1));
        long before = looks.get();
        while (looks.get() < before + 10 && !rank.joined().isDone()) {
          Thread.onSpinWait();
        }
        assertThat(rank.joined()).isNotDone();
        write(host, new Frame.Refused(Reason.MISSING_RANKS, "a test's"));
        assertThatThrownBy(() -> joined(rank)).cause().hasMessage("a test's");
      }
    }
  }

  /// The host writes all of it before the rank's thread looks.
  @Test
  void join_historyComesWithTheAnswer_isRead() throws Exception {
    try (var listener = new ServerSocket(0, 1, address.getAddress())) {
      TcpSession rank = start(placeOf(listener), request("1", 1), Authenticator.NONE);
      try (var host = listener.accept()) {
        Frame.Join join = greet(host, InMemorySessions.randomId());
        var value = new byte[FrameCodec.MAX_VALUE_BYTES];
        value[value.length - 1] = 7;
        write(
            host,
            new Frame.Accepted(0, "host", new byte[0]),
            new Frame.Joined(request("1", 0).member()),
            new Frame.Joined(join.request().member()),
            new Frame.Welcome("00112233445566778899aabbccddeeff"),
            new Event.Put(0, "key", value));
        ReplicatedSession session = joined(rank);
        assertThat(session.get("key", Duration.ofSeconds(20))).isEqualTo(value);
        session.close();
      }
    }
  }

  /// Rank 0 serves the others once it has left; that its process ends then concerns all of them.
  @Test
  void history_hostHasLeftAndEnds_allIsOver() throws Exception {
    try (var listener = new ServerSocket(0, 1, address.getAddress())) {
      TcpSession rank = start(placeOf(listener), request("1", 1), Authenticator.NONE);
      ReplicatedSession session;
      var isOver = new CompletableFuture<Boolean>();
      try (var host = listener.accept()) {
        Frame.Join join = greet(host, InMemorySessions.randomId());
        write(
            host,
            new Frame.Accepted(0, "pid 7 on h", new byte[0]),
            new Frame.Joined(request("1", 0).member()),
            new Frame.Joined(join.request().member()),
            new Frame.Welcome("00112233445566778899aabbccddeeff"));
        session = joined(rank);
        session.onNews(() -> {
          if (session.news().evicted() != null) {
            isOver.complete(true);
          }
        });
        write(host, new Event.Leave(0));
      }
      isOver.orTimeout(20, TimeUnit.SECONDS).join();
      String gone = "its control connection closed (pid 7 on h)";
      assertThat(session.news().evicted())
          .isEqualTo("rank 0, which hosted the session and had left it, is gone: " + gone);
      assertThat(session.news().failures())
          .singleElement()
          .matches(Failure::left, "has left in order");
      assertThatThrownBy(() -> session.put("key", new byte[0]))
          .isInstanceOfSatisfying(
              PeerFailedException.class,
              e -> {
                assertThat(e.worldRanks()).containsExactly(0);
                assertThat(e.evidence()).contains(gone);
              });
      session.close();
    }
  }

  /// As a launcher does that is out of descriptors: what it has refused it does not form any more.
  @Test
  void join_hostGivesUp_comesForTheNextGroup() throws Exception {
    try (var listener = new ServerSocket(0, 1, address.getAddress())) {
      String hostId = InMemorySessions.randomId();
      for (int generation = 0; generation < 2; generation++) {
        TcpSession rank = start(placeOf(listener), request("1", 1), Authenticator.NONE);
        try (var host = listener.accept()) {
          assertThat(greet(host, hostId).request().generation()).isEqualTo(generation);
          write(
              host,
              new Frame.Accepted(Frame.NO_RANK, "host", new byte[0]),
              new Frame.Refused(Reason.ADDRESS, "a test's"));
          assertThatThrownBy(() -> joined(rank)).cause().hasMessage("a test's");
        }
      }
    }
  }

  /// Which one it is, as for the others; it may host the next one when it has closed the first.
  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void join_rankIsInTheSessionBefore_isToldToCloseThat(int rank) throws Exception {
    try (SessionServer ofRank0 = startFor(request(0, 2, 10_000));
        var between = new ServerSocket(0, 2, address.getAddress())) {
      var place = new InetSocketAddress(InetAddress.getLoopbackAddress(), ofRank0.port());
      ReplicatedSession first =
          joined(start(place, request(1, 2, 10_000), Authenticator.NONE)); // forms it
      var nowNs = new AtomicLong();
      JoinRequest request = request(rank, 2, 10_000);
      TcpSession early = start(placeOf(between), request, Authenticator.NONE, nowNs::get);
      passOnUntilItCloses(between, place);
      nowNs.addAndGet(TimeUnit.MILLISECONDS.toNanos(request.patienceMillis()));
      assertThatThrownBy(() -> joined(early))
          .cause()
          .isInstanceOf(JoinException.class)
          .hasMessageContaining("rank %d could not join", rank)
          .hasMessageContaining("the session before this one has not ended")
          .hasMessageContaining("close it on all ranks first")
          .hasMessageContaining("COMM_MASTER_PORT");
      first.close();
    }
  }

  /// Lets a rank and a host talk until the rank has read the host's answer.
  private static void passOnUntilItCloses(ServerSocket between, InetSocketAddress place)
      throws IOException, ProtocolException {
    between.setSoTimeout(20_000);
    try (var rank = between.accept();
        var host = new Socket(place.getAddress(), place.getPort())) {
      rank.setSoTimeout(20_000);
      host.setSoTimeout(20_000);
      var ofRank = new DataInputStream(rank.getInputStream());
      var ofHost = new DataInputStream(host.getInputStream());
      write(rank, read(ofHost));
      write(host, read(ofRank));
      write(rank, read(ofHost));
      assertThat(ofRank.read()).isNegative();
    }
  }

  /// As it does where its thread is interrupted: it has not died.
  @Test
  void join_rankCloses_othersAreToldWho() {
    try (var ofThree = start(3)) {
      TcpSession rank0 = waiting(ofThree, 0);
      TcpSession rank1 = waiting(ofThree, 1);
      rank1.close();
      assertIsToldWhoClosed(rank0, 1);
    }
  }

  @Test
  void join_rankThatHostsCloses_othersAreToldWho() {
    TcpSession rank1;
    try (SessionServer ofRank0 = startFor(request(0, 3, 10_000))) {
      rank1 = waiting(ofRank0, 1);
    }
    assertIsToldWhoClosed(rank1, 0);
  }

  private static void assertIsToldWhoClosed(TcpSession other, int rank) {
    assertThatThrownBy(() -> joined(other))
        .cause()
        .isInstanceOfSatisfying(
            JoinException.class,
            e -> {
              assertThat(e.reason()).isEqualTo(Reason.PEER_FAILED);
              assertThat(e).hasMessage("rank %d closed the session while it was joined", rank);
            });
    other.close();
  }

  /// Once one of two that want to be a rank of three is refused the other one is in.
  private static TcpSession waiting(SessionServer host, int rank) {
    var place = new InetSocketAddress(InetAddress.getLoopbackAddress(), host.port());
    TcpSession one = start(place, request(rank, 3, 10_000), Authenticator.NONE);
    TcpSession other = start(place, request(rank, 3, 10_000), Authenticator.NONE);
    CompletableFuture<?> refused =
        CompletableFuture.anyOf(
            one.joined().handle((_, _) -> one), other.joined().handle((_, _) -> other));
    return refused.orTimeout(20, TimeUnit.SECONDS).join().equals(one) ? other : one;
  }

  /// What a rank that hosts the session says just before it closes is not overtaken by its goodbye,
  /// whatever the server's thread is doing: here it has just found out that rank 1 is gone.
  @Test
  void close_rightAfterAnAbort_abortIsHeard() throws Exception {
    try (var ofRank0 = startFor(request(0, 3, 10_000));
        var rank1 = new Socket(address.getAddress(), ofRank0.port())) {
      write(rank1, new Frame.Join(request(1, 3, 10_000), new byte[0], new byte[0]));
      var _ =
          ofRank0
              .localJoin()
              .thenAccept(
                  host -> // by the server's thread: there is no news yet
                  host.onNews(() -> {
                    host.abort(0, new byte[] {7});
                    host.close();
                  }));
      TcpSession rank2 =
          start(
              new InetSocketAddress(address.getAddress(), ofRank0.port()),
              request(2, 3, 10_000),
              Authenticator.NONE);
      ReplicatedSession heard = joined(rank2);
      rank1.shutdownOutput();
      var isOver = new CompletableFuture<Boolean>();
      Runnable look =
          () -> {
            if (heard.news().isGone(0)) {
              isOver.complete(true);
            }
          };
      heard.onNews(look);
      look.run(); // all of it may have come before
      isOver.orTimeout(20, TimeUnit.SECONDS).join();
      assertThat(heard.news().aborts()).hasSize(1);
      heard.close();
    }
  }

  /// A turn that comes late now and then does not make a rank right that hears nothing because the
  /// network is cut.
  @ParameterizedTest
  @CsvSource({"3, false", "6, true"})
  void lost_afterALateTurn_hostIsOutIfItWasStopped(int lateSeconds, boolean isOut)
      throws Exception {
    var nowNs = new AtomicLong(); // which stands else
    try (var ofRank0 =
            SessionServer.startFor(
                request("1", 0),
                InetAddress.getLoopbackAddress(),
                0,
                Authenticator.NONE,
                nowNs::get,
                _ -> {});
        var cut = new Socket(address.getAddress(), ofRank0.port())) {
      write(cut, new Frame.Join(request("1", 1), new byte[0], new byte[0]));
      ReplicatedSession host = ofRank0.localJoin().orTimeout(20, TimeUnit.SECONDS).join();
      var isTold = new CompletableFuture<Boolean>();
      host.onNews(() -> isTold.complete(true));
      nowNs.set(TimeUnit.SECONDS.toNanos(lateSeconds)); // of 10 that rank 1 may be silent
      write(cut, new Frame.Lost("a test's"));
      isTold.orTimeout(20, TimeUnit.SECONDS).join();
      assertThat(host.news().evicted() != null).isEqualTo(isOut);
    }
  }

  /// The host may end its process at once, as a launcher does when it hears that all have ended.
  @Test
  void abort_ofTheHost_isSentBeforeItIsHeardThere() throws Exception {
    try (var ofRank0 =
            SessionServer.startFor(
                request("1", 0),
                InetAddress.getLoopbackAddress(),
                0,
                Authenticator.NONE,
                () -> 0L, // no heartbeat comes before
                _ -> {});
        var other = new Socket(address.getAddress(), ofRank0.port())) {
      other.setSoTimeout(5_000);
      var in = new DataInputStream(other.getInputStream());
      write(other, new Frame.Join(request("1", 1), new byte[0], new byte[0]));
      ReplicatedSession host = ofRank0.localJoin().orTimeout(20, TimeUnit.SECONDS).join();
      for (Frame frame = read(in); !(frame instanceof Frame.Welcome); frame = read(in)) {}
      var heard = new CompletableFuture<Frame>();
      host.onNews(() -> heard.completeAsync(() -> uncheckedRead(in), Runnable::run));
      host.abort(7, new byte[0]);
      assertThat(heard.orTimeout(20, TimeUnit.SECONDS).join()).isInstanceOf(Event.Abort.class);
    }
  }

  /// Whoever has more places than there are, elsewhere, costs a rank none: it gets one of them, and
  /// keeps it while it answers. The clock stands, so that it is never too late for that.
  @Test
  void join_strangersTakeAllPlaces_rankOfAnotherAddressKeepsIts() throws Exception {
    List<Socket> strangers = new ArrayList<>();
    try (var ofRank0 =
        SessionServer.startFor(
            request("1", 0),
            InetAddress.getLoopbackAddress(),
            0,
            Authenticator.NONE,
            () -> 0L,
            _ -> {})) {
      var place = new InetSocketAddress(address.getAddress(), ofRank0.port());
      try (var rank = new Socket()) {
        addStrangers(strangers, place);
        rank.connect(place);
        var in = new DataInputStream(rank.getInputStream());
        assertThat(read(in)).isInstanceOf(Frame.Hello.class);
        addStrangers(strangers, place);
        write(rank, new Frame.Join(request("1", 1), new byte[0], new byte[0]));
        assertThat(read(in)).isInstanceOf(Frame.Accepted.class);
      } finally {
        for (Socket each : strangers) {
          each.close();
        }
      }
    }
  }

  /// As many as there are places.
  private static void addStrangers(List<Socket> strangers, InetSocketAddress place)
      throws Exception {
    for (int i = 0; i < PendingConnections.PLACES; i++) {
      var stranger = new Socket();
      strangers.add(stranger);
      stranger.bind(new InetSocketAddress(InetAddress.getByAddress(new byte[] {127, 0, 0, 2}), 0));
      stranger.connect(place);
      assertThat(read(new DataInputStream(stranger.getInputStream())))
          .isInstanceOf(Frame.Hello.class);
    }
  }

  @Test
  void history_rankOfLauncherCannotFollow_isItsOwnFailure() {
    TcpSession rank0 = start("1", 0);
    assertFailsOnItsOwn(address);
    joined(rank0).close();
  }

  @Test
  void history_rankOfRank0CannotFollow_isItsOwnFailure() {
    try (SessionServer ofRank0 = startFor(request("1", 0))) {
      assertFailsOnItsOwn(new InetSocketAddress(InetAddress.getLoopbackAddress(), ofRank0.port()));
    }
  }

  /// Rank 1's own thread fails: it is out, and says why, of itself.
  private static void assertFailsOnItsOwn(InetSocketAddress host) {
    var heapIsFull = new AtomicBoolean();
    TcpSession tcp =
        start(
            host,
            request("1", 1),
            Authenticator.NONE,
            () -> {
              if (heapIsFull.get()) {
                throw new FullHeap();
              }
              return System.nanoTime();
            });
    ReplicatedSession session = joined(tcp);
    assertIsOutOnceTheHeapIsFull(session, heapIsFull);
    assertThat(session.news().failures()).isEmpty();
    assertThatThrownBy(() -> session.put("key", new byte[0])).isInstanceOf(EvictedException.class);
    session.close();
  }

  private static void assertIsOutOnceTheHeapIsFull(
      ReplicatedSession session, AtomicBoolean heapIsFull) {
    var isTold = new CompletableFuture<Boolean>();
    session.onNews(() -> isTold.complete(true));
    heapIsFull.set(true);
    isTold.orTimeout(20, TimeUnit.SECONDS).join();
    assertThat(session.news().evicted())
        .isEqualTo("the session's thread failed: " + FullHeap.class.getName() + ": a test's");
  }

  @Test
  void history_serverOfRank0CannotGoOn_rank0IsToldWhy() {
    var heapIsFull = new AtomicBoolean();
    try (SessionServer ofRank0 =
        startFor(
            request("1", 0),
            () -> {
              if (heapIsFull.get()) {
                throw new FullHeap();
              }
              return System.nanoTime();
            })) {
      TcpSession rank1 =
          start(
              new InetSocketAddress(InetAddress.getLoopbackAddress(), ofRank0.port()),
              request("1", 1),
              Authenticator.NONE);
      ReplicatedSession session1 = joined(rank1);
      ReplicatedSession session0 = ofRank0.localJoin().orTimeout(20, TimeUnit.SECONDS).join();
      assertIsOutOnceTheHeapIsFull(session0, heapIsFull);
      session1.close();
    }
  }

  /// Then nobody else says why the session has ended for the others: the server logs it.
  @Test
  void threadFails_rankThatHostsHasLeft_doesNotKnow() {
    HostRank host =
        new HostRank(request("1", 0), address.getAddress(), () -> {}, () -> {}, () -> 0L, _ -> {});
    host.form("id", List.of(request("1", 0).member(), request("1", 1).member()));
    host.hear(host.unheard());
    var failure = new OutOfMemoryError("a test's");
    assertThat(host.fail("it failed", failure)).isTrue();
    assertThat(host.joined().join().news().evicted()).isEqualTo("it failed");
    host.leave();
    assertThat(host.fail("it failed", failure)).isFalse();
  }

  private static InetSocketAddress placeOf(ServerSocket listener) {
    return new InetSocketAddress(listener.getInetAddress(), listener.getLocalPort());
  }

  /// Begins as a host does.
  static Frame.Join greet(Socket rank, String hostId) throws IOException, ProtocolException {
    rank.setSoTimeout(20_000);
    write(rank, new Frame.Hello(FrameCodec.PROTOCOL, new byte[0], hostId));
    return (Frame.Join) read(new DataInputStream(rank.getInputStream()));
  }

  /// All of them at once.
  static void write(Socket socket, Frame... frames) throws IOException {
    var bytes = new ByteArrayOutputStream();
    for (Frame frame : frames) {
      ByteBuffer buffer = FrameCodec.encode(frame);
      var each = new byte[buffer.remaining()];
      buffer.get(each);
      bytes.write(each);
    }
    socket.getOutputStream().write(bytes.toByteArray());
  }

  private static Frame uncheckedRead(DataInputStream in) {
    try {
      return read(in);
    } catch (IOException | ProtocolException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Frame read(DataInputStream in) throws IOException, ProtocolException {
    return FrameCodec.decode(ByteBuffer.wrap(in.readNBytes(in.readInt())));
  }
}
