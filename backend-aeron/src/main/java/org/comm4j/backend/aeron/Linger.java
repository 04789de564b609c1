package org.comm4j.backend.aeron;

import java.util.concurrent.TimeUnit;

/// How long a close waits for peers to take what was sent; they may be busy.
///
/// @param mostNs at most
/// @param repeatNs how long after everything was sent, or asked for again, a peer may ask for it
///   again
record Linger(long mostNs, long repeatNs) {
  /// With what the engine has waited before, it makes the 0.8 s of a communicator's close that are
  /// a backend's.
  static final Linger USUAL =
      new Linger(TimeUnit.MILLISECONDS.toNanos(400), TimeUnit.MILLISECONDS.toNanos(200));
}
