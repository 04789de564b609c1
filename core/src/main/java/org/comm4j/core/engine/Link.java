package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.List;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.transport.Transport;

/// The two directions between this rank and one peer: what may still be sent unasked, what is owed
/// back, and control frames that found no room.
final class Link {
  private final Transport transport;
  private final int peer;
  private final int maxPayloadBytes;
  private final long fullCredit;
  private final List<Link> backlog;
  private final ArrayDeque<long[]> controls = new ArrayDeque<>();
  private long credit;
  private long owed;

  /// @param backlog gets this link when control frames found no room
  Link(Transport transport, int peer, long fullCredit, List<Link> backlog) {
    this.backlog = backlog;
    this.transport = transport;
    this.peer = peer;
    this.maxPayloadBytes = transport.maxPayloadBytes(peer) & -16; // whole elements of every type
    this.fullCredit = fullCredit;
    this.credit = fullCredit;
  }

  int peer() {
    return peer;
  }

  int maxPayloadBytes() {
    return maxPayloadBytes;
  }

  boolean hasCredit(long cost) {
    return credit >= cost;
  }

  void spend(long cost) {
    credit -= cost;
  }

  void refill(long cost) {
    credit = Math.min(fullCredit, credit + cost);
  }

  /// A payload that cost credit was consumed. Given back in portions, so that a stream of small
  /// payloads has few credit frames.
  void owe(long[] header, long cost) {
    owed += cost;
    if (owed >= fullCredit / 4) {
      control(header, Frame.word(Frame.CREDIT, 0, 0, 0), owed, 0, 0, 0);
      owed = 0;
    }
  }

  /// Sends a control frame, now or as soon as there is room.
  ///
  /// @throws TransportFailedException if it can't be sent: then it never is, and others may be
  void control(long[] header, long word, long sequence, long what, long count, long detail) {
    boolean isFirst = controls.isEmpty();
    controls.add(new long[] {word, sequence, what, count, detail});
    try {
      flush(header);
    } catch (TransportFailedException e) {
      controls.removeLast();
      throw e;
    }
    if (isFirst && hasControls()) {
      backlog.add(this);
    }
  }

  /// Whether something moved.
  boolean flush(long[] header) {
    boolean moved = false;
    while (!controls.isEmpty()) {
      long[] frame = controls.peekFirst();
      Frame.write(header, frame[0], frame[1], frame[2], frame[3], frame[4]);
      if (!transport.offer(peer, header, Buffers.NOTHING)) {
        break;
      }
      controls.removeFirst();
      moved = true;
    }
    return moved;
  }

  boolean hasControls() {
    return !controls.isEmpty();
  }

  /// Offers a payload, behind all control frames.
  boolean offer(long[] header, MemorySegment payload) {
    return controls.isEmpty() && transport.offer(peer, header, payload);
  }
}
