package org.comm4j.core.session;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.spi.Session.Member;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// A rank joins where a name has two addresses. What listens at one of them may be another's, the
/// host at the other one, and not there yet.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@EnabledOnOs(OS.LINUX) // where all of 127.0.0.0/8 is this host's
final class SeveralAddressesTest {
  private static final InetAddress FIRST = ownAddress(1);
  private static final InetAddress SECOND = ownAddress(2);

  private final List<AutoCloseable> opened = new ArrayList<>();

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable each : opened.reversed()) {
      each.close();
    }
  }

  /// Where nobody else listens or connects from by chance.
  private static InetAddress ownAddress(int last) {
    long process = ProcessHandle.current().pid();
    try {
      return InetAddress.getByAddress(
          new byte[] {127, (byte) (process >> 8), (byte) process, (byte) last});
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private ServerSocket listen(InetAddress address, int port) throws IOException {
    var listener = new ServerSocket(port, 8, address);
    opened.add(listener);
    listener.setSoTimeout(20_000);
    return listener;
  }

  private TcpSession start(int port) {
    return start(port, System::nanoTime);
  }

  private TcpSession start(int port, LongSupplier nanoTime) {
    List<InetAddress> both = List.of(FIRST, SECOND);
    var member =
        new Member(1, LocalHost.identity(), ProcessHandle.current().pid(), Set.of(), List.of());
    TcpSession rank =
        TcpSession.start(
            new Places(port, both, () -> both, nanoTime),
            new JoinRequest("1", "job", 0, member, 2, 20_000, 10_000, ""),
            Authenticator.NONE,
            TimeUnit.SECONDS.toNanos(5),
            true,
            nanoTime,
            _ -> {});
    opened.add(rank::close);
    return rank;
  }

  private static Socket greet(ServerSocket listener) throws Exception {
    Socket rank = listener.accept();
    SessionServerTest.greet(rank, InMemorySessions.randomId());
    return rank;
  }

  private static void refuse(ServerSocket listener) throws Exception {
    try (Socket rank = greet(listener)) {
      SessionServerTest.write(rank, new Frame.Refused(Reason.OTHER_JOB, "a test's"));
      assertThat(rank.getInputStream().read()).isNegative();
    }
  }

  private static void answerAsNoSession(ServerSocket listener) throws IOException {
    try (Socket rank = listener.accept()) {
      rank.getOutputStream().write("HTTP/1.1 400 Bad Request\r\n\r\n".getBytes(US_ASCII));
      assertThat(rank.getInputStream().read()).isNegative();
    }
  }

  private static void assertFails(TcpSession rank, Reason reason, String... words) {
    assertThatThrownBy(() -> rank.joined().orTimeout(20, TimeUnit.SECONDS).join())
        .cause()
        .isInstanceOfSatisfying(
            JoinException.class,
            e -> {
              assertThat(e.reason()).isEqualTo(reason);
              assertThat(e).hasMessageContainingAll(words);
            });
  }

  @Test
  void join_anothersSessionAtTheFirst_comesToTheSecond() throws Exception {
    ServerSocket first = listen(FIRST, 0);
    ServerSocket second = listen(SECOND, first.getLocalPort());
    start(first.getLocalPort());
    refuse(first);
    greet(second).close();
  }

  @Test
  void join_nobodyHasTheHost_saysWhatTheFirstSaid() throws Exception {
    ServerSocket first = listen(FIRST, 0);
    TcpSession rank = start(first.getLocalPort());
    refuse(first);
    assertFails(rank, Reason.OTHER_JOB, "a test's");
  }

  @Test
  void join_strangerAtTheSecond_waitsForTheFirst() throws Exception {
    ServerSocket second = listen(SECOND, 0);
    start(second.getLocalPort());
    answerAsNoSession(second);
    answerAsNoSession(second);
    greet(listen(FIRST, second.getLocalPort())).close();
  }

  @Test
  void join_nobodyComes_saysOfBothWhy() throws Exception {
    ServerSocket second = listen(SECOND, 0);
    var skippedNs = new AtomicLong();
    TcpSession rank = start(second.getLocalPort(), () -> System.nanoTime() + skippedNs.get());
    answerAsNoSession(second);
    answerAsNoSession(second);
    skippedNs.set(TimeUnit.SECONDS.toNanos(20));
    assertFails(
        rank,
        Reason.PROTOCOL,
        "at %s, %s port %d within 20".formatted(text(FIRST), text(SECOND), second.getLocalPort()),
        text(FIRST) + ": ",
        text(SECOND) + ": what listens at");
  }

  private static String text(InetAddress address) {
    return address.getHostAddress();
  }

  /// It is the host that says so.
  @Test
  void join_firstSaysToTryAgain_isTriedAgain() throws Exception {
    ServerSocket first = listen(FIRST, 0);
    ServerSocket second = listen(SECOND, first.getLocalPort());
    start(first.getLocalPort());
    try (Socket rank = greet(first)) {
      SessionServerTest.write(rank, new Frame.Retry("a test's"));
      try (var _ = greet(first)) {
        second.setSoTimeout(1);
        assertThatThrownBy(second::accept).isInstanceOf(SocketTimeoutException.class);
      }
    }
  }
}
