package org.comm4j.guice;

import com.google.inject.Inject;
import java.util.concurrent.locks.ReentrantLock;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.jspecify.annotations.Nullable;

/// Opens an injector's communicator once, when it is first needed, and closes it. Thread-safe.
public final class CommLifecycle implements AutoCloseable {
  private final CommConfig config;
  private final ReentrantLock opening = new ReentrantLock();
  private volatile @Nullable Communicator communicator;
  private volatile boolean closed;

  @Inject
  CommLifecycle(CommConfig config) {
    this.config = config;
  }

  /// The communicator, opened at the first call, which waits for the other ranks; other threads
  /// wait for it.
  ///
  /// @return this rank's communicator of all ranks
  /// @throws IllegalStateException if the lifecycle is closed, or gets closed meanwhile, and as
  ///   [Communicators#open(CommConfig)]
  /// @throws IllegalArgumentException as [Communicators#open(CommConfig)]
  /// @throws org.comm4j.api.BackendUnavailableException as [Communicators#open(CommConfig)]
  /// @throws org.comm4j.api.JoinException as [Communicators#open(CommConfig)]; the next call tries
  ///   again
  public Communicator communicator() {
    opening.lock();
    try {
      checkOpen();
      Communicator open = communicator;
      if (open == null) {
        open = Communicators.open(config);
        communicator = open;
      }
      if (closed) {
        open.close();
      }
      checkOpen();
      return open;
    } finally {
      opening.unlock();
    }
  }

  private void checkOpen() {
    if (closed) {
      throw new IllegalStateException(
          "the communicator was asked for after its CommLifecycle was closed");
    }
  }

  /// Closes the communicator if it was opened. Does not wait for a thread that opens it: that one
  /// closes it. Closing twice does nothing.
  @Override
  public void close() {
    closed = true;
    Communicator open = communicator;
    if (open != null) {
      open.close();
    }
  }
}
