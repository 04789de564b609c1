package org.comm4j.core.kernel;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.core.kernel.Carrier.Tile;
import org.jspecify.annotations.Nullable;

/// Does an [Epilogue] to a result in the host's memory, tile by tile ([Tiles] says why). Stateless;
/// may be used on any thread, and allocates nothing once a thread has used it.
public final class EpilogueKernel {
  private EpilogueKernel() {}

  /// {@return which element of the whole result is the first one of this rank's output}
  ///
  /// @param rank the caller's
  public static long first(Collective.WithEpilogue call, int rank) {
    return switch (call) {
      case Collective.AllReduce _ -> 0;
      case Collective.ReduceScatter c -> rank * c.output().count();
      case Collective.ReduceScatterV c -> c.parts().displacement(rank);
    };
  }

  /// {@return whether the reduction's result needs memory of its own, apart from the output}
  ///
  /// @param type of the result
  public static boolean needsMemory(Epilogue epilogue, DataType type, CommData output) {
    return output.type() != type
        || (epilogue.residual() instanceof HostData residual
            && output instanceof HostData host
            && residual.overlaps(host));
  }

  /// `output[i] = round(widen(result[i]) × scale + bias[(first + i) mod bias.count()] +
  /// residual[i])`.
  ///
  /// @param epilogue of data in the host's memory, without an expression
  /// @param type of the result
  /// @param result as many elements as the output; may be exactly its memory
  /// @param offset of the first one, in bytes
  /// @param first which element of the whole result that is
  public static void apply(
      Epilogue epilogue,
      DataType type,
      MemorySegment result,
      long offset,
      HostData output,
      long first) {
    assert epilogue.expression() == null : epilogue; // a program's own is for devices
    DataType wide =
        type == DataType.FLOAT64 || output.type() == DataType.FLOAT64
            ? DataType.FLOAT64
            : DataType.FLOAT32;
    Tiles tiles = Tiles.mine();
    Tile value = tiles.x(Carrier.of(wide));
    Tile other = tiles.y(Carrier.of(wide));
    HostData bias = host(epilogue.bias());
    HostData residual = host(epilogue.residual());
    int step = Tiles.BYTES / wide.bytes();
    for (long at = 0; at < output.count(); at += step) {
      int count = (int) Math.min(step, output.count() - at);
      load(tiles, type, result, offset + type.bytes(at), wide, value, count);
      multiply(value.array(), epilogue.scale(), count);
      if (bias != null) {
        loadAround(tiles, bias, (first + at) % bias.count(), wide, other, count);
        add(value.array(), other.array(), count);
      }
      if (residual != null) {
        long from = residual.type().bytes(at);
        load(tiles, residual.type(), residual.segment(), from, wide, other, count);
        add(value.array(), other.array(), count);
      }
      store(tiles, wide, value, output, at, count);
    }
  }

  private static @Nullable HostData host(@Nullable CommData data) {
    return (HostData) data; // of devices the checks let none pass
  }

  private static void load(
      Tiles tiles,
      DataType type,
      MemorySegment from,
      long offset,
      DataType wide,
      Tile to,
      int count) {
    Tile raw = raw(tiles, type, wide, to);
    MemorySegment.copy(from, offset, raw.segment(), 0, type.bytes(count));
    widen(tiles, type, raw, wide, to, count);
  }

  /// Elements from an index on, after the last one again the first.
  private static void loadAround(
      Tiles tiles, HostData from, long index, DataType wide, Tile to, int count) {
    DataType type = from.type();
    int known = (int) Math.min(count, from.count());
    int run = (int) Math.min(known, from.count() - index);
    Tile raw = raw(tiles, type, wide, to);
    MemorySegment.copy(from.segment(), type.bytes(index), raw.segment(), 0, type.bytes(run));
    MemorySegment.copy(from.segment(), 0, raw.segment(), type.bytes(run), type.bytes(known - run));
    widen(tiles, type, raw, wide, to, known);
    switch (to.array()) {
      case float[] values -> {
        for (int i = known; i < count; i++) {
          values[i] = values[i - known];
        }
      }
      case double[] values -> {
        for (int i = known; i < count; i++) {
          values[i] = values[i - known];
        }
      }
      default -> throw new AssertionError(wide);
    }
  }

  /// What takes elements of a type as they are.
  private static Tile raw(Tiles tiles, DataType type, DataType wide, Tile to) {
    return type == wide ? to : tiles.x(Carrier.of(type));
  }

  private static void widen(
      Tiles tiles, DataType type, Tile raw, DataType wide, Tile to, int count) {
    if (type == wide) {
      return;
    }
    if (wide == DataType.FLOAT32) {
      Codec.widen(type, raw, to, count);
      return;
    }
    Tile floats = tiles.x(Carrier.FLOAT);
    if (type != DataType.FLOAT32) {
      Codec.widen(type, raw, floats, count);
    }
    float[] from = (float[]) floats.array();
    double[] doubles = (double[]) to.array();
    for (int i = 0; i < count; i++) {
      doubles[i] = from[i];
    }
  }

  private static void multiply(Object array, double scale, int count) {
    switch (array) {
      case float[] values -> {
        float factor = (float) scale;
        for (int i = 0; i < count; i++) {
          values[i] *= factor;
        }
      }
      case double[] values -> {
        for (int i = 0; i < count; i++) {
          values[i] *= scale;
        }
      }
      default -> throw new AssertionError(array);
    }
  }

  private static void add(Object array, Object others, int count) {
    switch (array) {
      case float[] values -> {
        float[] from = (float[]) others;
        for (int i = 0; i < count; i++) {
          values[i] += from[i];
        }
      }
      case double[] values -> {
        double[] from = (double[]) others;
        for (int i = 0; i < count; i++) {
          values[i] += from[i];
        }
      }
      default -> throw new AssertionError(array);
    }
  }

  /// Rounds once.
  private static void store(
      Tiles tiles, DataType wide, Tile value, HostData output, long at, int count) {
    DataType type = output.type();
    Tile rounded = value;
    if (type != wide) {
      rounded = tiles.x(Carrier.of(type));
      Tile floats = value;
      if (wide == DataType.FLOAT64) {
        floats = tiles.x(Carrier.FLOAT);
        narrow((double[]) value.array(), (float[]) floats.array(), type, count);
      }
      if (type != DataType.FLOAT32) {
        Codec.narrow(type, floats, rounded, count); // makes NaNs canonical too
      }
    }
    Nans.makeCanonical(Carrier.of(type), rounded.array(), rounded.segment(), 0, 0, count);
    MemorySegment.copy(rounded.segment(), 0, output.segment(), type.bytes(at), type.bytes(count));
  }

  private static void narrow(double[] from, float[] to, DataType type, int count) {
    if (type == DataType.FLOAT32) {
      for (int i = 0; i < count; i++) {
        to[i] = (float) from[i];
      }
    } else {
      for (int i = 0; i < count; i++) {
        to[i] = Conversions.toFloatByOdd(from[i]);
      }
    }
  }
}
