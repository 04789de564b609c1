package org.comm4j.backend.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.core.kernel.Kernel;

/// What a reduction should give, by core's arithmetic.
final class LeftFold {
  private LeftFold() {}

  /// {@return the bytes of so many elements, from that one on}
  ///
  /// @param inputs of all ranks
  static byte[] of(ReduceOp op, DataType type, List<MemorySegment> inputs, int from, int count) {
    Kernel kernel = Kernel.of(op, type);
    long offset = type.bytes(from);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment wide = arena.allocate(kernel.accumulator().bytes(count), 16);
      kernel.widen(inputs.getFirst(), offset, wide, 0, count);
      for (MemorySegment input : inputs.subList(1, inputs.size())) {
        kernel.combineRaw(input, offset, wide, 0, count);
      }
      MemorySegment result = arena.allocate(type.bytes(count), 16);
      kernel.finish(wide, 0, result, 0, count, inputs.size());
      return result.toArray(ValueLayout.JAVA_BYTE);
    }
  }
}
