package org.comm4j.api;

import java.util.Arrays;
import java.util.List;

/// An operation's deadline (`COMM_TIMEOUT`) passed while the peers it waits for are alive but have
/// not come. The communicator is broken.
public final class CollectiveTimeoutException extends CommException {
  private static final long serialVersionUID = 1L;
  private final int[] missing;

  /// Makes the exception.
  ///
  /// @param missing the ranks that this rank waited for, in the communicator
  /// @param message which call, for how long, for whom
  public CollectiveTimeoutException(List<Integer> missing, String message) {
    super(message);
    this.missing = missing.stream().mapToInt(Integer::intValue).toArray();
  }

  /// {@return the ranks that the caller waited for, in the communicator}
  public List<Integer> missing() {
    return Arrays.stream(missing).boxed().toList();
  }
}
