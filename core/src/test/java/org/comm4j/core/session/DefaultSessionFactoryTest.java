package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.UnknownHostException;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.comm4j.api.CommConfig;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A place whose name is not known yet.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DefaultSessionFactoryTest {
  private final AtomicInteger asked = new AtomicInteger();

  private static CommConfig.Builder config(String address) {
    return CommConfig.builder()
        .rank(0)
        .worldSize(1)
        .masterAddress(address)
        .masterPort(1)
        .session("job")
        .option(DefaultSessionFactory.HOSTED, "launcher");
  }

  private static DefaultSessionFactory factory(DefaultSessionFactory.Names names) {
    return new DefaultSessionFactory(names, System::nanoTime);
  }

  private UnknownHostException unknown(String host) {
    asked.incrementAndGet();
    return new UnknownHostException(host);
  }

  @Test
  void join_nameIsKnownLater_works() {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    try (var host =
        SessionServer.start(
            loopback, 0, "job", 1, Authenticator.NONE, new SessionServer.Listener() {})) {
      var factory =
          factory(name -> {
            if (asked.get() < 2) {
              throw unknown(name);
            }
            return List.of(loopback);
          });
      var config = config("rank-0.train").masterPort(host.port()).build();
      factory.join(config, List.of()).close();
      assertThat(asked).hasValue(2);
    }
  }

  @Test
  void join_nameHasSeveralAddresses_triesAll() {
    InetAddress nobodys = InetAddress.ofLiteral("127.0.0.2");
    InetAddress loopback = InetAddress.getLoopbackAddress();
    try (var host =
        SessionServer.start(
            loopback, 0, "job", 1, Authenticator.NONE, new SessionServer.Listener() {})) {
      var config = config("rank-0.train").masterPort(host.port()).build();
      factory(_ -> List.of(nobodys, nobodys, loopback)).join(config, List.of()).close();
    }
  }

  /// Where other hosts come, and nothing is proved.
  @Test
  void join_nameMeansAForbiddenPlaceLater_isNotTriedThere() {
    InetAddress nobodys = InetAddress.ofLiteral("127.0.0.2");
    InetAddress others = InetAddress.ofLiteral("192.0.2.1");
    var nowNs = new AtomicLong();
    var factory =
        new DefaultSessionFactory(
            _ -> List.of(asked.getAndIncrement() == 0 ? nobodys : others),
            () -> nowNs.addAndGet(1_000_000_000)); // a minute in 60 looks at the clock
    assertThatExceptionOfType(JoinException.class)
        .isThrownBy(() -> factory.join(config("rank-0.train").build(), List.of()))
        .withMessageContaining("127.0.0.2 port 1 ")
        .satisfies(e -> assertThat(e.reason()).isEqualTo(Reason.ADDRESS));
    assertThat(asked).hasValueGreaterThan(1);
  }

  /// A name service may be slow, and the host is there.
  @Test
  void join_lookUpTakesAllPatience_isTriedNevertheless() {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    var skippedNs = new AtomicLong();
    try (var host =
        SessionServer.start(
            loopback, 0, "job", 1, Authenticator.NONE, new SessionServer.Listener() {})) {
      var factory =
          new DefaultSessionFactory(
              _ -> {
                skippedNs.addAndGet(TimeUnit.MINUTES.toNanos(1));
                return List.of(loopback);
              },
              () -> System.nanoTime() + skippedNs.get());
      var config = config("rank-0.train").masterPort(host.port());
      factory.join(config.joinTimeout(Duration.ofMinutes(1)).build(), List.of()).close();
    }
  }

  /// On Debian and Ubuntu a host's own name means a loopback address.
  @Test
  @EnabledOnOs(OS.LINUX)
  void join_nameMeansThisHostAlone_isSaid() throws IOException {
    InetAddress own = ownAddress();
    String means = "rank-0, which means %s here".formatted(own.getHostAddress());
    var factory = factory(_ -> List.of(own));
    CommConfig.Builder config = ofThree(own).joinTimeout(Duration.ofMillis(100));
    assertThatExceptionOfType(JoinException.class)
        .isThrownBy(() -> factory.join(config.build(), List.of()))
        .withMessageContainingAll("ranks 1, 2 of 3 did not join", means)
        .satisfies(e -> assertThat(e.reason()).isEqualTo(Reason.MISSING_RANKS));
    config.joinTimeout(Duration.ofDays(1)).localRank(0).localWorldSize(2);
    assertThatExceptionOfType(JoinException.class)
        .isThrownBy(() -> factory.join(config.build(), List.of()))
        .withMessageContainingAll(means, "1 of 3 ranks are on others")
        .satisfies(e -> assertThat(e.reason()).isEqualTo(Reason.ADDRESS));
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void join_nameMeansThisHostAloneAndAllRanksAreHere_isNoMatter() throws IOException {
    InetAddress own = ownAddress();
    CommConfig.Builder config = ofThree(own).localRank(0).localWorldSize(3);
    config.joinTimeout(Duration.ofMillis(100));
    assertThatExceptionOfType(JoinException.class)
        .isThrownBy(() -> factory(_ -> List.of(own)).join(config.build(), List.of()))
        .withMessageContaining("ranks 1, 2 of 3 did not join")
        .satisfies(e -> assertThat(e).hasMessageNotContaining("no other host"));
  }

  /// By who looked before and lost, or as the near end of somebody's connection.
  @Test
  void join_lowPortIsTakenForAWhile_administratorListensAgain() throws IOException {
    assumeTrue(LocalHost.isRoot(), "only the administrator may listen there");
    InetAddress own = ownAddress();
    int port = 600 + (int) (ProcessHandle.current().pid() % 400);
    try (var taken = SocketChannel.open().bind(new InetSocketAddress(own, port))) {
      var looks = new AtomicInteger();
      var factory =
          new DefaultSessionFactory(
              _ -> List.of(own),
              () -> {
                if (looks.incrementAndGet() == 20) {
                  close(taken);
                }
                return System.nanoTime();
              });
      var config = ofThree(own).worldSize(1).masterPort(port);
      factory.join(config.build(), List.of()).close();
    }
  }

  private static void close(SocketChannel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static CommConfig.Builder ofThree(InetAddress address) throws IOException {
    return CommConfig.builder()
        .rank(0)
        .worldSize(3)
        .masterAddress("rank-0")
        .masterPort(freePort(address))
        .session("job");
  }

  /// Where nobody else listens or connects from by chance.
  private static InetAddress ownAddress() throws IOException {
    long process = ProcessHandle.current().pid();
    return InetAddress.getByAddress(new byte[] {127, (byte) (process >> 8), (byte) process, 3});
  }

  private static int freePort(InetAddress address) throws IOException {
    try (var socket = new ServerSocket(0, 1, address)) {
      return socket.getLocalPort();
    }
  }

  @Test
  void join_nameIsNeverKnown_isAddressAfterTheTimeout() {
    var factory =
        factory(name -> {
          throw unknown(name);
        });
    var config = config("rank-0.train").joinTimeout(Duration.ofMillis(100)).build();
    assertThatExceptionOfType(JoinException.class)
        .isThrownBy(() -> factory.join(config, List.of()))
        .withMessageMatching(
            "COMM_MASTER_ADDR is rank-0.train, an unknown host, also after .* s; .*")
        .withCauseInstanceOf(UnknownHostException.class)
        .satisfies(e -> assertThat(e.reason()).isEqualTo(Reason.ADDRESS));
  }

  @ParameterizedTest
  @ValueSource(strings = {"10.0.0.300", "fe80::1%no-such-interface"})
  void join_addressIsWrong_isNotAskedForAgain(String address) {
    var factory =
        factory(name -> {
          throw unknown(name);
        });
    assertThatExceptionOfType(JoinException.class)
        .isThrownBy(() -> factory.join(config(address).build(), List.of()))
        .withMessageContainingAll(address, "correct it")
        .satisfies(e -> assertThat(e.reason()).isEqualTo(Reason.ADDRESS));
    assertThat(asked).hasValue(1);
  }

  @Test
  void join_interruptedBeforeTheNameIsKnown_endsAtOnce() {
    var factory =
        factory(name -> {
          Thread.currentThread().interrupt();
          throw unknown(name);
        });
    assertThatExceptionOfType(InterruptedCallException.class)
        .isThrownBy(() -> factory.join(config("rank-0.train").build(), List.of()));
    assertThat(Thread.interrupted()).isTrue();
    assertThat(asked).hasValue(1);
  }
}
