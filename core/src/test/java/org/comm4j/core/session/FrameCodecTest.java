package org.comm4j.core.session;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.comm4j.api.JoinException;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session.Member;
import org.comm4j.core.session.FrameCodec.ProtocolException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

final class FrameCodecTest {
  private static final JoinRequest REQUEST =
      new JoinRequest(
          "1.2.3",
          "job ü",
          7,
          new Member(
              2,
              new HostIdentity("host", "boot/1/2/3/0"),
              4711,
              Set.of(0, 63, 64, 200),
              List.of("shm", "aeron")),
          5,
          1000,
          2000,
          "backend=auto\ncheck=BASIC");

  static List<Frame> frames() {
    return List.of(
        new Frame.ForeignJoin(FrameCodec.PROTOCOL + 1),
        new Frame.Refused(JoinException.Reason.LATE, "too late"),
        new Frame.Retry("not yet"),
        new Frame.Joined(REQUEST.member()),
        new Frame.Welcome("00112233445566778899aabbccddeeff"),
        new Frame.Heartbeat(),
        new Frame.Lost("silent"),
        new Event.Fail(3, "silent for 10.2 s", null),
        new Event.Leave(0),
        new Event.Halt(1, 255));
  }

  private static Frame.Join join() {
    return new Frame.Join(
        REQUEST, new byte[Authenticator.NONCE_BYTES], new byte[Authenticator.PROOF_BYTES]);
  }

  static List<Frame> framesWithBytes() {
    String id = "00112233445566778899aabbccddeeff";
    return List.of(
        new Frame.Hello(FrameCodec.PROTOCOL, new byte[0], id),
        new Frame.Hello(FrameCodec.PROTOCOL, new byte[Authenticator.NONCE_BYTES], id),
        new Frame.Join(REQUEST),
        join(),
        join().withProof(new byte[0]),
        new Frame.Accepted(Frame.NO_RANK, "pid 1 on host", new byte[] {1}),
        new Event.Contribute(1, Topic.exchange("key"), new byte[FrameCodec.MAX_VALUE_BYTES]),
        new Event.Contribute(1, Topic.agreement("key", List.of(4, 1)), new byte[] {1, 2}),
        new Event.Put(2, "key", new byte[0]),
        new Event.Abort(2, Long.MIN_VALUE, new byte[FrameCodec.MAX_REASON_BYTES]));
  }

  @ParameterizedTest
  @MethodSource("frames")
  void decode_encoded_isTheSame(Frame frame) throws ProtocolException {
    assertThat(FrameCodec.decode(content(frame))).isEqualTo(frame);
  }

  @ParameterizedTest
  @MethodSource("framesWithBytes")
  void decode_encodedBytes_areTheSame(Frame frame) throws ProtocolException {
    assertThat(FrameCodec.decode(content(frame))).usingRecursiveComparison().isEqualTo(frame);
  }

  @Test
  void encode_largestFrames_fitTheLimits() {
    var members = IntStream.range(0, FrameCodec.MAX_RANKS).boxed().toList();
    String key = "k".repeat(FrameCodec.MAX_KEY_BYTES);
    Frame largest =
        new Event.Contribute(
            0, Topic.agreement(key, members), new byte[FrameCodec.MAX_VALUE_BYTES]);
    assertThat(content(largest).remaining()).isLessThanOrEqualTo(FrameCodec.MAX_FRAME_BYTES);
    assertThat(content(join()).remaining()).isLessThanOrEqualTo(FrameCodec.MAX_JOIN_BYTES);
  }

  @ParameterizedTest
  @ValueSource(strings = {"u", "ü", "…", "😀"})
  void encode_longText_isCutToWhatFits(String character) throws ProtocolException {
    String whole = character.repeat(FrameCodec.MAX_TEXT_BYTES / character.getBytes(UTF_8).length);
    assertThat(through(whole)).isEqualTo(whole);
    String cut = through(character.repeat(100_000));
    assertThat(cut).startsWith(character.repeat(500)).endsWith(character + "…");
    assertThat(cut.length()).isBetween(whole.length() - 4, whole.length());
  }

  private static String through(String text) throws ProtocolException {
    return ((Frame.Lost) FrameCodec.decode(content(new Frame.Lost(text)))).evidence();
  }

  @Test
  void decode_wrongMagic_isRefused() {
    ByteBuffer bytes = copy(content(join()));
    bytes.put(3, (byte) 0);
    assertThatThrownBy(() -> FrameCodec.decode(bytes)).isInstanceOf(ProtocolException.class);
  }

  @Test
  void decode_anyBytes_isAFrameOrAProtocolException() {
    long seed = System.nanoTime();
    var random = new Random(seed);
    var all = new ArrayList<>(frames());
    all.addAll(framesWithBytes());
    for (int round = 0; round < 20_000; round++) {
      ByteBuffer bytes = copy(content(all.get(random.nextInt(all.size()))));
      for (int change = random.nextInt(4); change >= 0 && bytes.hasRemaining(); change--) {
        int at = random.nextInt(Math.min(bytes.remaining(), 100));
        bytes.put(at, (byte) random.nextInt(256));
      }
      bytes.limit(random.nextInt(5) == 0 ? random.nextInt(bytes.limit()) : bytes.limit());
      try {
        assertThat(FrameCodec.decode(bytes)).as("seed %d", seed).isNotNull();
      } catch (ProtocolException e) {
        assertThat(e.getMessage()).as("seed %d", seed).isNotBlank();
      } catch (RuntimeException e) {
        throw new AssertionError("seed " + seed, e);
      }
    }
  }

  private static ByteBuffer content(Frame frame) {
    ByteBuffer bytes = FrameCodec.encode(frame);
    assertThat(bytes.getInt()).isEqualTo(bytes.remaining());
    return bytes.slice();
  }

  private static ByteBuffer copy(ByteBuffer bytes) {
    return ByteBuffer.allocate(bytes.remaining()).put(bytes).flip();
  }
}
