package org.comm4j.api;

import org.jspecify.annotations.Nullable;

/// Something that went wrong with communication, as opposed to a wrong argument
/// ([IllegalArgumentException]) or a wrong moment ([IllegalStateException]).
///
/// Which of these break the communicator is the table of `docs/contract.md`: a broken communicator
/// throws the same exception at every later call, except [Communicator#close()],
/// [Communicator#shrink()] and those that merely ask about it.
public sealed class CommException extends RuntimeException
    permits AbortedException,
        BackendException,
        BackendUnavailableException,
        CollectiveTimeoutException,
        ConcurrentUseException,
        EvictedException,
        InterruptedCallException,
        JoinException,
        MismatchedCallException,
        PeerFailedException,
        TransportFailedException,
        UnsupportedException {
  private static final long serialVersionUID = 1L;

  CommException(String message) {
    super(message);
  }

  CommException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
