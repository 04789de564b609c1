package org.comm4j.backend.cuda;

import java.util.Locale;
import java.util.Optional;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.ReduceOp.Predefined;

/// A compiled kernel.
///
/// @param module the file of PTX that has it, without its ending
/// @param function its entry there
record KernelName(String module, String function) {
  /// Copies what each rank gets of the others.
  static final KernelName FETCH = new KernelName("copies", "fetch");

  /// Waits for all.
  static final KernelName MEET = new KernelName("copies", "meet");

  /// Reduces in one stage or two, any amount of data.
  ///
  /// @return empty where no kernel has the operator for the type: pairs, complex numbers, logical
  ///   and user-defined operators
  static Optional<KernelName> reduce(ReduceOp op, DataType type) {
    return of("reduce", op, type);
  }

  /// An all-reduce of little data.
  ///
  /// @return empty where no kernel has the operator for the type
  static Optional<KernelName> lowLatency(ReduceOp op, DataType type) {
    return of("low_latency", op, type);
  }

  private static Optional<KernelName> of(String algorithm, ReduceOp op, DataType type) {
    if (!op.supports(type) || !(op instanceof Predefined predefined)) {
      return Optional.empty();
    }
    boolean number =
        type.kind() == Kind.FLOAT || type.kind() == Kind.SIGNED || type.kind() == Kind.UNSIGNED;
    return switch (predefined) {
      case AVERAGE, MIN, MAX -> number ? name(algorithm, op, type) : Optional.empty();
      case SUM, PRODUCT -> number ? name(algorithm, op, withSign(type)) : Optional.empty();
      case BIT_AND, BIT_OR, BIT_XOR -> name(algorithm, op, withSign(type));
      case LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR, MIN_LOC, MAX_LOC -> Optional.empty();
    };
  }

  /// The type on which the operator is the same machine code.
  private static DataType withSign(DataType type) {
    return switch (type) {
      case UINT64 -> DataType.INT64;
      case UINT32 -> DataType.INT32;
      case UINT16 -> DataType.INT16;
      case UINT8, BOOL -> DataType.INT8;
      default -> type;
    };
  }

  private static Optional<KernelName> name(String algorithm, ReduceOp op, DataType type) {
    String module = lower(type.name());
    return Optional.of(
        new KernelName(module, "%s_%s_%s".formatted(algorithm, lower(op.name()), module)));
  }

  private static String lower(String name) {
    return name.toLowerCase(Locale.ROOT);
  }
}
