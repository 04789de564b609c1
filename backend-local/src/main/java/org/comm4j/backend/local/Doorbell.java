package org.comm4j.backend.local;

import java.lang.foreign.MemorySegment;

/// How a rank sleeps and is woken. Whether a rank sleeps is the word at [BlockLayout#SLEEPING_AT]
/// of its block: the transport sets and clears it, a doorbell only waits for the change.
interface Doorbell {
  /// Sleeps while this rank's word is 1, at most `nanos`; may end early.
  ///
  /// @param word this rank's, 4 bytes
  void sleep(int rank, MemorySegment word, long nanos);

  /// Wakes a rank whose word was 1 and was cleared by the caller.
  ///
  /// @param word that rank's, 4 bytes
  void ring(int rank, MemorySegment word);
}
