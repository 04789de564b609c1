package org.comm4j.core.transport;

import java.lang.foreign.MemorySegment;

/// What [Transport#poll] calls for each payload.
@FunctionalInterface
public interface PayloadHandler {
  /// Takes one payload; it and its header are valid during the call only and read-only by
  /// convention.
  ///
  /// @param peer who offered it
  /// @param header [Transport#HEADER_LONGS] numbers as they were offered
  /// @param payload as it was offered
  void onPayload(int peer, long[] header, MemorySegment payload);
}
