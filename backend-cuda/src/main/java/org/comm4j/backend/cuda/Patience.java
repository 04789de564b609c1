package org.comm4j.backend.cuda;

import java.time.Duration;

/// How long calls may take before somebody says something.
///
/// @param stallEvery how often to warn of a call that takes long
/// @param grace how much longer than its peers' deadline a call may take before its device counts
///   as stuck
record Patience(Duration stallEvery, Duration grace) {
  /// Warnings come as for calls of the host.
  static final Patience USUAL = new Patience(Duration.ofSeconds(30), Duration.ofSeconds(5));
}
