package org.comm4j.cli;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.stream.IntStream;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.tck.Oracle;

/// What ranks contribute and what must come out, for any type and operator: small whole numbers, so
/// that every order of combining gives the same bits.
///
/// A rank's element `i` depends on the rank and on `i mod` [#PERIOD], a prime, so that a whole
/// buffer is known from one period of it, and data that lands in a wrong place is noticed.
///
/// @param type what the elements are
/// @param op how they are combined
record BenchData(DataType type, ReduceOp.Predefined op) {
  static final int PERIOD = 1021;

  private static final int LARGEST = 8;

  /// What no result holds: small whole numbers have no such bits.
  private static final byte UNWRITTEN = 0x5b;

  /// One period of what a rank contributes.
  byte[] contribution(int rank) {
    ByteBuffer period = ByteBuffer.allocate(PERIOD * type.bytes()).order(ByteOrder.nativeOrder());
    for (int i = 0; i < PERIOD; i++) {
      write(period, i * type.bytes(), number(rank, i), rank);
    }
    return period.array();
  }

  /// One period of the reduction of ranks `0..last`.
  byte[] reduction(int last) {
    List<byte[]> contributions =
        IntStream.rangeClosed(0, last).mapToObj(this::contribution).toList();
    return Oracle.fold(op, type, contributions);
  }

  private int number(int rank, int index) {
    int mixed = (rank * 0x9e37_79b9 + index) * 0x85eb_ca6b;
    int random = (mixed ^ (mixed >>> 15)) >>> 8;
    return op == ReduceOp.Predefined.PRODUCT
        ? new int[] {-1, 1, 2}[random % 3]
        : random % (2 * LARGEST + 1) - LARGEST;
  }

  private void write(ByteBuffer to, int at, int number, int rank) {
    switch (type.kind()) {
      case COMPLEX -> {
        DataType part = type == DataType.COMPLEX64 ? DataType.FLOAT32 : DataType.FLOAT64;
        writeNumber(part, to, at, Integer.signum(number));
        writeNumber(part, to, at + part.bytes(), number % 2);
      }
      case PAIR -> {
        writeNumber(type.valueType(), to, at, number);
        to.putLong(at + DataType.PAIR_INDEX_OFFSET, rank);
      }
      case BOOL -> to.put(at, (byte) (number > 0 ? 1 : 0));
      case FLOAT, SIGNED, UNSIGNED -> writeNumber(type, to, at, number);
    }
  }

  private static void writeNumber(DataType type, ByteBuffer to, int at, int number) {
    switch (type) {
      case FLOAT64 -> to.putDouble(at, number);
      case FLOAT32 -> to.putFloat(at, number);
      case FLOAT16 -> to.putShort(at, Float.floatToFloat16(number));
      case BFLOAT16 -> to.putShort(at, (short) (Float.floatToIntBits(number) >>> 16));
      case FLOAT8_E4M3 -> to.put(at, (byte) smallFloat(number, 3, 7));
      case FLOAT8_E5M2 -> to.put(at, (byte) smallFloat(number, 2, 15));
      default -> {
        switch (type.bytes()) {
          case 1 -> to.put(at, (byte) number);
          case 2 -> to.putShort(at, (short) number);
          case 4 -> to.putInt(at, number);
          default -> to.putLong(at, number);
        }
      }
    }
  }

  /// The 8 bits of a number of at most [#LARGEST], which are exact.
  private static int smallFloat(int number, int mantissaBits, int bias) {
    int magnitude = Math.abs(number);
    if (magnitude == 0) {
      return 0;
    }
    int exponent = 31 - Integer.numberOfLeadingZeros(magnitude);
    int mantissa = ((magnitude << mantissaBits) >> exponent) & ((1 << mantissaBits) - 1);
    return (number < 0 ? 0x80 : 0) | ((exponent + bias) << mantissaBits) | mantissa;
  }

  // --- whole buffers ---

  static void clear(MemorySegment buffer) {
    buffer.fill(UNWRITTEN);
  }

  /// Fills a buffer with a period, over and over.
  void fill(MemorySegment buffer, byte[] period) {
    MemorySegment from = MemorySegment.ofArray(period);
    long bytes = buffer.byteSize();
    for (long at = 0; at < bytes; at += period.length) {
      MemorySegment.copy(from, 0, buffer, at, Math.min(period.length, bytes - at));
    }
  }

  /// How many elements are not as they should be.
  ///
  /// @param period of what should be there
  /// @param first which element of the periodic data the buffer starts with
  long wrong(MemorySegment buffer, byte[] period, long first) {
    MemorySegment expected = MemorySegment.ofArray(period);
    long wrong = 0;
    long bytes = buffer.byteSize();
    long from = first % PERIOD * type.bytes();
    for (long at = 0; at < bytes; ) {
      long length = Math.min(period.length - from, bytes - at);
      if (MemorySegment.mismatch(buffer, at, at + length, expected, from, from + length) >= 0) {
        wrong += wrongIn(buffer.asSlice(at, length), expected.asSlice(from, length));
      }
      at += length;
      from = 0;
    }
    return wrong;
  }

  private long wrongIn(MemorySegment actual, MemorySegment expected) {
    int valueBytes = type.valueType().bytes();
    long wrong = 0;
    for (long at = 0; at < actual.byteSize(); at += type.bytes()) {
      boolean differs = differs(actual, expected, at, valueBytes);
      if (type.kind() == DataType.Kind.PAIR) { // between value and index anything may be
        differs |= differs(actual, expected, at + DataType.PAIR_INDEX_OFFSET, Long.BYTES);
      }
      wrong += differs ? 1 : 0;
    }
    return wrong;
  }

  private static boolean differs(MemorySegment a, MemorySegment b, long at, long bytes) {
    for (long i = at; i < at + bytes; i++) {
      if (a.get(ValueLayout.JAVA_BYTE, i) != b.get(ValueLayout.JAVA_BYTE, i)) {
        return true;
      }
    }
    return false;
  }
}
