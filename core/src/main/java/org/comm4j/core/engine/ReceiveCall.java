package org.comm4j.core.engine;

import static java.util.Objects.requireNonNull;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.DataType;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.PointToPoint.Receive;
import org.comm4j.api.Received;
import org.jspecify.annotations.Nullable;

/// A receive that waits for its message, then for the message's bytes.
final class ReceiveCall extends Arrival {
  private static final long MOST_READ_BYTES = 1 << 20; // then others have a turn

  private final Receive receive;
  private final MemorySegment data;
  private @Nullable Message message;
  private boolean reads; // the sender's memory, not yet to its end
  private @Nullable MemorySegment theirs; // that, if it is not only copied
  private boolean doomed; // by a sender that has taken it back
  private long got; // bytes

  private ReceiveCall(Context context, Receive receive, @Nullable Thread boundTo) {
    super(context, receive.source(), boundTo);
    this.receive = receive;
    this.data = Buffers.segment(receive.data());
  }

  static ReceiveCall of(Context context, Receive receive) {
    return new ReceiveCall(context, receive, Buffers.boundTo(Buffers.segment(receive.data())));
  }

  boolean accepts(Message candidate) {
    return accepts(candidate.source(), candidate.tag());
  }

  boolean accepts(int source, int tag) {
    return Messages.accepts(receive.source(), receive.tag(), source, tag);
  }

  /// Takes a message that it accepts.
  void match(Message matched) {
    message = matched;
    matched.receiver(this);
    if (!fits(receive, matched.type(), matched.count())) {
      throw misfit(context, receive, matched);
    }
  }

  static boolean fits(Receive receive, DataType type, long count) {
    return type == receive.data().type() && count <= receive.data().count();
  }

  static MismatchedCallException misfit(Context context, Receive receive, Message message) {
    return new MismatchedCallException(
        "%s came to rank %d's receive of %s (expected: the same type and at most as many elements)"
            .formatted(message, context.rank(), receive.data()));
  }

  @Override
  boolean leavesTheRest() {
    return true;
  }

  /// Takes what has come of its message; may be called on any thread.
  @Override
  boolean advance() {
    Message from = message;
    if (from == null || hasEnded() || doomed || !isHere()) {
      return false;
    }
    boolean moved = false;
    for (KeptPayloads.Payload payload = from.nextPayload();
        payload != null;
        payload = from.nextPayload()) {
      take(payload.memory());
      context.kept().consumed(from.source(), payload);
      moved = true;
    }
    SendCall local = from.local();
    if (local != null) {
      take(local.data());
      local.complete(null);
      moved = true;
    }
    if (from.takeRequest()) {
      answer(from);
      moved = true;
    }
    if (reads && !doomed) {
      moved |= readOn(from);
    }
    finishIfWhole(from);
    return moved;
  }

  private void answer(Message from) {
    Offers offers = engine.offers();
    if (offers == null || from.place() == 0) {
      context.messages().grant(from);
      return;
    }
    reads = true;
    if (!offers.isOnlyCopied(from.place())) {
      theirs =
          offers.offered(
              context.worldRank(from.source()), from.place(), from.type().bytes(from.count()));
      doomed = theirs == null;
    }
  }

  /// A sender whose communicator is broken may close or change what it has offered: nothing that
  /// comes of it counts, and nothing is done any more until why is known.
  @Override
  boolean waitsInsteadOf(Throwable thrown) {
    MemorySegment memory = theirs;
    doomed |= memory != null && !memory.scope().isAlive();
    return doomed;
  }

  private boolean readOn(Message from) {
    long left = from.type().bytes(from.count()) - got;
    long bytes = Math.min(MOST_READ_BYTES, left);
    if (bytes > 0) {
      read(from, bytes);
    }
    if (!doomed && bytes == left && context.messages().read(from)) {
      reads = false;
      theirs = null;
    }
    return bytes > 0 || !reads;
  }

  private void read(Message from, long bytes) {
    MemorySegment memory = theirs;
    if (memory != null) {
      take(memory.asSlice(got, bytes));
    } else if (requireNonNull(engine.offers())
        .copy(context.worldRank(from.source()), from.place(), got, data, got, bytes)) {
      got += bytes;
    } else {
      doomed = true;
      couldNotCopy(from.source());
    }
  }

  @Override
  boolean mayHaveRevoked(int peer) {
    return requireNonNull(message).isConfirmed(); // its owner says whether it was kept
  }

  /// Takes a payload straight from the wire.
  void take(Message from, MemorySegment payload) {
    take(payload);
    finishIfWhole(from);
  }

  private void take(MemorySegment payload) {
    MemorySegment.copy(payload, 0, data, got, payload.byteSize());
    got += payload.byteSize();
  }

  void finishIfWhole(Message from) {
    if (from.hasArrived() && got == from.type().bytes(from.count())) {
      complete(new Received(from.source(), from.tag(), from.count()));
    }
  }

  @Override
  @Nullable Message message() {
    return message;
  }

  @Override
  boolean isMemoryClosed() {
    SendCall local = message == null ? null : message.local();
    return !data.scope().isAlive() || (local != null && local.isMemoryClosed());
  }

  @Override
  boolean concernsPeers() {
    return message != null && message.source() != context.rank();
  }

  @Override
  boolean touches(MemorySegment memory) {
    return Buffers.overlap(memory, data);
  }

  @Override
  void release() {
    context.messages().forget(this);
  }

  @Override
  String describe() {
    return "receive(%s from rank %s, tag %s)"
        .formatted(receive.data(), Messages.any(receive.source()), Messages.any(receive.tag()));
  }
}
