package org.comm4j.core.kernel;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.ReduceOp.Predefined;
import org.comm4j.api.ReduceOp.UserDefined;
import org.jspecify.annotations.Nullable;

/// Makes kernels and keeps those of the predefined operators, since each brings machine code of its
/// own.
final class Kernels {
  private static final boolean HAS_VECTORS =
      ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent();

  private static final Map<Predefined, Map<DataType, Kernel>> KNOWN =
      new EnumMap<>(Predefined.class);

  static {
    for (Predefined op : Predefined.values()) {
      KNOWN.put(op, new ConcurrentHashMap<>());
    }
  }

  private Kernels() {}

  static Kernel of(ReduceOp op, DataType type) {
    if (!op.supports(type)) {
      throw new IllegalArgumentException(
          "op: %s is not defined for %s (expected: an operator of the table in ReduceOp)"
              .formatted(op.name(), type));
    }
    return switch (op) {
      case UserDefined user -> new UserKernel(user.function(), type);
      case Predefined predefined -> known(predefined, type);
    };
  }

  /// Every kernel there is for this operator and type: all must give the same bits.
  static List<Kernel> variants(Predefined op, DataType type) {
    return List.of(new TileKernel(op, type, null), new TileKernel(op, type, vectors(op, type)));
  }

  private static Kernel known(Predefined op, DataType type) {
    Map<DataType, Kernel> kernels = Objects.requireNonNull(KNOWN.get(op));
    Kernel kernel = kernels.get(type);
    return kernel != null
        ? kernel
        : kernels.computeIfAbsent(type, t -> new TileKernel(op, t, vectors(op, t)));
  }

  /// The one place that mentions vectors: without their module nothing loads what is behind it.
  private static @Nullable VectorFold vectors(Predefined op, DataType type) {
    return HAS_VECTORS ? VectorLoops.of(op, op.accumulationType(type)) : null;
  }
}
