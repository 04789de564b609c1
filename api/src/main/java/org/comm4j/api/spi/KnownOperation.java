package org.comm4j.api.spi;

import java.lang.ref.WeakReference;
import org.comm4j.api.Operation;

/// An operation that has come, known when it comes again: programs run the same record over and
/// over, and what was found out about it, which never changes, need not be found out again. It
/// keeps neither the operation nor its memory alive.
///
/// To note one takes some bytes. A program that makes a new record for each call, or has more of
/// them in turn than can be known, would have that with each, for nothing; so one that has come
/// again is kept for a while, and the longer none does, the fewer are noted.
///
/// The library uses one in front of the backends, for its checks; a backend may have another one
/// for its own. For one thread at a time.
public final class KnownOperation {
  private static final int LEAST_UNNOTED = 64;
  private static final int MOST_UNNOTED = 1024;

  private WeakReference<Operation> noted = new WeakReference<>(null);
  private int unnoted; // since then
  private int mostUnnoted; // before the next is noted

  /// Knows none.
  public KnownOperation() {}

  /// {@return whether an operation is, by identity, the one that was noted}
  ///
  /// @param operation that has come
  public boolean isKnown(Operation operation) {
    boolean known = noted.refersTo(operation);
    if (known) {
      unnoted = 0;
      mostUnnoted = LEAST_UNNOTED;
    }
    return known;
  }

  /// Notes an operation, unless it is known or too many come that are not.
  ///
  /// @param operation that has come
  public void note(Operation operation) {
    if (isKnown(operation) || ++unnoted <= mostUnnoted) {
      return;
    }
    unnoted = 0;
    mostUnnoted = Math.clamp(2L * mostUnnoted, 1, MOST_UNNOTED);
    noted = new WeakReference<>(operation);
  }
}
