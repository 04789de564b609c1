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
  private final long place;
  private boolean started;
  private boolean requested;
  private boolean granted;
  private boolean read; // by the receiver, where it lies
  private final boolean mustBeGranted;
  private long sent;

  /// @param place where the receiver may read it instead, else 0
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
      long place,
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
    this.place = place;
    this.mustBeGranted = mustBeGranted;
  }

  boolean isDone() {
    return started && sent == data.byteSize();
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

  void read() {
    read = true;
  }

  /// Sends as much as goes now.
  ///
  /// @return whether something moved
  boolean advance(long[] header) {
    if (read) {
      return confirm(header);
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
      long word = Frame.word(Frame.REQUEST_MESSAGE, 0, aux, context);
      link.control(header, word, sequence, what, count, place);
    }
  }

  /// Tells the receiver that what it has read was the message; not as a control frame, which may
  /// never leave once this rank has closed.
  private boolean confirm(long[] header) {
    Frame.write(header, Frame.word(Frame.KEPT_MESSAGE, 0, aux, context), sequence, 0, 0, 0);
    if (!link.offer(header, data.asSlice(0, 0))) {
      return false;
    }
    started = true;
    sent = data.byteSize();
    return true;
  }
}
