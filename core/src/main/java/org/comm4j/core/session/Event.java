package org.comm4j.core.session;

import org.jspecify.annotations.Nullable;

/// One entry of a session's history. Every rank sees the same events in the same order, except that
/// contributions may be shown to the members of their topic only.
sealed interface Event extends Frame {
  /// Whom it is about.
  int rank();

  /// The rank has given its part of an exchange or agreement.
  record Contribute(int rank, Topic topic, byte[] bytes) implements Event {}

  /// The rank has stored a value.
  record Put(int rank, String key, byte[] value) implements Event {}

  /// The rank has broken a communicator.
  record Abort(int rank, long scope, byte[] reason) implements Event {}

  /// The rank is gone.
  ///
  /// @param cause what it threw where it is a thread of this JVM; does not travel
  record Fail(int rank, String evidence, @Nullable Throwable cause) implements Event {}

  /// The rank has said goodbye.
  record Leave(int rank) implements Event {}

  /// The rank wants all processes to end.
  record Halt(int rank, int code) implements Event {}
}
