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
  private final boolean mustBeGranted;
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

  /// Sends as much as goes now.
  ///
  /// @return whether something moved
  boolean advance(long[] header) {
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
    if (!requested) {
      requested = true;
      int request = kind == Frame.COLLECTIVE ? Frame.REQUEST_COLLECTIVE : Frame.REQUEST_MESSAGE;
      link.control(header, Frame.word(request, 0, aux, context), sequence, what, count, detail);
    }
  }
}
