package org.comm4j.api.spi;

import java.lang.ref.WeakReference;
import org.comm4j.api.Operation;

/// The operation that came last, known when it comes again: programs run the same record over and
/// over, and what was found out about it, which never changes, need not be found out again. It
/// keeps neither the operation nor its memory alive.
///
/// To know one takes some bytes. A program that makes a new record for each call would have that
/// with each, for nothing; so the longer none comes again, the fewer are noted.
///
/// For one thread at a time.
public final class LastOperation {
  private static final int MOST_UNNOTED = 1024;

  private WeakReference<Operation> last = new WeakReference<>(null);
  private int wait = 1; // one of so many is noted
  private int come;

  /// Knows none.
  public LastOperation() {}

  /// {@return whether an operation is, by identity, the one that was noted}
  ///
  /// @param operation that has come
  public boolean isKnown(Operation operation) {
    boolean known = last.refersTo(operation);
    if (known) {
      wait = 1;
    }
    return known;
  }

  /// Notes an operation that is not known, or doesn't.
  ///
  /// @param operation that has come
  public void note(Operation operation) {
    if (++come < wait) {
      return;
    }
    come = 0;
    wait = Math.min(2 * wait, MOST_UNNOTED);
    last = new WeakReference<>(operation);
  }
}
