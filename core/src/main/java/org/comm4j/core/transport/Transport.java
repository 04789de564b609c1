package org.comm4j.core.transport;

import java.lang.foreign.MemorySegment;

/// Moves payloads between the ranks of one session: reliably, unchanged, once, and for each pair of
/// ranks in the order in which they were offered. The engine is its only caller. It starts no
/// thread that calls the engine; it is polled.
///
/// **Threads.** [#offer], [#poll] and the sizes are called by one thread at a time, not always the
/// same one. [#park] is called by one thread at a time too, but while it sleeps other threads call
/// `offer` and `poll`, and [#wakeUp] comes from any thread at any time, after [#close] too. So
/// `park` touches nothing that `poll` or `offer` use, unless that is made for several threads, and
/// holds no lock that they need. Any of them may be called by a thread that is interrupted;
/// `offer`, `poll` and `close` also by a virtual one. A thread that leaves a call as another one
/// closes may `poll` or `park` once more: that may throw, and must not touch what is freed.
public interface Transport extends AutoCloseable {
  /// The numbers of a header.
  int HEADER_LONGS = 5;

  /// The bytes of a header.
  int HEADER_BYTES = HEADER_LONGS * Long.BYTES;

  /// This rank.
  int rank();

  /// How many ranks.
  int size();

  /// The largest payload that [#offer] takes for this peer, in bytes; at least 256, constant, and
  /// the same from that peer to this rank.
  int maxPayloadBytes(int peer);

  /// Offers one payload to a peer. Never blocks and keeps neither header nor payload, which may be
  /// empty. What was taken arrives though this rank is not polled any more, or has closed; an offer
  /// that throws has sent nothing. What is offered to a peer that has closed or died may be taken,
  /// and goes nowhere, or may be refused for ever: the session says that it is gone.
  ///
  /// @param peer the receiving rank, in `0..size()-1`, not this rank
  /// @param header [#HEADER_LONGS] numbers that are delivered unchanged; the transport gives them
  ///   no meaning
  /// @param payload any segment, heap or native; at most `maxPayloadBytes(peer)` bytes
  /// @return false when there is no room, or the way to this peer is not open yet: poll, then offer
  ///   again
  /// @throws org.comm4j.api.TransportFailedException when the transport is broken, which it is not
  ///   by the end of a peer
  boolean offer(int peer, long[] header, MemorySegment payload);

  /// Delivers what has arrived. Never blocks.
  ///
  /// @param limit how many payloads at most
  /// @return how many were delivered
  /// @throws org.comm4j.api.TransportFailedException when the transport is broken
  int poll(PayloadHandler handler, int limit);

  /// Waits until something may have arrived, room may have come free, [#wakeUp()] was called, or
  /// the time is over. Called when the engine has found nothing to do for a while; may return
  /// early. Of an interrupt of its thread the flag stays set, since the engine looks for it: it
  /// parks for a tenth of a second at most, so an interrupt need not end it.
  ///
  /// @param nanos at most this long
  void park(long nanos);

  /// Ends a [#park] of this rank, now or the next one. Called from any thread.
  void wakeUp();

  /// Frees everything, in less than half a second: it may wait so long until what was taken is on
  /// its way, but not for a peer to poll. Idempotent.
  @Override
  void close();
}
