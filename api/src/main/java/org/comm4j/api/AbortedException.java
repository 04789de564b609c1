package org.comm4j.api;

import org.jspecify.annotations.Nullable;

/// A rank called [Communicator#abort], its user-defined operator threw, or it closed the
/// communicator while others needed it. The communicator is broken.
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
