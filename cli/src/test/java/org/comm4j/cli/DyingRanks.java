package org.comm4j.cli;

import static org.comm4j.api.ReduceOp.SUM;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.comm4j.api.PeerFailedException;

/// A program for [RunTest]: all-reduces until a rank dies. Says `rank R has pid P in DIRECTORY`,
/// which is where its memory was, once the ranks are in the middle of it, and `rank R lost [X]`
/// when it is told; with the argument `shrink` the survivors go on, and each says `rank R of N got
/// S`. With the argument `together` all die at once instead, without any goodbye.
final class DyingRanks {
  private static final int WARM_UP = 100;

  private DyingRanks() {}

  /// Runs until a rank dies.
  ///
  /// @param arguments `shrink`, `together`, or nothing
  /// @throws IOException if the system doesn't say what this process has mapped
  public static void main(String[] arguments) throws IOException {
    boolean isTogether = List.of(arguments).contains("together");
    try (Communicator communicator = Communicators.open()) {
      int rank = communicator.rank();
      try {
        float[] data = new float[1000];
        for (int i = 0; ; i++) {
          communicator.allReduce(data, SUM);
          if (i == WARM_UP) {
            System.out.println(
                "rank %d has pid %d in %s"
                    .formatted(rank, ProcessHandle.current().pid(), directory()));
            if (isTogether) {
              System.out.flush();
              communicator.barrier();
              Runtime.getRuntime().halt(1);
            }
          }
        }
      } catch (PeerFailedException e) {
        if (isTogether) { // it was late in the barrier
          Runtime.getRuntime().halt(1);
        }
        System.out.println("rank " + rank + " lost " + e.ranks());
      }
      if (arguments.length > 0) {
        try (Communicator rest = communicator.shrink().communicator()) {
          long sum = rest.allReduce((long) rank, SUM);
          System.out.println("rank %d of %d got %d".formatted(rank, rest.size(), sum));
        }
      }
    }
  }

  /// The folder of the files that this rank has mapped; those of shm have no names by now.
  static Path directory() throws IOException {
    try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
      return maps.filter(line -> line.contains("/comm4j-"))
          .filter(line -> line.contains("/rank-") || line.contains("/driver/cnc.dat"))
          .map(line -> line.substring(line.indexOf('/')).replace("/driver/", "/"))
          .map(file -> Path.of(file).getParent())
          .max(Comparator.naturalOrder()) // a driver's, if there is one: it begins with comm4j-a
          .orElseThrow();
    }
  }
}
