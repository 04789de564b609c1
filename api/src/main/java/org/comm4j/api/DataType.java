package org.comm4j.api;

/// The type of one element, with an id that never changes: it goes over the wire and into files.
///
/// Elements are in native byte order. 8- and 16-bit floats are IEEE 754 binary16, bfloat16 and the
/// OCP 8-bit formats E4M3 (no infinity, largest finite value 448) and E5M2. [#BOOL] is one byte,
/// zero or not. A complex number is two floats, real part first. A pair, for [ReduceOp#MIN_LOC] and
/// [ReduceOp#MAX_LOC], is 16 bytes: the value at byte 0 (the rest of the first 8 bytes is padding,
/// carried but never read) and a signed 64-bit index at byte 8.
public enum DataType {
  /// IEEE 754 binary64.
  FLOAT64(0, 8, Kind.FLOAT),
  /// IEEE 754 binary32.
  FLOAT32(1, 4, Kind.FLOAT),
  /// IEEE 754 binary16.
  FLOAT16(2, 2, Kind.FLOAT),
  /// bfloat16: the upper half of a FLOAT32.
  BFLOAT16(3, 2, Kind.FLOAT),
  /// OCP E4M3: no infinity, largest finite value 448.
  FLOAT8_E4M3(4, 1, Kind.FLOAT),
  /// OCP E5M2.
  FLOAT8_E5M2(5, 1, Kind.FLOAT),
  /// Signed, two's complement, 64 bits.
  INT64(10, 8, Kind.SIGNED),
  /// Signed, two's complement, 32 bits.
  INT32(11, 4, Kind.SIGNED),
  /// Signed, two's complement, 16 bits.
  INT16(12, 2, Kind.SIGNED),
  /// Signed, two's complement, 8 bits.
  INT8(13, 1, Kind.SIGNED),
  /// Unsigned, 64 bits.
  UINT64(20, 8, Kind.UNSIGNED),
  /// Unsigned, 32 bits.
  UINT32(21, 4, Kind.UNSIGNED),
  /// Unsigned, 16 bits.
  UINT16(22, 2, Kind.UNSIGNED),
  /// Unsigned, 8 bits.
  UINT8(23, 1, Kind.UNSIGNED),
  /// One byte, zero or not.
  BOOL(30, 1, Kind.BOOL),
  /// Two FLOAT32, the real part first.
  COMPLEX64(40, 8, Kind.COMPLEX),
  /// Two FLOAT64, the real part first.
  COMPLEX128(41, 16, Kind.COMPLEX),
  /// A [#FLOAT64] value and an index.
  FLOAT64_PAIR(100, 16, Kind.PAIR),
  /// A [#FLOAT32] value and an index.
  FLOAT32_PAIR(101, 16, Kind.PAIR),
  /// A [#FLOAT16] value and an index.
  FLOAT16_PAIR(102, 16, Kind.PAIR),
  /// A [#BFLOAT16] value and an index.
  BFLOAT16_PAIR(103, 16, Kind.PAIR),
  /// A [#FLOAT8_E4M3] value and an index.
  FLOAT8_E4M3_PAIR(104, 16, Kind.PAIR),
  /// A [#FLOAT8_E5M2] value and an index.
  FLOAT8_E5M2_PAIR(105, 16, Kind.PAIR),
  /// A [#INT64] value and an index.
  INT64_PAIR(110, 16, Kind.PAIR),
  /// A [#INT32] value and an index.
  INT32_PAIR(111, 16, Kind.PAIR),
  /// A [#INT16] value and an index.
  INT16_PAIR(112, 16, Kind.PAIR),
  /// A [#INT8] value and an index.
  INT8_PAIR(113, 16, Kind.PAIR),
  /// A [#UINT64] value and an index.
  UINT64_PAIR(120, 16, Kind.PAIR),
  /// A [#UINT32] value and an index.
  UINT32_PAIR(121, 16, Kind.PAIR),
  /// A [#UINT16] value and an index.
  UINT16_PAIR(122, 16, Kind.PAIR),
  /// A [#UINT8] value and an index.
  UINT8_PAIR(123, 16, Kind.PAIR);

  /// What kind of number a type holds; an operator is legal for whole kinds ([ReduceOp#supports]).
  public enum Kind {
    /// A floating-point number.
    FLOAT,
    /// A signed integer.
    SIGNED,
    /// An unsigned integer.
    UNSIGNED,
    /// True or false.
    BOOL,
    /// A complex number.
    COMPLEX,
    /// A value and an index.
    PAIR
  }

  /// Where the index of a pair starts, in bytes.
  public static final int PAIR_INDEX_OFFSET = 8;

  private static final int PAIR_ID = 100;
  private static final DataType[] BY_ID = new DataType[PAIR_ID + 24];

  static {
    for (DataType type : values()) {
      BY_ID[type.id] = type;
    }
  }

  private final int id;
  private final int bytes;
  private final int shift;
  private final Kind kind;

  DataType(int id, int bytes, Kind kind) {
    this.id = id;
    this.bytes = bytes;
    this.shift = Integer.numberOfTrailingZeros(bytes);
    this.kind = kind;
  }

  /// {@return the type with this id}
  ///
  /// @param id as [#id()] gives it
  /// @throws IllegalArgumentException if no type has it
  public static DataType ofId(int id) {
    DataType type = id >= 0 && id < BY_ID.length ? BY_ID[id] : null;
    if (type == null) {
      throw new IllegalArgumentException(
          "data type id: "
              + id
              + " (expected: an id of DataType's constants); use the same version of"
              + " comm4j on both sides");
    }
    return type;
  }

  /// {@return the stable id, in `0..123`}
  public int id() {
    return id;
  }

  /// {@return the size of one element in bytes: 1, 2, 4, 8 or 16}
  public int bytes() {
    return bytes;
  }

  /// {@return the size of `count` elements in bytes}
  ///
  /// @param count how many elements, 0 or more
  /// @throws IllegalArgumentException if count is negative or the size exceeds a signed 64-bit
  ///   number
  public long bytes(long count) {
    if (count < 0 || count > Long.MAX_VALUE >> shift) {
      throw new IllegalArgumentException(
          "count: " + count + " (expected: 0.." + (Long.MAX_VALUE >> shift) + " " + this + ")");
    }
    return count << shift;
  }

  /// {@return how many whole elements fit in `bytes` bytes}
  ///
  /// @param bytes 0 or more
  public long countIn(long bytes) {
    return bytes >> shift;
  }

  /// {@return the kind of number}
  public Kind kind() {
    return kind;
  }

  /// {@return whether this is a signed or unsigned integer}
  public boolean isInteger() {
    return kind == Kind.SIGNED || kind == Kind.UNSIGNED;
  }

  /// {@return the type of a pair's value; for every other type the type itself}
  public DataType valueType() {
    return kind == Kind.PAIR ? ofId(id - PAIR_ID) : this;
  }

  /// {@return the type of pairs of this value and an index}
  ///
  /// @throws IllegalArgumentException unless this is an integer or a float
  public DataType pairType() {
    if (!isInteger() && kind != Kind.FLOAT) {
      throw new IllegalArgumentException(
          this + " has no pair type (expected: an integer or float type)");
    }
    return ofId(id + PAIR_ID);
  }
}
