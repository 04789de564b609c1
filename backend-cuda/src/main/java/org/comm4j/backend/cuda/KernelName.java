package org.comm4j.backend.cuda;

import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
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

  private static final int WORD_BYTES = 8;
  private static final String CAST = "_cast";

  /// Reduces in one stage or two, any amount of data.
  ///
  /// @return empty for user-defined operators, and where the operator isn't defined for the type
  static Optional<KernelName> reduce(ReduceOp op, DataType type) {
    return of("reduce", op, type);
  }

  /// An all-reduce of little data.
  ///
  /// @return empty where [#reduce] is, and for elements of 16 bytes
  static Optional<KernelName> lowLatency(ReduceOp op, DataType type) {
    return type.bytes() <= WORD_BYTES ? of("low_latency", op, type) : Optional.empty();
  }

  /// {@return whether the kernels of this operator and type do [Parameters#epilogue]}
  static boolean hasEpilogue(ReduceOp op, DataType type) {
    return (op == Predefined.SUM || op == Predefined.AVERAGE) && type.kind() == Kind.FLOAT;
  }

  /// A reduction in one stage or two that [#hasEpilogue] and whose output has another
  /// floating-point type: sums and averages, which their divisor tells apart.
  ///
  /// @param type of the input
  static KernelName reduceAndCast(DataType type) {
    return cast("reduce", type);
  }

  /// The same of little data.
  ///
  /// @param type of the input
  static KernelName lowLatencyAndCast(DataType type) {
    return cast("low_latency", type);
  }

  private static KernelName cast(String algorithm, DataType type) {
    String name = lower(type.name());
    return new KernelName(name + CAST, algorithm + "_" + name + CAST);
  }

  /// {@return all kernels, by their modules}
  static Map<String, Set<KernelName>> all() {
    Map<String, Set<KernelName>> all = new TreeMap<>();
    Consumer<KernelName> put =
        name -> all.computeIfAbsent(name.module, _ -> new LinkedHashSet<>()).add(name);
    put.accept(FETCH);
    put.accept(MEET);
    for (DataType type : DataType.values()) {
      for (Predefined op : Predefined.values()) {
        reduce(op, type).ifPresent(put);
        lowLatency(op, type).ifPresent(put);
      }
      if (hasEpilogue(Predefined.SUM, type)) {
        put.accept(reduceAndCast(type));
        put.accept(lowLatencyAndCast(type));
      }
    }
    return all;
  }

  private static Optional<KernelName> of(String algorithm, ReduceOp op, DataType type) {
    return op instanceof Predefined predefined && op.supports(type)
        ? Optional.of(name(algorithm, predefined, type))
        : Optional.empty();
  }

  private static KernelName name(String algorithm, Predefined op, DataType type) {
    DataType coded =
        switch (op) {
          case SUM, PRODUCT -> withSign(type);
          case BIT_AND, BIT_OR, BIT_XOR, LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR -> withSign(type);
          case AVERAGE, MIN, MAX, MIN_LOC, MAX_LOC -> type;
        };
    return new KernelName(
        module(op, coded), "%s_%s_%s".formatted(algorithm, lower(op.name()), lower(coded.name())));
  }

  private static String module(Predefined op, DataType type) {
    return switch (op) {
      case LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR -> "logical";
      case MIN_LOC, MAX_LOC -> "pairs";
      default -> type.kind() == Kind.COMPLEX ? "complex" : lower(type.name());
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

  private static String lower(String name) {
    return name.toLowerCase(Locale.ROOT);
  }
}
