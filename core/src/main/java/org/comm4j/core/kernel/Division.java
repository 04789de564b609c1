package org.comm4j.core.kernel;

import org.comm4j.api.DataType;

/// The division at the end of an average.
final class Division {
  private Division() {}

  /// @param type an accumulation type of AVERAGE
  /// @param count how many carriers
  static void divide(DataType type, Object array, int count, int divisor) {
    switch (array) {
      case float[] values -> {
        for (int i = 0; i < count; i++) {
          values[i] /= divisor;
        }
      }
      case double[] values -> {
        for (int i = 0; i < count; i++) {
          values[i] /= divisor;
        }
      }
      case long[] values when type == DataType.UINT64 -> {
        for (int i = 0; i < count; i++) {
          values[i] = Long.divideUnsigned(values[i], divisor);
        }
      }
      case long[] values -> {
        for (int i = 0; i < count; i++) {
          values[i] /= divisor;
        }
      }
      default -> throw new AssertionError(type);
    }
  }
}
