package org.comm4j.cli;

import java.io.IOException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.ReduceOp;

/// A rank of [OutOfMemoryTest] whose JVM has little memory: all-reduces, and uses it up if it is
/// greedy, once its input has ended.
///
///     OPERATOR | LIBRARY  true | false
///
/// Prints where its files were, what the call has thrown, with its causes, and what the communicator
/// says then.
final class GreedyRank {
  /// Who is to use it up; the library, on all ranks, where their JVMs let it.
  enum Where {
    /// A user-defined operator, with objects on the heap.
    OPERATOR,
    /// The library, where it needs memory for a result of its own.
    LIBRARY;

    /// What all ranks call.
    ///
    /// @param isGreedy whether this rank is to use its memory up
    Collective call(boolean isGreedy) {
      return switch (this) {
        case OPERATOR -> {
          HostData data = CommData.of(new int[1000]);
          ReduceOp op =
              ReduceOp.of(
                  "greedy",
                  (_, _, _, _) -> {
                    if (isGreedy) {
                      takeAll();
                    }
                  });
          yield new Collective.AllReduce(data, data, op);
        }
        case LIBRARY -> {
          HostData data = CommData.of(new float[MANY]);
          HostData output = CommData.of(new float[MANY]);
          Epilogue epilogue = Epilogue.scale(0.5).plusResidual(output);
          yield new Collective.AllReduce(data, output, ReduceOp.SUM, epilogue);
        }
      };
    }

    private static void takeAll() {
      Object[] all = {};
      while (true) {
        all = new Object[] {all, new byte[100_000]};
      }
    }
  }

  private static final int MANY = 4 << 20;

  private GreedyRank() {}

  public static void main(String[] arguments) throws IOException {
    boolean isGreedy = Boolean.parseBoolean(arguments[1]);
    try (Communicator comm = Communicators.open()) {
      comm.barrier();
      System.out.println(DyingRanks.directory());
      if (isGreedy) {
        System.in.readAllBytes();
      }
      try {
        comm.run(Where.valueOf(arguments[0]).call(isGreedy));
        comm.barrier(); // the call may not need the greedy rank any more
      } catch (RuntimeException | OutOfMemoryError e) {
        for (Throwable each = e; each != null; each = each.getCause()) {
          System.out.println("thrown: " + each);
        }
      }
      System.out.println("failure: " + comm.failure());
    }
  }
}
