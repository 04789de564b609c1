package org.comm4j.benchmarks;

import java.util.Arrays;
import java.util.function.DoubleSupplier;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.comm4j.api.ReduceOp;

/// How much of an all-reduce's time is hidden behind a compute loop beside it. Run it with
/// `./comm-cli run -n 2 benchmarks/src/main/java/org/comm4j/benchmarks/Overlap.java`.
///
/// Hidden is what both take one after the other, less what they take together, as a share of the
/// all-reduce. Once with the loop on all ranks, once on rank 0 alone, while the others wait in the
/// call.
public final class Overlap {
  private static final int FLOATS = 4 << 20;
  private static final int ROUNDS = 15;
  private static final int WARM_UPS = 10;

  @SuppressWarnings("UnusedVariable") // keeps the compiler from removing the loop
  private static volatile double sink;

  private Overlap() {}

  public static void main(String[] args) {
    try (Communicator comm = Communicators.open()) {
      var data = CommData.of(new float[FLOATS]);
      var sum = new Collective.AllReduce(data, data, ReduceOp.MAX);
      double[] table = new double[100_000];
      Arrays.setAll(table, i -> i);
      Runnable loop = () -> compute(table);
      for (boolean everywhere : new boolean[] {true, false}) {
        Runnable mine = everywhere || comm.rank() == 0 ? loop : () -> {};
        double computing = median(comm, mine);
        double reducing = median(comm, () -> comm.run(sum));
        double together =
            median(
                comm,
                () -> {
                  var request = comm.start(sum);
                  var _ = request.toCompletableFuture(); // lets it progress by itself
                  mine.run();
                  request.await();
                });
        if (comm.rank() == 0) {
          System.out.printf(
              "loop on %s: loop %.2f ms, all-reduce of %d MiB %.2f ms, together %.2f ms: %.0f %% hidden%n",
              everywhere ? "all ranks" : "rank 0",
              computing,
              FLOATS >> 18,
              reducing,
              together,
              100 * Math.clamp((computing + reducing - together) / reducing, 0, 1));
        }
      }
    }
  }

  private static void compute(double[] table) {
    double total = 0;
    for (int pass = 0; pass < 60; pass++) {
      for (double each : table) {
        total += Math.sqrt(each);
      }
    }
    sink = total;
  }

  /// The slowest rank's time, in ms, behind a barrier.
  private static double median(Communicator comm, Runnable action) {
    DoubleSupplier once =
        () -> {
          comm.barrier();
          long start = System.nanoTime();
          action.run();
          return comm.allReduce((System.nanoTime() - start) / 1e6, ReduceOp.MAX);
        };
    for (int i = 0; i < WARM_UPS; i++) {
      var _ = once.getAsDouble();
    }
    double[] times = new double[ROUNDS];
    Arrays.setAll(times, _ -> once.getAsDouble());
    Arrays.sort(times);
    return times[ROUNDS / 2];
  }
}
