package org.comm4j.api;

import org.jspecify.annotations.Nullable;

/// The ranks of a launch could not be brought together. There is no communicator.
public final class JoinException extends CommException {
  private static final long serialVersionUID = 1L;

  /// Why a join failed.
  public enum Reason {
    /// Ranks disagree on the number of ranks.
    WORLD_SIZE,
    /// Another process has joined with this rank.
    DUPLICATE_RANK,
    /// The group had formed, or had given up, before this rank came.
    LATE,
    /// Some ranks did not come within the join deadline.
    MISSING_RANKS,
    /// Ranks run different versions of comm4j.
    VERSION,
    /// The address belongs to another job.
    OTHER_JOB,
    /// The secret is missing or wrong.
    AUTHENTICATION,
    /// Ranks ask for different backends or options.
    CONFIGURATION,
    /// The address can't be bound or reached.
    ADDRESS,
    /// A rank that had joined died before the group was complete.
    PEER_FAILED,
    /// What came over the connection is not ours.
    PROTOCOL
  }

  private final Reason reason;

  /// Makes the exception.
  ///
  /// @param reason the kind of failure
  /// @param message what was attempted, the values on both sides, what to do
  public JoinException(Reason reason, String message) {
    this(reason, message, null);
  }

  /// Makes the exception.
  ///
  /// @param reason the kind of failure
  /// @param message what was attempted, the values on both sides, what to do
  /// @param cause the exception below, or null
  public JoinException(Reason reason, String message, @Nullable Throwable cause) {
    super(message, cause);
    this.reason = reason;
  }

  /// {@return the kind of failure}
  public Reason reason() {
    return reason;
  }
}
