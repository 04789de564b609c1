package org.comm4j.core.engine;

import static java.util.Objects.requireNonNull;

import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.List;
import org.comm4j.api.PointToPoint.Send;
import org.jspecify.annotations.Nullable;

/// A message on its way out. One to this rank itself is handed over in memory.
final class SendCall extends Call {
  private final Send send;
  private final MemorySegment data;
  private final long place; // where the receiver may read it, or 0
  private final @Nullable Outgoing outgoing;

  /// @param awaited whether the calling thread waits until it has ended
  SendCall(Context context, Send send, long number, boolean awaited, @Nullable Thread boundTo) {
    super(context, boundTo);
    this.send = send;
    this.data = Buffers.segment(send.data());
    this.place = offer(awaited);
    this.outgoing =
        send.destination() == context.rank()
            ? null
            : new Outgoing(
                context.link(send.destination()),
                Frame.MESSAGE,
                context.id(),
                send.tag(),
                number,
                send.data().type().id(),
                send.data().count(),
                0,
                data,
                engine.sendsSynchronously());
    if (place != 0) {
      requireNonNull(outgoing).offer(place, offers().mayGoUnseen(place, data, awaited));
    }
  }

  private long offer(boolean awaited) {
    Offers offers = engine.offers();
    return offers == null || send.destination() == context.rank()
        ? 0
        : offers.offer(context.worldRank(send.destination()), data, awaited);
  }

  private Offers offers() {
    return requireNonNull(engine.offers());
  }

  MemorySegment data() {
    return data;
  }

  @Override
  boolean advance() {
    if (outgoing == null) {
      return false;
    }
    if (place != 0 && isMemoryClosed()) {
      throw new IllegalStateException("Already closed"); // the JDK's words for what a copy meets
    }
    boolean moved = outgoing.advance(engine.header());
    if (outgoing.isDone()) {
      complete(null);
    }
    return moved;
  }

  /// Whether this is the send that a peer answers.
  boolean matches(int worldPeer, int tag, long number) {
    return outgoing != null && outgoing.matches(worldPeer, tag, number);
  }

  void granted() {
    requireNonNull(outgoing).grant();
  }

  /// The receiver has read it where it lies.
  void read() {
    requireNonNull(outgoing).read(offers().hasWithdrawn());
  }

  @Override
  void missing(BitSet ranks) {
    ranks.set(send.destination());
  }

  /// Whoever sends much, or with `COMM_SYNC_SEND` anything, waits for the receive: a program that
  /// has worked with little data, which is sent at once, may come here with more.
  @Override
  String lacks(List<Integer> absent) {
    if (outgoing == null) {
      return "a receive of its own: so much to oneself waits for that; start() the receive before";
    }
    return Lacks.ofRanks(
        absent,
        outgoing.isAskedFor() ? "taken all of it" : "called the matching receive",
        outgoing.isAskedFor() || isPart()
            ? ""
            : "where both send first, start() one of the sends or use sendReceive");
  }

  @Override
  boolean isMemoryClosed() {
    return !data.scope().isAlive();
  }

  @Override
  void inquire() {
    context.inquiries().ask(send.destination());
  }

  @Override
  boolean concernsPeers() {
    return outgoing != null;
  }

  @Override
  boolean touches(MemorySegment memory) {
    return Buffers.overlap(memory, data);
  }

  @Override
  void release() {
    if (place == 0) {
      return;
    }
    if (requireNonNull(outgoing).isDone()) {
      offers().takeBack(place);
    } else {
      offers().withdraw(place);
    }
  }

  @Override
  String describe() {
    return "send(%s to rank %d, tag %d)".formatted(send.data(), send.destination(), send.tag());
  }
}
