package org.comm4j.core.session;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CoderResult;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.stream.LongStream;
import org.comm4j.api.JoinException;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session.Member;

/// The bytes of frames: an `int` length of what follows, a `byte` type, the fields; big-endian.
///
/// Strings are UTF-8 behind a `short` length, byte arrays stand behind an `int` length. Each field
/// has its own limit and is checked against what is there before anything is allocated. A join
/// starts with magic, protocol version and authentication block in every version, so that ranks of
/// different versions can tell each other so. The block holds nothing without a secret, else the
/// host's nonce, or the rank's nonce and proof ([Authenticator]).
final class FrameCodec {
  /// `COMM4J` and a line end that text transfers would break.
  static final long MAGIC = 0x434F4D4D344A0D0AL;

  static final int PROTOCOL = 2;

  static final int MAX_RANKS = 16 * 1024;
  static final int MAX_KEY_BYTES = 1024;
  static final int MAX_VALUE_BYTES = 64 * 1024;
  static final int MAX_REASON_BYTES = 4 * 1024;
  static final int MAX_TEXT_BYTES = 2048;
  static final int MAX_BACKENDS = 32;
  private static final int MAX_PROCESSOR_WORDS = 128; // of 64 each, as many as Linux may have
  private static final int MAX_NAME_BYTES = 256;
  private static final int MAX_AUTHENTICATION_BYTES = 512;
  private static final int ID_BYTES = 16;

  /// The largest frame that a host reads before it has accepted a join.
  static final int MAX_JOIN_BYTES = 4 * 1024;

  /// The largest frame.
  static final int MAX_FRAME_BYTES =
      MAX_VALUE_BYTES + MAX_KEY_BYTES + Integer.BYTES * MAX_RANKS + 64;

  private static final byte HELLO = 1;
  private static final byte JOIN = 2;
  private static final byte ACCEPTED = 3;
  private static final byte REFUSED = 4;
  private static final byte RETRY = 5;
  private static final byte JOINED = 6;
  private static final byte WELCOME = 7;
  private static final byte HEARTBEAT = 8;
  private static final byte LOST = 9;
  private static final byte EXCHANGE = 20;
  private static final byte AGREE = 21;
  private static final byte PUT = 22;
  private static final byte ABORT = 23;
  private static final byte FAIL = 24;
  private static final byte LEAVE = 25;
  private static final byte HALT = 26;

  private FrameCodec() {}

  /// What came is not ours.
  static final class ProtocolException extends Exception {
    private static final long serialVersionUID = 1L;

    ProtocolException(String message) {
      super(message);
    }
  }

  /// A frame's bytes, its length in front, ready to be read.
  static ByteBuffer encode(Frame frame) {
    var out = new Out();
    switch (frame) {
      case Frame.Hello hello ->
          out.type(HELLO)
              .int64(MAGIC)
              .int16(hello.protocol())
              .bytes(hello.nonce())
              .raw(HexFormat.of().parseHex(hello.hostId()));
      case Frame.Join join -> join(out.type(JOIN), join);
      case Frame.ForeignJoin foreign ->
          out.type(JOIN).int64(MAGIC).int16(foreign.protocol()).bytes(new byte[0]);
      case Frame.Accepted accepted ->
          out.type(ACCEPTED)
              .int32(accepted.hostRank())
              .text(cut(accepted.host()))
              .bytes(accepted.proof());
      case Frame.Refused refused ->
          out.type(REFUSED).text(refused.reason().name()).text(cut(refused.message()));
      case Frame.Retry retry -> out.type(RETRY).text(cut(retry.why()));
      case Frame.Joined joined -> member(out.type(JOINED), joined.member());
      case Frame.Welcome welcome ->
          out.type(WELCOME).raw(HexFormat.of().parseHex(welcome.sessionId()));
      case Frame.Heartbeat _ -> out.type(HEARTBEAT);
      case Frame.Lost lost -> out.type(LOST).text(cut(lost.evidence()));
      case Event.Contribute event -> contribute(out, event);
      case Event.Put event ->
          out.type(PUT).int32(event.rank()).text(event.key()).bytes(event.value());
      case Event.Abort event ->
          out.type(ABORT).int32(event.rank()).int64(event.scope()).bytes(event.reason());
      case Event.Fail event -> out.type(FAIL).int32(event.rank()).text(cut(event.evidence()));
      case Event.Leave event -> out.type(LEAVE).int32(event.rank());
      case Event.Halt event -> out.type(HALT).int32(event.rank()).int32(event.code());
    }
    return out.frame();
  }

  private static void join(Out out, Frame.Join join) {
    out.int64(MAGIC).int16(PROTOCOL);
    out.int32(join.nonce().length + join.proof().length).raw(join.nonce()).raw(join.proof());
    JoinRequest request = join.request();
    out.text(request.version()).text(request.job()).int32(request.generation());
    out.int32(request.worldSize()).int64(request.patienceMillis()).int64(request.livenessMillis());
    member(out, request.member());
    out.text(request.settings());
  }

  private static void member(Out out, Member member) {
    out.int32(member.rank()).text(member.host().name()).text(member.host().id());
    long[] processors = Processors.bits(member.processors());
    out.int64(member.pid()).int16(processors.length);
    LongStream.of(processors).forEach(out::int64);
    out.int8(member.backends().size());
    member.backends().forEach(out::text);
  }

  private static void contribute(Out out, Event.Contribute event) {
    switch (event.topic().kind()) {
      case EXCHANGE -> out.type(EXCHANGE).int32(event.rank()).text(event.topic().key());
      case AGREEMENT -> {
        out.type(AGREE).int32(event.rank()).text(event.topic().key());
        out.int32(event.topic().members().size());
        event.topic().members().forEach(out::int32);
      }
    }
    out.bytes(event.bytes());
  }

  /// Reads a frame.
  ///
  /// @param bytes the frame without its length, all of it
  static Frame decode(ByteBuffer bytes) throws ProtocolException {
    var in = new In(bytes);
    try {
      Frame frame = decode(in);
      if (bytes.hasRemaining() && !isForeign(frame)) {
        throw new ProtocolException("%d bytes too many".formatted(bytes.remaining()));
      }
      return frame;
    } catch (BufferUnderflowException e) {
      throw new ProtocolException("a frame is shorter than its fields");
    }
  }

  /// Whether a frame may have parts that this protocol does not know.
  private static boolean isForeign(Frame frame) {
    return frame instanceof Frame.ForeignJoin
        || (frame instanceof Frame.Hello hello && hello.protocol() != PROTOCOL);
  }

  private static Frame decode(In in) throws ProtocolException {
    byte type = in.int8();
    return switch (type) {
      case HELLO -> hello(in);
      case JOIN -> {
        int protocol = in.greeting();
        byte[] block = in.bytes(MAX_AUTHENTICATION_BYTES);
        yield protocol == PROTOCOL ? join(in, block) : new Frame.ForeignJoin(protocol);
      }
      case ACCEPTED ->
          new Frame.Accepted(
              in.int32(), in.text(MAX_TEXT_BYTES), in.bytes(MAX_AUTHENTICATION_BYTES));
      case REFUSED -> new Frame.Refused(reason(in.text(MAX_NAME_BYTES)), in.text(MAX_TEXT_BYTES));
      case RETRY -> new Frame.Retry(in.text(MAX_TEXT_BYTES));
      case JOINED -> new Frame.Joined(member(in));
      case WELCOME -> new Frame.Welcome(HexFormat.of().formatHex(in.raw(ID_BYTES)));
      case HEARTBEAT -> new Frame.Heartbeat();
      case LOST -> new Frame.Lost(in.text(MAX_TEXT_BYTES));
      case EXCHANGE ->
          new Event.Contribute(
              in.rank(), Topic.exchange(in.text(MAX_KEY_BYTES)), in.bytes(MAX_VALUE_BYTES));
      case AGREE ->
          new Event.Contribute(
              in.rank(),
              Topic.agreement(in.text(MAX_KEY_BYTES), in.ranks()),
              in.bytes(MAX_VALUE_BYTES));
      case PUT -> new Event.Put(in.rank(), in.text(MAX_KEY_BYTES), in.bytes(MAX_VALUE_BYTES));
      case ABORT -> new Event.Abort(in.rank(), in.int64(), in.bytes(MAX_REASON_BYTES));
      case FAIL -> new Event.Fail(in.rank(), in.text(MAX_TEXT_BYTES), null);
      case LEAVE -> new Event.Leave(in.rank());
      case HALT -> new Event.Halt(in.rank(), in.int32());
      default -> throw new ProtocolException("a frame of the unknown type " + type);
    };
  }

  private static Frame.Hello hello(In in) throws ProtocolException {
    int protocol = in.greeting();
    byte[] nonce = in.bytes(MAX_AUTHENTICATION_BYTES);
    byte[] hostId = protocol == PROTOCOL ? in.raw(ID_BYTES) : new byte[0];
    return new Frame.Hello(protocol, nonce, HexFormat.of().formatHex(hostId));
  }

  private static Frame.Join join(In in, byte[] block) throws ProtocolException {
    String version = in.text(MAX_NAME_BYTES);
    String job = in.text(MAX_KEY_BYTES);
    int generation = in.int32();
    int worldSize = in.int32();
    long patienceMillis = in.int64();
    long livenessMillis = in.int64();
    Member member = member(in);
    String settings = in.text(MAX_TEXT_BYTES);
    if (worldSize < 1 || worldSize > MAX_RANKS || member.rank() >= worldSize || generation < 0) {
      throw new ProtocolException(
          "rank %d of %d, generation %d".formatted(member.rank(), worldSize, generation));
    }
    if (patienceMillis < 0 || livenessMillis < 1) {
      throw new ProtocolException(
          "patience %d ms, liveness %d ms".formatted(patienceMillis, livenessMillis));
    }
    int nonceBytes = Math.min(block.length, Authenticator.NONCE_BYTES);
    return new Frame.Join(
        new JoinRequest(
            version, job, generation, member, worldSize, patienceMillis, livenessMillis, settings),
        Arrays.copyOf(block, nonceBytes),
        Arrays.copyOfRange(block, nonceBytes, block.length));
  }

  private static Member member(In in) throws ProtocolException {
    int rank = in.rank();
    var host = new HostIdentity(in.text(MAX_NAME_BYTES), in.text(MAX_NAME_BYTES));
    long pid = in.int64();
    Set<Integer> processors = in.processors();
    int count = in.int8();
    if (count < 0 || count > MAX_BACKENDS) {
      throw new ProtocolException(count + " backends");
    }
    var backends = new ArrayList<String>();
    for (int i = 0; i < count; i++) {
      backends.add(in.text(MAX_NAME_BYTES));
    }
    return new Member(rank, host, pid, processors, backends);
  }

  private static JoinException.Reason reason(String name) throws ProtocolException {
    try {
      return JoinException.Reason.valueOf(name);
    } catch (IllegalArgumentException e) {
      throw new ProtocolException("the unknown reason " + name);
    }
  }

  /// A text cut to what fits into a text field.
  static String cut(String text) {
    if (text.length() <= MAX_TEXT_BYTES / 3 || utf8(text).length <= MAX_TEXT_BYTES) {
      return text;
    }
    CharBuffer rest = CharBuffer.wrap(text);
    ByteBuffer room = ByteBuffer.allocate(MAX_TEXT_BYTES - utf8("…").length);
    CoderResult _ =
        StandardCharsets.UTF_8
            .newEncoder()
            .onMalformedInput(CodingErrorAction.REPLACE)
            .encode(rest, room, true);
    return text.substring(0, rest.position()) + "…";
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static final class Out {
    private ByteBuffer buffer = ByteBuffer.allocate(256).putInt(0);

    Out type(byte type) {
      return int8(type);
    }

    Out int8(int value) {
      room(Byte.BYTES).put((byte) value);
      return this;
    }

    Out int16(int value) {
      room(Short.BYTES).putShort((short) value);
      return this;
    }

    Out int32(int value) {
      room(Integer.BYTES).putInt(value);
      return this;
    }

    Out int64(long value) {
      room(Long.BYTES).putLong(value);
      return this;
    }

    Out text(String text) {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      return int16(bytes.length).raw(bytes);
    }

    Out bytes(byte[] bytes) {
      return int32(bytes.length).raw(bytes);
    }

    Out raw(byte[] bytes) {
      room(bytes.length).put(bytes);
      return this;
    }

    ByteBuffer frame() {
      return buffer.putInt(0, buffer.position() - Integer.BYTES).flip().asReadOnlyBuffer();
    }

    private ByteBuffer room(int bytes) {
      if (buffer.remaining() < bytes) {
        int capacity = Math.max(2 * buffer.capacity(), buffer.position() + bytes);
        buffer =
            ByteBuffer.wrap(Arrays.copyOf(buffer.array(), capacity)).position(buffer.position());
      }
      return buffer;
    }
  }

  private record In(ByteBuffer buffer) {
    byte int8() {
      return buffer.get();
    }

    int int32() {
      return buffer.getInt();
    }

    long int64() {
      return buffer.getLong();
    }

    int rank() throws ProtocolException {
      int rank = int32();
      if (rank < 0 || rank >= MAX_RANKS) {
        throw new ProtocolException("rank " + rank);
      }
      return rank;
    }

    Set<Integer> processors() throws ProtocolException {
      var words = new long[checked(Short.toUnsignedInt(buffer.getShort()), MAX_PROCESSOR_WORDS)];
      for (int i = 0; i < words.length; i++) {
        words[i] = int64();
      }
      return Processors.of(BitSet.valueOf(words));
    }

    List<Integer> ranks() throws ProtocolException {
      int count = int32();
      if (count < 1 || count > buffer.remaining() / Integer.BYTES) {
        throw new ProtocolException(count + " members");
      }
      var ranks = new ArrayList<Integer>(count);
      for (int i = 0; i < count; i++) {
        ranks.add(rank());
      }
      return ranks;
    }

    /// Magic and protocol version.
    int greeting() throws ProtocolException {
      if (int64() != MAGIC) {
        throw new ProtocolException("not a comm4j session");
      }
      return Short.toUnsignedInt(buffer.getShort());
    }

    String text(int limit) throws ProtocolException {
      byte[] bytes = raw(checked(Short.toUnsignedInt(buffer.getShort()), limit));
      try {
        CharBuffer text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes));
        return text.toString();
      } catch (CharacterCodingException e) {
        throw new ProtocolException("a text that is not UTF-8");
      }
    }

    byte[] bytes(int limit) throws ProtocolException {
      return raw(checked(int32(), limit));
    }

    byte[] raw(int count) {
      if (count > buffer.remaining()) {
        throw new BufferUnderflowException();
      }
      var bytes = new byte[count];
      buffer.get(bytes);
      return bytes;
    }

    private static int checked(int bytes, int limit) throws ProtocolException {
      if (bytes < 0 || bytes > limit) {
        throw new ProtocolException("a field of %d bytes, more than %d".formatted(bytes, limit));
      }
      return bytes;
    }
  }
}
