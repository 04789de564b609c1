package org.comm4j.tck;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.SessionServer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Whoever can reach a session's port and is none of its ranks harms nobody.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class SessionPortTest {
  private static final Duration SOON = Duration.ofSeconds(20);

  /// The common pool has no thread for each where there are two processors.
  private static final Executor THREADS = task -> Thread.ofPlatform().daemon().start(task);

  private final List<AutoCloseable> opened = new ArrayList<>();

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable resource : opened.reversed()) {
      resource.close();
    }
  }

  @Test
  void garbage_whileRanksJoinAndTalk_harmsNobody() throws Exception {
    long seed = System.nanoTime();
    var random = new Random(seed);
    SessionServer server = server(2);
    CommConfig.Builder config = Configs.launched(2, server.port());
    var join0 = CompletableFuture.supplyAsync(() -> Joining.join(Joining.rank(config, 0)), THREADS);
    flood(server, random, 200);
    Session rank1 = (Session) Joining.join(Joining.rank(config, 1));
    opened.add(rank1);
    Session rank0 = (Session) join0.orTimeout(40, TimeUnit.SECONDS).join();
    opened.add(rank0);
    flood(server, random, 200);
    var other =
        CompletableFuture.supplyAsync(() -> rank0.exchange("k", new byte[9], SOON), THREADS);
    assertThat(rank1.exchange("k", new byte[9], SOON)).as("seed %d", seed).hasSize(2);
    assertThat(other.orTimeout(40, TimeUnit.SECONDS).join()).hasSize(2);
    assertThat(rank0.news()).isSameAs(Session.News.NONE);
    assertThat(rank1.news()).isSameAs(Session.News.NONE);
  }

  /// From another address, and from the rank's own.
  @ParameterizedTest
  @ValueSource(bytes = {2, 1})
  void flood_withoutEndWhileARankJoins_rankJoinsInTime(byte host) throws Exception {
    InetAddress source = InetAddress.getByAddress(new byte[] {127, 0, 0, host});
    SessionServer server = server(2);
    CommConfig.Builder config = Configs.launched(2, server.port());
    var join0 = CompletableFuture.supplyAsync(() -> Joining.join(Joining.rank(config, 0)), THREADS);
    int strangers = 200; // more than may stay, and fewer than may wait to be accepted
    var connected = new CountDownLatch(strangers);
    ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    try {
      for (int i = 0; i < strangers; i++) {
        boolean isNoisy = i % 4 == 0;
        threads.execute(() -> connectWithoutEnd(source, server, isNoisy, connected));
      }
      assertThat(connected.await(SOON.toSeconds(), TimeUnit.SECONDS)).isTrue();
      long start = System.nanoTime();
      Object rank1 = Joining.join(Joining.rank(config, 1));
      Duration took = Duration.ofNanos(System.nanoTime() - start);
      assertThat(rank1).isInstanceOf(Session.class);
      opened.add((Session) rank1);
      opened.add((Session) join0.orTimeout(SOON.toSeconds(), TimeUnit.SECONDS).join());
      Promise.JOIN_ANSWERED.keep("F49", "a join", took);
    } finally {
      threads.shutdownNow();
      threads.close();
    }
  }

  /// One connection after the other, until the thread is interrupted: each stays as long as it may.
  /// Were there more at once than the kernel keeps for the server, it would drop a rank's first
  /// try, whose next is a second later.
  private static void connectWithoutEnd(
      InetAddress source, SessionServer server, boolean isNoisy, CountDownLatch connected) {
    while (!Thread.currentThread().isInterrupted()) {
      try (var socket = new Socket()) {
        socket.bind(new InetSocketAddress(source, 0));
        socket.connect(address(server), (int) SOON.toMillis());
        connected.countDown();
        if (isNoisy) {
          socket.getOutputStream().write('?');
        }
        awaitEnd(socket);
      } catch (IOException e) {
        // The server has had enough of it.
      }
    }
  }

  /// Connections that send nothing, noise, half a frame, or a frame of 2 GiB, and stay.
  private void flood(SessionServer server, Random random, int connections) throws IOException {
    for (int i = 0; i < connections; i++) {
      var socket = new Socket();
      opened.add(socket);
      socket.connect(address(server), (int) SOON.toMillis());
      var noise = new byte[random.nextInt(6000)];
      random.nextBytes(noise);
      try {
        switch (i % 4) {
          case 0 -> {}
          case 1 -> socket.getOutputStream().write(noise);
          case 2 -> socket.getOutputStream().write(frame(4000, noise, 100));
          default -> socket.getOutputStream().write(frame(Integer.MAX_VALUE, noise, noise.length));
        }
      } catch (IOException e) {
        // The server has had enough of it.
      }
    }
  }

  private static byte[] frame(int bytes, byte[] content, int count) {
    int some = Math.min(count, content.length);
    return ByteBuffer.allocate(Integer.BYTES + some).putInt(bytes).put(content, 0, some).array();
  }

  @Test
  void stranger_isDismissedAtOnceOrAfterAWhile() throws Exception {
    SessionServer server = server(2);
    try (var noisy = new Socket();
        var mute = SocketChannel.open()) {
      noisy.connect(address(server));
      noisy.setSoTimeout((int) SOON.toMillis());
      noisy.getOutputStream().write("GET / HTTP/1.1\r\n\r\n".getBytes(UTF_8));
      mute.connect(address(server));
      mute.socket().setSoTimeout((int) SOON.toMillis());
      awaitEnd(noisy);
      assertThat(hasEnded(mute)).isFalse();
      awaitEnd(mute.socket());
    }
  }

  /// Reads what has come.
  private static boolean hasEnded(SocketChannel channel) throws IOException {
    channel.configureBlocking(false);
    ByteBuffer buffer = ByteBuffer.allocate(1000);
    int bytes;
    do {
      bytes = channel.read(buffer.clear());
    } while (bytes > 0);
    channel.configureBlocking(true);
    return bytes < 0;
  }

  @Test
  void address_isBoundExactly() throws Exception {
    var server =
        SessionServer.start(
            InetAddress.getByAddress(new byte[] {127, 0, 0, 2}),
            0,
            "job",
            1,
            Authenticator.NONE,
            new SessionServer.Listener() {});
    opened.add(server);
    try (var elsewhere = new Socket()) {
      IOException failure = null;
      try {
        elsewhere.connect(
            new InetSocketAddress(
                InetAddress.getByAddress(new byte[] {127, 0, 0, 1}), server.port()),
            1000);
      } catch (IOException e) {
        failure = e;
      }
      assertThat(failure).isInstanceOf(ConnectException.class);
    }
  }

  private static void awaitEnd(Socket socket) throws IOException {
    try {
      int next;
      do {
        next = socket.getInputStream().read();
      } while (next >= 0);
    } catch (SocketException e) {
      // Reset: that is an end as well.
    }
  }

  private SessionServer server(int size) {
    var server =
        SessionServer.start(
            InetAddress.getLoopbackAddress(),
            0,
            "job",
            size,
            Authenticator.NONE,
            new SessionServer.Listener() {});
    opened.add(server);
    return server;
  }

  private static InetSocketAddress address(SessionServer server) {
    return new InetSocketAddress(InetAddress.getLoopbackAddress(), server.port());
  }
}
