package org.comm4j.api;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;

/// An operation that was started. It may be awaited from any one thread, not only the one that
/// started it; its data stays reachable until it has ended.
///
/// Without a thread that awaits something on this or another communicator of the session, or asks
/// [#isDone()], an operation makes no progress, unless [#toCompletableFuture()] was called, which
/// starts a thread for it.
public interface Request {
  /// Waits until the operation has ended, at most until its deadline (`COMM_TIMEOUT`, counted from
  /// its start).
  ///
  /// An interrupt ends the wait and breaks the communicator on all ranks
  /// ([InterruptedCallException]), also in a wait of limited time.
  ///
  /// @throws CommException why it failed; [ConcurrentUseException] while another thread awaits it,
  ///   or if a user-defined operator does
  /// @throws ClosedException if the communicator was closed first
  /// @throws java.util.concurrent.CancellationException if it was taken back
  void await();

  /// Waits at most this long. When the time is over the operation goes on and may be awaited again.
  ///
  /// @param timeout zero looks without waiting
  /// @throws TimeoutException when the time is over; the communicator stays usable
  /// @throws CommException as [#await()]
  /// @throws ClosedException as [#await()]
  /// @throws java.util.concurrent.CancellationException as [#await()]
  /// @throws IllegalArgumentException if the time is negative
  void await(Duration timeout) throws TimeoutException;

  /// {@return whether the operation has ended, well or not; moves it along if it has not} Never
  /// blocks.
  boolean isDone();

  /// {@return what a receive, a sendReceive or a probe got}
  ///
  /// @throws IllegalStateException if the operation has not ended, has not ended well, or has no
  ///   result
  Received result();

  /// Takes back a receive or probe that no message has matched yet. Any thread may, also while
  /// another one awaits it, which lets this one in within a tenth of a second.
  ///
  /// @return whether it was taken back; then [#await()] throws
  ///   [java.util.concurrent.CancellationException]
  /// @throws IllegalStateException for any other operation: peers may already be part of it
  boolean cancel();

  /// {@return a future with the operation's end: the result of a receive, a sendReceive or a probe;
  /// null for every other operation} It completes without anybody waiting: a thread of the library
  /// moves the operation along. What depends on the future is run by that thread, or by one that
  /// awaits, asks for or closes what ends the operation; it must not call this communicator and
  /// should be short.
  ///
  /// Where the operation is taken back ([#cancel()]) the future is cancelled too. Cancelling the
  /// future itself takes nothing back.
  CompletableFuture<Received> toCompletableFuture();

  /// Waits until one of the requests has ended.
  ///
  /// @param requests at least one
  /// @return the index of an ended request; awaiting it tells how it ended
  /// @throws ConcurrentUseException if the thread is interrupted, and another one awaits the first
  ///   request: that one is to end of it; or if a user-defined operator waits
  /// @throws IllegalArgumentException if there is none
  static int waitAny(List<? extends Request> requests) {
    if (requests.isEmpty()) {
      throw new IllegalArgumentException("requests: none (expected: at least one)");
    }
    return RequestWait.any(requests);
  }

  /// Waits until all requests have ended, well or not: when it returns or throws, none of them uses
  /// its data any more. Where they are of several ranks that are threads of this JVM it moves all
  /// of them along: so one thread may wait for a whole [LocalGroup].
  ///
  /// An interrupt breaks the communicator of the request that it finds in the wait, as in
  /// [#await()], and spares others where it can: of the requests behind that one, receives and
  /// probes that no message has matched are taken back, and the rest gets a second to end. What has
  /// not ended then, or at another interrupt, breaks its communicator too.
  ///
  /// @param requests in the order in which their failures matter; may be empty
  /// @throws CommException why the first that failed did; awaiting another one tells why that did.
  ///   [ConcurrentUseException] if another thread awaits one, which then may not have ended, or if
  ///   a user-defined operator waits
  /// @throws ClosedException as [#await()]
  /// @throws java.util.concurrent.CancellationException as [#await()]
  static void waitAll(List<? extends Request> requests) {
    RequestWait.all(requests);
  }
}
