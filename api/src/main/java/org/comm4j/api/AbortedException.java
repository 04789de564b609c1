package org.comm4j.api;

import org.jspecify.annotations.Nullable;

/// A rank broke the communicator for all: it called [Communicator#abort]; its user-defined operator
/// threw; it closed the communicator while others needed it; memory was closed that its call
/// needed; or a call of its failed in another way: it was interrupted, its transport failed, its
/// memory ran out, its process may open no more files. The communicator is broken.
///
/// Where a call failed the rank itself may get another exception, of that failure: the table of
/// `docs/contract.md` has them.
public final class AbortedException extends CommException {
  private static final long serialVersionUID = 1L;
  private final int rank;

  /// Makes the exception.
  ///
  /// @param rank who aborted, in the communicator
  /// @param reason why, in that rank's words; a blank one says that it gave none
  /// @param cause the original exception where it was thrown on this rank, else null
  public AbortedException(int rank, String reason, @Nullable Throwable cause) {
    super(
        "rank %d aborted the communicator: %s"
            .formatted(rank, reason.isBlank() ? "it gave no reason" : reason),
        cause);
    this.rank = rank;
  }

  /// {@return who aborted, in the communicator}
  public int rank() {
    return rank;
  }
}
