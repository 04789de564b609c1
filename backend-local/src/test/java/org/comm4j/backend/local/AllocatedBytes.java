package org.comm4j.backend.local;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.core.kernel.Kernel;
import org.comm4j.tck.Allocations;
import org.comm4j.tck.ThreadGroups;

/// Counts what a call allocates on two ranks, which are threads: a program for a JVM that is told
/// how much its compiler may do.
///
///     <provider> <RepeatedCall>,… <bytes that are allowed>
///
/// Prints a line for each with its name and the bytes a call, on the rank that allocates most, of
/// the worst of the last rounds: there are more of them until some in a row are good enough. The
/// first ones load classes and compile, and in any one a rank may have to sleep.
final class AllocatedBytes {
  private static final int CALLS = 20; // more than records in turn, and soon over
  private static final int ROUNDS_IN_A_ROW = 3;
  private static final int MOST_ROUNDS = 2000;

  private final Communicator comm;
  private final Runnable call;

  private AllocatedBytes(Communicator comm, Runnable call) {
    this.comm = comm;
    this.call = call;
  }

  public static void main(String[] args) throws Exception {
    BackendProvider provider = provider(args[0]);
    long most = Long.parseLong(args[2]);
    try (LocalGroup group = ThreadGroups.open(provider, 2, CommConfig.builder().build());
        var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      for (String name : args[1].split(",", -1)) {
        RepeatedCall call = RepeatedCall.valueOf(name);
        List<Callable<Double>> ranks = new ArrayList<>();
        for (Communicator comm : group.communicators()) {
          ranks.add(() -> new AllocatedBytes(comm, call.on(comm)).least(most));
        }
        double bytes = 0;
        for (Future<Double> rank : threads.invokeAll(ranks)) {
          bytes = Math.max(bytes, rank.get());
        }
        System.out.println(name + " " + bytes);
      }
    }
  }

  static BackendProvider provider(String name) {
    return Stream.of(new LocalProvider(), new ShmProvider())
        .filter(provider -> provider.name().equals(name))
        .findFirst()
        .orElseThrow();
  }

  private double least(long most) {
    warmUp();
    double[] last = new double[ROUNDS_IN_A_ROW];
    int good = 0;
    for (int round = 0; round < MOST_ROUNDS && good < ROUNDS_IN_A_ROW; round++) {
      double bytes = Allocations.perCall(CALLS, call);
      last[round % ROUNDS_IN_A_ROW] = bytes;
      good = comm.allReduce(bytes, ReduceOp.MAX) < most + 1.0 ? good + 1 : 0; // ranks end together
    }
    return Arrays.stream(last).max().orElseThrow();
  }

  /// Until vector loops are used, where there are any and the call is worth it.
  private void warmUp() {
    do {
      for (int i = 0; i < CALLS; i++) {
        call.run();
      }
    } while (comm.allReduce(Kernel.areWarmingUp() ? 1L : 0L, ReduceOp.MAX) > 0);
  }
}
