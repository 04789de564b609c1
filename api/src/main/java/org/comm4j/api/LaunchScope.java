package org.comm4j.api;

import java.util.concurrent.atomic.AtomicInteger;

/// What the communicators of one launch stand on, for example a session. It ends when the last of
/// them is released, not with the first one: after [Communicator#shrink()] a program closes its
/// world and goes on with what came out of it.
final class LaunchScope {
  private final AtomicInteger communicators = new AtomicInteger();
  private final Runnable end;

  /// @param end runs once, on the thread that releases the last communicator
  LaunchScope(Runnable end) {
    this.end = end;
  }

  void retain() {
    communicators.incrementAndGet();
  }

  void release() {
    if (communicators.decrementAndGet() == 0) {
      end.run();
    }
  }
}
