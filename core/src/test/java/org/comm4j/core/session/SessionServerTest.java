package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.core.session.FrameCodec.ProtocolException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class SessionServerTest {
  private final SessionServer server =
      SessionServer.start(
          InetAddress.getLoopbackAddress(), 0, "job", 2, new SessionServer.Listener() {});
  private final InetSocketAddress address =
      new InetSocketAddress(InetAddress.getLoopbackAddress(), server.port());

  @AfterEach
  void close() {
    server.close();
  }

  private static JoinRequest request(String version, int rank) {
    return new JoinRequest(
        version,
        "job",
        0,
        rank,
        2,
        20_000,
        10_000,
        LocalHost.identity(),
        ProcessHandle.current().pid(),
        List.of(),
        "");
  }

  private TcpSession start(String version, int rank) {
    return TcpSession.start(
        address, request(version, rank), 5_000_000_000L, System::nanoTime, _ -> {});
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
      ByteBuffer join = FrameCodec.encode(new Frame.ForeignJoin(99));
      var bytes = new byte[join.remaining()];
      join.get(bytes);
      socket.getOutputStream().write(bytes);
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

  private static Frame read(DataInputStream in) throws IOException, ProtocolException {
    return FrameCodec.decode(ByteBuffer.wrap(in.readNBytes(in.readInt())));
  }
}
