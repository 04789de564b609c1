package org.comm4j.guice;

import com.google.inject.Inject;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.jspecify.annotations.Nullable;

/// Opens an injector's communicator once, when it is first needed, and closes it. Thread-safe.
public final class CommLifecycle implements AutoCloseable {
  private final CommConfig config;
  private @Nullable Communicator communicator;
  private boolean closed;

  @Inject
  CommLifecycle(CommConfig config) {
    this.config = config;
  }

  /// The communicator, opened at the first call.
  ///
  /// @return this rank's communicator of all ranks
  /// @throws IllegalStateException if the lifecycle is closed
  public synchronized Communicator communicator() {
    if (closed) {
      throw new IllegalStateException(
          "the communicator was asked for after its CommLifecycle was closed");
    }
    Communicator open = communicator;
    if (open == null) {
      open = Communicators.open(config);
      communicator = open;
    }
    return open;
  }

  /// Closes the communicator if it was opened. Closing twice does nothing.
  @Override
  public synchronized void close() {
    closed = true;
    if (communicator != null) {
      communicator.close();
    }
  }
}
