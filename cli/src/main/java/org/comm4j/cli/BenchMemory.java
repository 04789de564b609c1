package org.comm4j.cli;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;

/// Where [Bench] keeps its data.
enum BenchMemory {
  /// Off the heap, of an automatic arena: as a C program's, which nobody closes.
  NATIVE,
  /// Java arrays.
  HEAP,
  /// The communicator's own ([Communicator#allocate]).
  ALLOCATED;

  private static final long PAGE_BYTES = 4096;

  /// A buffer and how to give it back.
  record Buffer(HostData data, Runnable end) {}

  Buffer make(Communicator communicator, DataType type, long count) {
    return switch (this) {
      case NATIVE -> {
        MemorySegment memory = Arena.ofAuto().allocate(type.bytes(count), PAGE_BYTES);
        yield new Buffer(CommData.of(type, memory), () -> {});
      }
      case HEAP -> new Buffer(CommData.of(type, array(type, count)), () -> {});
      case ALLOCATED -> {
        CommBuffer buffer = communicator.allocate(type, count);
        if (buffer.data() instanceof HostData data) {
          yield new Buffer(data, buffer::close);
        }
        buffer.close();
        throw new IllegalArgumentException(
            "--memory: allocated, which is a device's on backend %s (expected: native or heap, as bench measures the host's memory); the GPU's kernels are measured by backend-cuda/gpu-check"
                .formatted(communicator.backend()));
      }
    };
  }

  /// An array as a program would have it: of primitives of that size.
  ///
  /// @throws OutOfMemoryError if no array is so long, as the JVM does for one a little shorter
  private static MemorySegment array(DataType type, long count) {
    long words = type.bytes(count) / Math.min(8, type.bytes());
    if (words > Integer.MAX_VALUE - 8) {
      throw new OutOfMemoryError(
          "--memory heap: %d bytes (expected: an array of less than 2^31 elements); use native"
              .formatted(type.bytes(count)));
    }
    int length = (int) words;
    return switch (type.bytes()) {
      case 1 -> MemorySegment.ofArray(new byte[length]);
      case 2 -> MemorySegment.ofArray(new short[length]);
      case 4 -> MemorySegment.ofArray(new float[length]);
      default -> MemorySegment.ofArray(new double[length]);
    };
  }
}
