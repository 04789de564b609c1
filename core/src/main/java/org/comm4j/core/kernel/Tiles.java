package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import org.comm4j.core.kernel.Carrier.Tile;
import org.jspecify.annotations.Nullable;

/// A thread's scratch arrays. Elements are copied into them in bulk and combined there, because
/// loops over heap arrays are what the JIT compiler vectorises, whatever kinds of segments come by.
///
/// Two operands of [#BYTES] and what they come from stay in the first-level cache.
final class Tiles {
  /// The size of a tile: large enough that the calls around it do not count.
  static final int BYTES = 4096;

  private static final ThreadLocal<Tiles> MINE = ThreadLocal.withInitial(Tiles::new);

  private final Map<Carrier, Tile> x = new EnumMap<>(Carrier.class);
  private final Map<Carrier, Tile> y = new EnumMap<>(Carrier.class);
  private @Nullable MemorySegment ofOperator; // unless one is out

  private Tiles() {}

  static Tiles mine() {
    return MINE.get();
  }

  Tile x(Carrier carrier) {
    return x.computeIfAbsent(carrier, Tiles::tile);
  }

  Tile y(Carrier carrier) {
    return y.computeIfAbsent(carrier, Tiles::tile);
  }

  /// A tile for what a user's function works on. Until it is given back this thread may combine
  /// other things: the function may, on communicators of other launches.
  MemorySegment takeForOperator() {
    MemorySegment tile = ofOperator;
    ofOperator = null;
    return tile == null ? tile(Carrier.BYTE).segment() : tile;
  }

  void giveBackOfOperator(MemorySegment tile) {
    ofOperator = tile;
  }

  private static Tile tile(Carrier carrier) {
    return carrier.tile(BYTES);
  }

  /// Copies, unless source and target are the same memory.
  static void copy(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long bytes) {
    if (!isSame(source, sourceOffset, target, targetOffset)) {
      MemorySegment.copy(source, sourceOffset, target, targetOffset, bytes);
    } else {
      Objects.checkFromIndexSize(targetOffset, bytes, target.byteSize());
    }
  }

  /// Whether two places are the same memory; a read-only view of an array may be mistaken for
  /// another.
  static boolean isSame(MemorySegment a, long aOffset, MemorySegment b, long bOffset) {
    if (a.equals(b)) { // as below, but without objects
      return aOffset == bOffset;
    }
    return a.address() + aOffset == b.address() + bOffset
        && a.isNative() == b.isNative()
        && a.heapBase().equals(b.heapBase())
        && (a.isNative() || a.heapBase().isPresent());
  }
}
