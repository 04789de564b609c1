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

  private static final Map<Carrier, VectorFold> CANONICAL_NANS = new ConcurrentHashMap<>();

  private static final Map<Predefined, Map<DataType, TileKernel>> KNOWN =
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
      case UserDefined user -> new UserKernel(user, type);
      case Predefined predefined -> known(predefined, type);
    };
  }

  /// Every kernel there is for this operator and type: all must give the same bits.
  static List<TileKernel> variants(Predefined op, DataType type) {
    return List.of(new TileKernel(op, type, TileKernel.Vectors.NONE), known(op, type));
  }

  private static TileKernel known(Predefined op, DataType type) {
    Map<DataType, TileKernel> kernels = Objects.requireNonNull(KNOWN.get(op));
    TileKernel kernel = kernels.get(type);
    if (kernel != null) {
      return kernel;
    }
    Predefined basicOp = op == Predefined.AVERAGE ? Predefined.SUM : op;
    DataType basicType = basicType(op, op.accumulationType(type));
    TileKernel made =
        op == basicOp && type == basicType
            ? new TileKernel(op, type, vectors(op, type))
            : known(basicOp, basicType).sharedBy(op, type, vectors(op, type));
    kernel = kernels.putIfAbsent(type, made);
    return kernel != null ? kernel : made;
  }

  /// The type on which the operator is the same machine code: what is compiled once serves all.
  private static DataType basicType(Predefined op, DataType type) {
    return switch (op) {
      case MIN, MAX, MIN_LOC, MAX_LOC -> type;
      default ->
          switch (type) {
            case UINT64 -> DataType.INT64;
            case UINT32 -> DataType.INT32;
            case UINT16 -> DataType.INT16;
            case UINT8, BOOL -> DataType.INT8;
            case COMPLEX64 -> op == Predefined.PRODUCT ? type : DataType.FLOAT32;
            case COMPLEX128 -> op == Predefined.PRODUCT ? type : DataType.FLOAT64;
            default -> type;
          };
    };
  }

  /// What makes NaNs among these floats canonical by vectors, or null where there are none.
  static @Nullable VectorFold canonicalNans(Carrier floats) {
    if (!HAS_VECTORS) {
      return null;
    }
    VectorFold known = CANONICAL_NANS.get(floats);
    return known != null
        ? known
        : CANONICAL_NANS.computeIfAbsent(floats, VectorLoops::canonicalNans);
  }

  /// With the one above what mentions vectors: without their module nothing loads what is behind
  /// it.
  private static TileKernel.Vectors vectors(Predefined op, DataType type) {
    if (!HAS_VECTORS) {
      return TileKernel.Vectors.NONE;
    }
    return op.accumulationType(type) == type
        ? new TileKernel.Vectors(VectorLoops.of(op, type), null, null, null, null)
        : new TileKernel.Vectors(
            null,
            SmallFloatLoops.ofRaw(op, type),
            SmallFloatLoops.ofMixed(op, type),
            SmallFloatLoops.ofRounding(type),
            SmallFloatLoops.ofWhole(op, type));
  }
}
