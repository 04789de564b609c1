package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.DataType;

/// The Java primitive that carries elements through a tile.
enum Carrier {
  BYTE(1),
  SHORT(2),
  INT(4),
  LONG(8),
  FLOAT(4),
  DOUBLE(8);

  private final int bytes;

  Carrier(int bytes) {
    this.bytes = bytes;
  }

  /// What carries elements of this type: a complex number takes two carriers, and so does a pair.
  static Carrier of(DataType type) {
    return switch (type) {
      case FLOAT64, COMPLEX128 -> DOUBLE;
      case FLOAT32, COMPLEX64 -> FLOAT;
      case INT64, UINT64 -> LONG;
      case INT32, UINT32 -> INT;
      case INT16, UINT16, FLOAT16, BFLOAT16 -> SHORT;
      case INT8, UINT8, BOOL, FLOAT8_E4M3, FLOAT8_E5M2 -> BYTE;
      default -> LONG; // pairs
    };
  }

  int bytes() {
    return bytes;
  }

  /// {@return whether this is an array of the primitive}
  boolean isArray(Object object) {
    return switch (this) {
      case BYTE -> object instanceof byte[];
      case SHORT -> object instanceof short[];
      case INT -> object instanceof int[];
      case LONG -> object instanceof long[];
      case FLOAT -> object instanceof float[];
      case DOUBLE -> object instanceof double[];
    };
  }

  Tile tile(int tileBytes) {
    int count = tileBytes / bytes;
    return switch (this) {
      case BYTE -> {
        byte[] array = new byte[count];
        yield new Tile(array, MemorySegment.ofArray(array));
      }
      case SHORT -> {
        short[] array = new short[count];
        yield new Tile(array, MemorySegment.ofArray(array));
      }
      case INT -> {
        int[] array = new int[count];
        yield new Tile(array, MemorySegment.ofArray(array));
      }
      case LONG -> {
        long[] array = new long[count];
        yield new Tile(array, MemorySegment.ofArray(array));
      }
      case FLOAT -> {
        float[] array = new float[count];
        yield new Tile(array, MemorySegment.ofArray(array));
      }
      case DOUBLE -> {
        double[] array = new double[count];
        yield new Tile(array, MemorySegment.ofArray(array));
      }
    };
  }

  /// A small array and the segment that is the same memory.
  record Tile(Object array, MemorySegment segment) {}
}
