package org.comm4j.core.session;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.comm4j.api.spi.Session.Failure;
import org.comm4j.core.session.FrameCodec.ProtocolException;
import org.jspecify.annotations.Nullable;

/// One end of a control connection: frames over a socket that never blocks. For one thread.
///
/// It reads into a buffer that grows only up to the frame that is announced, and only if that is
/// within the limit: small until a host has accepted the peer, or a rank has seen that it is a
/// host.
final class Connection {
  private static final int READS_PER_TURN = 16;
  private static final int FIRST_BUFFER_BYTES = 1024;

  /// One write takes them: hosts of many ranks have many small frames for each. What it does not
  /// get rid of has been copied in vain.
  private static final int FRAMES_PER_WRITE = 256;

  private static final int BYTES_PER_WRITE = 256 << 10;

  /// What may wait for a peer that does not read.
  private static final long MAX_QUEUED_BYTES = 256L << 20;

  private final SocketChannel channel;
  private final SelectionKey key;
  private final ArrayDeque<ByteBuffer> queue = new ArrayDeque<>();
  private ByteBuffer in = ByteBuffer.allocate(FIRST_BUFFER_BYTES);
  private int limitBytes = FrameCodec.MAX_JOIN_BYTES;
  private long queuedBytes;
  private Frame.@Nullable Hello greeting;
  private boolean finishing;
  private boolean outputShut;
  private long heardNs;
  private long sentNs;

  /// @param channel connected; from now on this connection's
  Connection(SocketChannel channel, Selector selector, long nowNs) throws IOException {
    this.channel = channel;
    this.heardNs = nowNs;
    this.sentNs = nowNs;
    channel.configureBlocking(false);
    channel.setOption(java.net.StandardSocketOptions.TCP_NODELAY, true);
    this.key = channel.register(selector, SelectionKey.OP_READ, this);
  }

  /// Has frames of every size pass from now on.
  void accept() {
    limitBytes = FrameCodec.MAX_FRAME_BYTES;
  }

  /// Queues the host's first word, which the peer's proof is about.
  void greet(Frame.Hello hello) throws IOException {
    greeting = hello;
    send(hello);
  }

  /// What [#greet] has sent.
  Frame.Hello greeting() {
    return Objects.requireNonNull(greeting);
  }

  /// When something came from the peer, or [#forgive] was called.
  long heardNs() {
    return heardNs;
  }

  /// When something was last sent.
  long sentNs() {
    return sentNs;
  }

  /// Counts the peer's silence from now on.
  void forgive(long nowNs) {
    heardNs = nowNs;
  }

  /// Where its own end is.
  InetAddress ownAddress() throws IOException {
    return ((InetSocketAddress) channel.getLocalAddress()).getAddress();
  }

  boolean isOpen() {
    return channel.isOpen();
  }

  boolean isFlushed() {
    return queue.isEmpty();
  }

  /// Reads what is there.
  ///
  /// @return the frames that are complete now
  /// @throws EOFException when the peer has closed
  /// @throws ProtocolException when what came is not a frame
  List<Frame> read(long nowNs) throws IOException, ProtocolException {
    var frames = new ArrayList<Frame>();
    for (int i = 0; i < READS_PER_TURN; i++) {
      int bytes;
      try {
        bytes = channel.read(in);
      } catch (IOException e) {
        if (frames.isEmpty()) {
          throw e;
        }
        return frames; // the next read tells again
      }
      if (bytes < 0 && frames.isEmpty()) {
        throw new EOFException("end of stream");
      }
      if (bytes <= 0) {
        return frames;
      }
      heardNs = nowNs;
      parse(frames);
    }
    return frames;
  }

  private void parse(List<Frame> frames) throws ProtocolException {
    in.flip();
    while (in.remaining() >= Integer.BYTES) {
      int bytes = in.getInt(in.position());
      if (bytes < 1 || bytes > limitBytes) {
        throw new ProtocolException("a frame of %d bytes".formatted(bytes));
      }
      if (in.remaining() < Integer.BYTES + bytes) {
        break;
      }
      frames.add(FrameCodec.decode(in.slice(in.position() + Integer.BYTES, bytes)));
      in.position(in.position() + Integer.BYTES + bytes);
    }
    in.compact();
    if (in.position() >= Integer.BYTES) {
      grow(Integer.BYTES + in.getInt(0));
    }
  }

  /// Makes room for the frame that has begun; its length has been checked.
  private void grow(int bytes) {
    if (in.capacity() < bytes) {
      in = ByteBuffer.allocate(bytes).put(in.flip());
    }
  }

  /// Queues a frame; [#flush] sends it.
  void send(Frame frame) throws IOException {
    send(FrameCodec.encode(frame));
  }

  /// Queues a frame that [FrameCodec#encode] has made.
  void send(ByteBuffer frame) throws IOException {
    if (!channel.isOpen() || finishing) {
      return;
    }
    if (queuedBytes + frame.remaining() > MAX_QUEUED_BYTES) {
      throw new IOException(Failure.UNREAD);
    }
    queue.add(frame.duplicate());
    queuedBytes += frame.remaining();
  }

  /// Sends what is queued, as far as the socket takes it.
  void flush(long nowNs) throws IOException {
    while (!queue.isEmpty()) {
      ByteBuffer[] frames = next();
      long bytes = channel.write(frames);
      queuedBytes -= bytes;
      if (bytes > 0) {
        sentNs = nowNs;
      }
      for (ByteBuffer frame : frames) {
        if (frame.hasRemaining()) {
          interest(SelectionKey.OP_READ | SelectionKey.OP_WRITE);
          return;
        }
        queue.removeFirst();
      }
    }
    interest(SelectionKey.OP_READ);
    if (finishing && !outputShut) {
      outputShut = true;
      channel.shutdownOutput();
    }
  }

  /// The first frames, one at least.
  private ByteBuffer[] next() {
    var frames = new ArrayList<ByteBuffer>();
    int bytes = 0;
    for (ByteBuffer frame : queue) {
      bytes += frame.remaining();
      if (!frames.isEmpty() && bytes > BYTES_PER_WRITE) {
        break;
      }
      frames.add(frame);
      if (frames.size() == FRAMES_PER_WRITE) {
        break;
      }
    }
    return frames.toArray(ByteBuffer[]::new);
  }

  private void interest(int operations) throws ClosedChannelException {
    if (!key.isValid()) {
      throw new ClosedChannelException();
    }
    if (key.interestOps() != operations) {
      key.interestOps(operations);
    }
  }

  /// Says nothing after what is queued. The peer sees the end, and its answer is its own end.
  void finish() {
    finishing = true;
  }

  boolean isFinishing() {
    return finishing;
  }

  /// Closes at once.
  void close() {
    key.cancel();
    try {
      channel.close();
    } catch (IOException e) {
      // The descriptor is freed all the same.
    }
  }
}
