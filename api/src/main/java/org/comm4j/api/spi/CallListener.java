package org.comm4j.api.spi;

import org.comm4j.api.Operation;
import org.jspecify.annotations.Nullable;

/// Hears of every [Operation], blocking or a request, for tracing. What has no record it does not
/// hear of: `split`, `duplicate`, `splitLocal`, `shrink`, `sync`, and shared memory with its
/// regions, fences and registrations. Found by [java.util.ServiceLoader]; must be fast and must not
/// throw.
@FunctionalInterface
public interface CallListener {
  /// A call begins, on the calling thread; what is wrong with its arguments has been found before.
  ///
  /// @param communicator its name
  /// @param rank this rank
  /// @param operation what is called
  /// @return what hears of the call's end; null for nothing, which must cost nothing
  @Nullable Call begins(String communicator, int rank, Operation operation);

  /// A call that has begun.
  @FunctionalInterface
  interface Call {
    /// It has ended; called once, by the thread that was inside it or has found it ended.
    ///
    /// @param failure what it threw, or null
    void ended(@Nullable Throwable failure);
  }
}
