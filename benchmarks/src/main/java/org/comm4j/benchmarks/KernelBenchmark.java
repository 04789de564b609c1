package org.comm4j.benchmarks;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp.Predefined;
import org.comm4j.core.kernel.Kernel;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/// How fast elements are combined. The counter `bytes` is in GB/s: two reads and one write per element.
///
///     java -jar benchmarks.jar KernelBenchmark -p kernel=SUM:FLOAT32 \
///         -jvmArgsAppend "--add-modules jdk.incubator.vector"
///
/// Before it measures, a trial combines memory of every kind, as a program does: a benchmark that
/// shows the virtual machine only one kind of segment finds numbers that no program sees.
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 3, time = 1)
@Fork(1)
public class KernelBenchmark {
  @Param({"SUM:FLOAT32", "SUM:FLOAT64", "SUM:INT32", "MAX:FLOAT32", "SUM:BFLOAT16", "SUM:FLOAT16"})
  String kernel;

  @Param({"4096", "65536", "4194304"})
  long size;

  @Param({"native", "heap", "heap+=native"})
  String memory;

  private Kernel operation;
  private long count;
  private MemorySegment target;
  private MemorySegment source;
  private MemorySegment raw;

  /// The bytes that a benchmark has read and written.
  @State(Scope.Thread)
  @AuxCounters(AuxCounters.Type.OPERATIONS)
  public static class Moved {
    public long bytes;
  }

  @Setup
  public void setup() {
    String[] parts = kernel.split(":", -1);
    operation = Kernel.of(Predefined.valueOf(parts[0]), DataType.valueOf(parts[1]));
    DataType wide = operation.accumulator();
    count = size / wide.bytes();
    target = allocate(wide, !memory.equals("native"));
    source = allocate(wide, memory.equals("heap"));
    raw = allocate(operation.type(), memory.equals("heap"));
    MemorySegment[] all = {
      target, source, MemorySegment.ofArray(new byte[(int) size]), allocate(wide, false)
    };
    for (int round = 0; round < 200; round++) {
      for (MemorySegment a : all) {
        for (MemorySegment b : all) {
          long some = Math.min(count, 1024);
          operation.combine(a, 0, b, 0, some);
          operation.widen(raw, 0, b, 0, some);
        }
      }
    }
    for (MemorySegment segment : all) {
      segment.fill((byte) 0);
    }
    awaitWarmUp();
  }

  /// Uses what is measured until its vector loops, if it has any, are fast.
  private void awaitWarmUp() {
    for (long bytes = 0; bytes < 16 << 20 || Kernel.areWarmingUp(); bytes += size) {
      operation.combine(source, 0, target, 0, count);
      operation.combineRaw(raw, 0, target, 0, count);
    }
  }

  private MemorySegment allocate(DataType type, boolean heap) {
    int elements = (int) count;
    if (!heap) {
      return Arena.ofAuto().allocate(type.bytes(count), 64);
    }
    return switch (type) {
      case FLOAT64 -> MemorySegment.ofArray(new double[elements]);
      case FLOAT32 -> MemorySegment.ofArray(new float[elements]);
      case INT64, UINT64 -> MemorySegment.ofArray(new long[elements]);
      case INT32, UINT32 -> MemorySegment.ofArray(new int[elements]);
      case INT16, UINT16, FLOAT16, BFLOAT16 -> MemorySegment.ofArray(new short[elements]);
      default -> MemorySegment.ofArray(new byte[(int) type.bytes(count)]);
    };
  }

  /// `target = target ∘ source`, in the accumulation type.
  @Benchmark
  public void combine(Moved moved) {
    operation.combine(source, 0, target, 0, count);
    moved.bytes += 3 * count * operation.accumulator().bytes();
  }

  /// `target = target ∘ widen(source)`.
  @Benchmark
  public void combineRaw(Moved moved) {
    operation.combineRaw(raw, 0, target, 0, count);
    moved.bytes += count * (2 * operation.accumulator().bytes() + operation.type().bytes());
  }
}
