package org.comm4j.backend.cuda;

import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;

/// Measures the kernels where ranks share one GPU; `gpu-check` runs it. What the launches cost is
/// in the times: each is that of one call in a row of calls.
public final class GpuBench {
  private static final int SMALL_BYTES = 8 << 10;
  private static final int BIAS_COUNT = 4096;
  private static final int RANDOM_BYTES = 1 << 20;
  private static final int ROWS = 5;
  private static final long NEVER_NS = 60_000_000_000L;

  /// What is measured, as the table has it, and what a rank reads and writes, in times its data:
  /// all of it each, and its part once more each; NaN where that is not what takes the time.
  private enum Kernel {
    EMPTY("launched alone", Double.NaN),
    MEET("meet", Double.NaN),
    ONE_STAGE("one-stage", Double.NaN),
    LOW_LATENCY("low-latency", Double.NaN),
    TWO_STAGES("two-stage", 3),
    WITH_EPILOGUE("two-stage, scaled and biased", 3),
    CAST("two-stage, scaled, biased and cast to BFLOAT16", 2.5);

    private final String title;
    private final double trafficOfRank;

    Kernel(String title, double trafficOfRank) {
      this.title = title;
      this.trafficOfRank = trafficOfRank;
    }
  }

  private final TestDevice test = TestDevice.get();
  private final CudaDevice device = test.device();
  private final long largeBytes;
  private final int repeats;
  private final int threads;

  private GpuBench(long largeBytes, int repeats, int threads) {
    this.largeBytes = largeBytes;
    this.repeats = repeats;
    this.threads = threads;
  }

  /// Prints the table.
  ///
  /// @param arguments how large large data is, in MiB, how often to repeat, and how many threads a
  ///   block has
  public static void main(String... arguments) {
    new GpuBench(
            Long.parseLong(arguments[0]) << 20,
            Integer.parseInt(arguments[1]),
            Integer.parseInt(arguments[2]))
        .run();
  }

  private void run() {
    System.out.println("device " + device);
    long start = System.nanoTime();
    test.function(KernelName.MEET);
    System.out.printf(
        Locale.ROOT,
        "all kernels are compiled, or found in the driver's cache, in %.2f s%n",
        (System.nanoTime() - start) / 1e9);
    double copied = copyBytesPerNs();
    System.out.printf(Locale.ROOT, "copies move %.0f GB/s (read and written)%n%n", copied);
    System.out.println("| kernel | type | ranks | blocks | bytes | µs | of the traffic bound |");
    System.out.println("|---|---|---|---|---|---|---|");
    int all = device.multiprocessors();
    for (int blocks : List.of(all, all / 2)) { // of all ranks
      for (int ranks : List.of(2, 4, 8)) {
        int each = Math.max(1, blocks / ranks);
        for (DataType type : List.of(DataType.FLOAT32, DataType.BFLOAT16)) {
          print(Kernel.TWO_STAGES, type, ranks, each, largeBytes, copied);
          print(Kernel.WITH_EPILOGUE, type, ranks, each, largeBytes, copied);
        }
        print(Kernel.CAST, DataType.FLOAT32, ranks, each, largeBytes, copied);
      }
    }
    for (int ranks : List.of(1, 2, 4, 8)) {
      for (Kernel kernel :
          List.of(Kernel.EMPTY, Kernel.MEET, Kernel.ONE_STAGE, Kernel.LOW_LATENCY)) {
        print(kernel, DataType.FLOAT32, ranks, 1, SMALL_BYTES, copied);
      }
    }
  }

  private void print(
      Kernel kernel, DataType type, int ranks, int blocks, long bytes, double copied) {
    double ns = callNs(kernel, type, ranks, blocks, bytes);
    double boundNs = kernel.trafficOfRank * ranks * bytes / copied;
    System.out.printf(
        Locale.ROOT,
        "| %s | %s | %d | %d | %d | %.1f | %s |%n",
        kernel.title,
        type,
        ranks,
        blocks,
        bytes,
        ns / 1000,
        Double.isNaN(boundNs) ? "" : "%.0f %%".formatted(100 * boundNs / ns));
  }

  private double copyBytesPerNs() {
    long from = device.allocate(largeBytes);
    long to = device.allocate(largeBytes);
    CudaDevice.Stream stream = device.createStream();
    double best = 0;
    for (int row = 0; row < ROWS; row++) {
      long start = System.nanoTime();
      for (int i = 0; i < repeats; i++) {
        device.copy(from, to, largeBytes, stream);
      }
      device.await(stream);
      best = Math.max(best, 2.0 * largeBytes * repeats / (System.nanoTime() - start));
    }
    device.destroy(stream);
    device.free(from);
    device.free(to);
    return best;
  }

  /// The time of one call of all ranks, the best of some rows.
  private double callNs(Kernel kernel, DataType type, int ranks, int blocks, long bytes) {
    CudaDevice.Kernel function = test.function(name(kernel, type));
    long part = Math.ceilDiv(Window.partBytes(bytes, ranks), 16) * 16;
    var layout = new Window(kernel == Kernel.EMPTY ? 1 : ranks, SMALL_BYTES, part);
    var all = new Rank[ranks];
    for (int rank = 0; rank < ranks; rank++) {
      all[rank] = new Rank(device, layout, bytes);
    }
    double best = Double.POSITIVE_INFINITY;
    long call = 0;
    for (int row = 0; row < ROWS; row++) {
      long start = System.nanoTime();
      for (int i = 0; i < repeats; i++) {
        call++;
        for (int rank = 0; rank < ranks; rank++) {
          Parameters parameters =
              kernel == Kernel.EMPTY
                  ? all[rank].parameters(0, all[rank])
                  : all[rank].parameters(rank, all);
          parameters.call(call, 0);
          if (kernel == Kernel.ONE_STAGE) {
            parameters.oneStage(0, type.countIn(bytes), ranks);
          } else {
            parameters.twoStage(type.countIn(bytes), ranks);
          }
          if (kernel == Kernel.WITH_EPILOGUE || kernel == Kernel.CAST) {
            DataType to = kernel == Kernel.CAST ? DataType.BFLOAT16 : type;
            parameters.epilogue(to, 0.5, all[rank].input, BIAS_COUNT, 0, 0);
          }
          device.launch(function, blocks, threads, all[rank].stream, parameters);
        }
      }
      for (Rank rank : all) {
        device.await(rank.stream);
        rank.check();
      }
      best = Math.min(best, (double) (System.nanoTime() - start) / repeats);
    }
    for (Rank rank : all) {
      rank.free();
    }
    return best;
  }

  private static KernelName name(Kernel kernel, DataType type) {
    return switch (kernel) {
      case EMPTY, MEET -> KernelName.MEET;
      case LOW_LATENCY -> KernelName.lowLatency(ReduceOp.SUM, type).orElseThrow();
      case CAST -> KernelName.reduceAndCast(type);
      case ONE_STAGE, TWO_STAGES, WITH_EPILOGUE ->
          KernelName.reduce(ReduceOp.SUM, type).orElseThrow();
    };
  }

  private static final class Rank {
    private final CudaDevice device;
    private final Window layout;
    private final CudaDevice.Stream stream;
    private final long window;
    private final long input;
    private final long output;
    private final CudaDevice.HostMemory control;

    Rank(CudaDevice device, Window layout, long bytes) {
      this.device = device;
      this.layout = layout;
      this.stream = device.createStream();
      this.window = device.allocate(layout.bytes());
      this.input = device.allocate(bytes);
      this.output = device.allocate(bytes);
      this.control = device.allocateHost(Control.BYTES);
      device.clear(window, layout.bytes(), stream);
      fill(bytes);
    }

    /// With random numbers from 0 to 1, as FLOAT32 has them: with zeros GPUs may be faster.
    private void fill(long bytes) {
      var random = new Random(1);
      CudaDevice.HostMemory numbers = device.allocateHost(RANDOM_BYTES);
      for (int i = 0; i < RANDOM_BYTES / Float.BYTES; i++) {
        numbers.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, random.nextFloat());
      }
      for (long at = 0; at < bytes; at += RANDOM_BYTES) {
        long count = Math.min(RANDOM_BYTES, bytes - at);
        device.copy(numbers.segment().address(), input + at, count, stream);
      }
      device.await(stream);
      device.freeHost(numbers);
    }

    Parameters parameters(int rank, Rank... all) {
      var parameters = new Parameters(rank, layout, control.segment().address(), NEVER_NS);
      for (int peer = 0; peer < all.length; peer++) {
        parameters.peer(peer, all[peer].window, 0);
      }
      return parameters.data(input, output, true);
    }

    void check() {
      Control.Outcome outcome = new Control(control.segment()).outcome();
      if (outcome != Control.Outcome.DONE) {
        throw new AssertionError("a kernel has left: " + outcome);
      }
    }

    void free() {
      device.destroy(stream);
      device.free(window);
      device.free(input);
      device.free(output);
      device.freeHost(control);
    }
  }
}
