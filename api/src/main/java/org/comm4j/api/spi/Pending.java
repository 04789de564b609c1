package org.comm4j.api.spi;

import org.comm4j.api.Received;
import org.jspecify.annotations.Nullable;

/// An operation that was submitted to a backend. Used by one thread at a time, not always the one
/// that submitted it, while others are in a call on the communicator or use other operations of it.
/// Who waits does so in slices ([#await]), between which another thread may take the operation
/// back. Nobody comes after the communicator's close.
public interface Pending {
  /// What has ended well before it was submitted to the end, and has no result: for example a small
  /// message that was sent at once. Nobody needs to keep anything for it.
  Pending ENDED =
      new Pending() {
        @Override
        public boolean isDone() {
          return true;
        }

        @Override
        public boolean await(long nanos) {
          return true;
        }

        @Override
        public @Nullable Received received() {
          return null;
        }

        @Override
        public void onEnd(Runnable action) {
          action.run();
        }
      };

  /// {@return whether it has ended, well or not; moves it along} Never blocks, never throws for its
  /// failure.
  boolean isDone();

  /// Waits until it has ended, at most `nanos` and at most until its deadline.
  ///
  /// @param nanos 0 looks without waiting
  /// @return false when `nanos` are over first
  /// @throws org.comm4j.api.CommException why it failed
  boolean await(long nanos);

  /// {@return what a receive, a sendReceive or a probe got; null for every other operation}
  @Nullable Received received();

  /// Takes back a receive or probe that nothing has matched. The API refuses to take back any other
  /// operation, since peers may be part of it, and asks no backend; so only those of receives and
  /// probes have something to do here.
  ///
  /// @return whether it was taken back; it is done then
  default boolean cancel() {
    return false;
  }

  /// Calls back once when the operation has ended, at once if it has already, and sees to it that
  /// it ends without anybody waiting.
  ///
  /// @param action short; runs on a thread of the backend or on the caller's
  void onEnd(Runnable action);
}
