package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;

/// A message on its way out, cut into payloads.
final class Outgoing {
  private final Link link;
  private final int kind;
  private final long context;
  private final int aux;
  private final long sequence;
  private final long what;
  private final long count;
  private final long detail;
  private final MemorySegment data;
  private boolean started;
  private boolean requested;
  private boolean granted;
  private boolean read; // by the receiver, where it lies
  private boolean mustBeGranted;
  private long place; // where the receiver may read it instead, else 0
  private boolean confirmed; // that it was still the message when it was read
  private long sent;

  /// @param mustBeGranted whether nothing may leave before the receiver has asked for it
  Outgoing(
      Link link,
      int kind,
      long context,
      int aux,
      long sequence,
      long what,
      long count,
      long detail,
      MemorySegment data,
      boolean mustBeGranted) {
    this.link = link;
    this.kind = kind;
    this.context = context;
    this.aux = aux;
    this.sequence = sequence;
    this.what = what;
    this.count = count;
    this.detail = detail;
    this.data = data;
    this.mustBeGranted = mustBeGranted;
  }

  /// Lets the receiver read it where it lies, before anything has left.
  ///
  /// @param where for [Offers]
  /// @param toBeConfirmed whether the receiver waits to hear that what it has read was the message
  void offer(long where, boolean toBeConfirmed) {
    place = where;
    confirmed = toBeConfirmed;
    mustBeGranted = true;
  }

  boolean isDone() {
    return started && sent == data.byteSize();
  }

  /// Whether the receiver has asked for it: what credit covers goes unasked, and before it has
  /// come.
  boolean isAskedFor() {
    return granted || read;
  }

  int worldPeer() {
    return link.peer();
  }

  boolean matches(int worldPeer, int aux, long sequence) {
    return link.peer() == worldPeer && this.aux == aux && this.sequence == sequence;
  }

  void grant() {
    granted = true;
  }

  /// @param mayBeWaitedFor whether the receiver may wait for a confirmation that it has not been
  ///   promised
  void read(boolean mayBeWaitedFor) {
    read = true;
    confirmed |= mayBeWaitedFor;
  }

  /// Sends as much as goes now.
  ///
  /// @return whether something moved
  boolean advance(long[] header) {
    if (read) {
      return end(header);
    }
    boolean moved = false;
    while (!isDone()) {
      long payloadBytes = Math.min(link.maxPayloadBytes(), data.byteSize() - sent);
      long cost = Frame.cost(payloadBytes);
      if (!granted && (mustBeGranted || !link.hasCredit(cost))) {
        request(header);
        return moved;
      }
      int flags = granted ? 0 : Frame.CREDITED;
      Frame.write(header, Frame.word(kind, flags, aux, context), sequence, what, count, detail);
      if (!link.offer(header, data.asSlice(sent, payloadBytes))) {
        return moved;
      }
      if (!granted) {
        link.spend(cost);
      }
      started = true;
      sent += payloadBytes;
      moved = true;
    }
    return moved;
  }

  private void request(long[] header) {
    if (requested) {
      return;
    }
    requested = true;
    if (kind == Frame.COLLECTIVE) {
      long word = Frame.word(Frame.REQUEST_COLLECTIVE, 0, aux, context);
      link.control(header, word, sequence, what, count, detail);
    } else {
      int flags = confirmed ? Frame.CONFIRMED : 0;
      long word = Frame.word(Frame.REQUEST_MESSAGE, flags, aux, context);
      link.control(header, word, sequence, what, count, place);
    }
  }

  /// Tells the receiver that what it has read was the message, if it needs that; not as a control
  /// frame, which may never leave once this rank has closed.
  private boolean end(long[] header) {
    if (confirmed) {
      Frame.write(header, Frame.word(Frame.KEPT_MESSAGE, 0, aux, context), sequence, 0, 0, 0);
      if (!link.offer(header, data.asSlice(0, 0))) {
        return false;
      }
    }
    started = true;
    sent = data.byteSize();
    return true;
  }
}
