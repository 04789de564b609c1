package org.comm4j.backend.cuda;

import java.util.List;
import java.util.Locale;
import jcuda.driver.CUfunction;
import jcuda.driver.CUstream;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;

/// Measures the kernels where ranks share one GPU; `gpu-check` runs it. What the launches cost is
/// in the times: each is that of one call in a row of calls.
public final class GpuBench {
  private static final int SMALL_BYTES = 8 << 10;
  private static final String WITH_EPILOGUE = "two-stage, scaled and biased";
  private static final int BIAS_COUNT = 4096;
  private static final long NEVER_NS = 60_000_000_000L;

  private final CudaDevice device = TestDevice.get().device();
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
    double copied = copyBytesPerNs();
    System.out.printf(Locale.ROOT, "copies move %.0f GB/s (read and written)%n%n", copied);
    System.out.println("| kernel | type | ranks | bytes | µs | of the traffic bound |");
    System.out.println("|---|---|---|---|---|---|");
    for (int ranks : List.of(2, 4, 8)) {
      for (DataType type : List.of(DataType.FLOAT32, DataType.BFLOAT16)) {
        // each rank reads and writes all of the data, and its part once more each
        double boundNs = 3.0 * ranks * largeBytes / copied;
        print("two-stage", type, ranks, largeBytes, boundNs);
        print(WITH_EPILOGUE, type, ranks, largeBytes, boundNs);
      }
    }
    for (int ranks : List.of(2, 4, 8)) {
      print("meet", DataType.FLOAT32, ranks, SMALL_BYTES, Double.NaN);
      print("one-stage", DataType.FLOAT32, ranks, SMALL_BYTES, Double.NaN);
      print("low-latency", DataType.FLOAT32, ranks, SMALL_BYTES, Double.NaN);
    }
  }

  private void print(String kernel, DataType type, int ranks, long bytes, double boundNs) {
    double ns = callNs(kernel, type, ranks, bytes);
    System.out.printf(
        Locale.ROOT,
        "| %s | %s | %d | %d | %.1f | %s |%n",
        kernel,
        type,
        ranks,
        bytes,
        ns / 1000,
        Double.isNaN(boundNs) ? "" : "%.0f %%".formatted(100 * boundNs / ns));
  }

  private double copyBytesPerNs() {
    long from = device.allocate(largeBytes);
    long to = device.allocate(largeBytes);
    CUstream stream = device.createStream();
    double best = 0;
    for (int attempt = 0; attempt < 3; attempt++) {
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

  /// The time of one call of all ranks, the best of three rows.
  private double callNs(String kernel, DataType type, int ranks, long bytes) {
    CUfunction function = TestDevice.get().function(name(kernel, type));
    long part = Math.ceilDiv(Window.partBytes(bytes, ranks), 16) * 16;
    var layout = new Window(ranks, SMALL_BYTES, part);
    var all = new Rank[ranks];
    for (int rank = 0; rank < ranks; rank++) {
      all[rank] = new Rank(device, layout, bytes);
    }
    int blocks = blocks(function, ranks, bytes);
    double best = Double.POSITIVE_INFINITY;
    long call = 0;
    for (int attempt = 0; attempt < 3; attempt++) {
      long start = System.nanoTime();
      for (int i = 0; i < repeats; i++) {
        call++;
        for (int rank = 0; rank < ranks; rank++) {
          Parameters parameters = all[rank].parameters(rank, all).call(call, 0);
          if (kernel.equals("one-stage")) {
            parameters.oneStage(0, type.countIn(bytes), ranks);
          } else {
            parameters.twoStage(type.countIn(bytes), ranks);
          }
          if (kernel.equals(WITH_EPILOGUE)) {
            parameters.epilogue(type, 0.5, all[rank].input, BIAS_COUNT, 0, 0);
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

  private static KernelName name(String kernel, DataType type) {
    return switch (kernel) {
      case "meet" -> KernelName.MEET;
      case "low-latency" -> KernelName.lowLatency(ReduceOp.SUM, type).orElseThrow();
      default -> KernelName.reduce(ReduceOp.SUM, type).orElseThrow();
    };
  }

  /// As many as have work, and as are on the device with those of the other ranks.
  private int blocks(CUfunction function, int ranks, long bytes) {
    int resident = device.residentBlocks(function, threads) / ranks;
    long useful = Math.ceilDiv(bytes, 16L * threads);
    return Math.clamp(useful, 1, Math.min(Window.MAX_BLOCKS, resident));
  }

  private static final class Rank {
    private final CudaDevice device;
    private final Window layout;
    private final CUstream stream;
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
      device.clear(input, bytes, stream);
      device.await(stream);
    }

    Parameters parameters(int rank, Rank[] all) {
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
