package org.comm4j.core.engine;

import java.nio.ByteBuffer;

/// What a rank says when a communicator is to be made.
///
/// @param id of which the greatest is agreed on
/// @param lanes that the rank could use, as bits
/// @param flags at least as great as any in those lanes
record Proposal(long id, long lanes, long flags) {
  static Proposal of(long[] row) {
    return new Proposal(row[0], row[1], row[2]);
  }

  /// Itself and the epoch of the rank, for the session.
  byte[] bytes(int epoch) {
    ByteBuffer bytes = ByteBuffer.allocate(4 * Long.BYTES);
    bytes.putLong(id).putLong(lanes).putLong(flags).putLong(epoch);
    return bytes.array();
  }

  static long[] longs(byte[] bytes) {
    long[] row = new long[bytes.length / Long.BYTES];
    ByteBuffer.wrap(bytes).asLongBuffer().get(row);
    return row;
  }
}
