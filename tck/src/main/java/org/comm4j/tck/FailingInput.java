package org.comm4j.tck;

import java.util.Arrays;
import java.util.SplittableRandom;
import org.comm4j.api.CommData;

/// What a rank gives to calls that may fail, and what it was: rule F2. Every element of every rank
/// has its own value, so that whatever is written over one shows.
///
/// @param numbers are given to calls
/// @param before what they were
record FailingInput(long[] numbers, long[] before) {
  /// In one payload or line of whatever backend.
  static final int FEW = 375;

  /// So many that every backend moves them in parts.
  static final int MANY = 150_000;

  static FailingInput of(LiveRank r, int count) {
    long[] numbers = new SplittableRandom(r.seed() * 31 + r.rank()).longs(count).toArray();
    return new FailingInput(numbers, numbers.clone());
  }

  CommData data() {
    return CommData.of(numbers);
  }

  /// An output that fits.
  CommData output() {
    return CommData.of(new long[numbers.length]);
  }

  /// That nothing was written.
  void isUntouched() {
    int at = Arrays.mismatch(numbers, before);
    Expect.that("F2", at < 0, "a failed call changed element %d of its input", at);
  }
}
