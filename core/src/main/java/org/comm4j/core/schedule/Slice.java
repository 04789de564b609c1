package org.comm4j.core.schedule;

/// A part of a buffer, in elements.
///
/// @param space which buffer
/// @param from the first element
/// @param count how many; 0 is legal
public record Slice(Space space, long from, long count) {
  public Slice {
    if (from < 0 || count < 0) {
      throw new IllegalArgumentException(
          "slice: %d from %d (expected: 0 or more)".formatted(count, from));
    }
  }

  /// The same elements in another buffer.
  public Slice in(Space other) {
    return new Slice(other, from, count);
  }

  /// Some of its elements.
  ///
  /// @param offset the first of them, counted from this slice's start
  public Slice part(long offset, long count) {
    assert offset >= 0 && offset + count <= this.count
        : this + " has no " + count + " at " + offset;
    return new Slice(space, from + offset, count);
  }

  /// The first element behind this slice.
  public long end() {
    return from + count;
  }

  @Override
  public String toString() {
    return "%s[%d..%d)".formatted(space.name().toLowerCase(java.util.Locale.ROOT), from, end());
  }
}
