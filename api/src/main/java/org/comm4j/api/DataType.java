package org.comm4j.api;

/// The type of one element, with an id that never changes: it goes over the wire and into files.
///
/// Elements are in native byte order. 8- and 16-bit floats are IEEE 754 binary16, bfloat16 and the
/// OCP 8-bit formats E4M3 (no infinity, largest finite value 448) and E5M2. [#BOOL] is one byte,
/// zero or not. A complex number is two floats, real part first. A pair, for [ReduceOp#MIN_LOC] and
/// [ReduceOp#MAX_LOC], is 16 bytes: the value at byte 0 (the rest of the first 8 bytes is padding,
/// carried but never read) and a signed 64-bit index at byte 8.
public enum DataType {
  FLOAT64(0, 8, Kind.FLOAT),
  FLOAT32(1, 4, Kind.FLOAT),
  FLOAT16(2, 2, Kind.FLOAT),
  BFLOAT16(3, 2, Kind.FLOAT),
  FLOAT8_E4M3(4, 1, Kind.FLOAT),
  FLOAT8_E5M2(5, 1, Kind.FLOAT),
  INT64(10, 8, Kind.SIGNED),
  INT32(11, 4, Kind.SIGNED),
  INT16(12, 2, Kind.SIGNED),
  INT8(13, 1, Kind.SIGNED),
  UINT64(20, 8, Kind.UNSIGNED),
  UINT32(21, 4, Kind.UNSIGNED),
  UINT16(22, 2, Kind.UNSIGNED),
  UINT8(23, 1, Kind.UNSIGNED),
  BOOL(30, 1, Kind.BOOL),
  COMPLEX64(40, 8, Kind.COMPLEX),
  COMPLEX128(41, 16, Kind.COMPLEX),
  FLOAT64_PAIR(100, 16, Kind.PAIR),
  FLOAT32_PAIR(101, 16, Kind.PAIR),
  FLOAT16_PAIR(102, 16, Kind.PAIR),
  BFLOAT16_PAIR(103, 16, Kind.PAIR),
  FLOAT8_E4M3_PAIR(104, 16, Kind.PAIR),
  FLOAT8_E5M2_PAIR(105, 16, Kind.PAIR),
  INT64_PAIR(110, 16, Kind.PAIR),
  INT32_PAIR(111, 16, Kind.PAIR),
  INT16_PAIR(112, 16, Kind.PAIR),
  INT8_PAIR(113, 16, Kind.PAIR),
  UINT64_PAIR(120, 16, Kind.PAIR),
  UINT32_PAIR(121, 16, Kind.PAIR),
  UINT16_PAIR(122, 16, Kind.PAIR),
  UINT8_PAIR(123, 16, Kind.PAIR);

  /// What kind of number a type holds; an operator is legal for whole kinds ([ReduceOp#supports]).
  public enum Kind {
    FLOAT,
    SIGNED,
    UNSIGNED,
    BOOL,
    COMPLEX,
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

  /// The type with this id.
  ///
  /// @throws IllegalArgumentException if no type has it
  public static DataType ofId(int id) {
    DataType type = id >= 0 && id < BY_ID.length ? BY_ID[id] : null;
    if (type == null) {
      throw new IllegalArgumentException("data type id: " + id + " (no type has this id)");
    }
    return type;
  }

  /// The stable id, in `0..123`.
  public int id() {
    return id;
  }

  /// The size of one element in bytes: 1, 2, 4, 8 or 16.
  public int bytes() {
    return bytes;
  }

  /// The size of `count` elements in bytes.
  ///
  /// @throws IllegalArgumentException if count is negative or the size exceeds a signed 64-bit
  ///   number
  public long bytes(long count) {
    if (count < 0 || count > Long.MAX_VALUE >> shift) {
      throw new IllegalArgumentException(
          "count: " + count + " (expected: 0.." + (Long.MAX_VALUE >> shift) + " " + this + ")");
    }
    return count << shift;
  }

  /// How many whole elements fit in `bytes` bytes.
  public long countIn(long bytes) {
    return bytes >> shift;
  }

  /// The kind of number.
  public Kind kind() {
    return kind;
  }

  /// Whether this is a signed or unsigned integer.
  public boolean isInteger() {
    return kind == Kind.SIGNED || kind == Kind.UNSIGNED;
  }

  /// The type of a pair's value; for every other type the type itself.
  public DataType valueType() {
    return kind == Kind.PAIR ? ofId(id - PAIR_ID) : this;
  }

  /// The type of pairs of this value and an index.
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
