package org.comm4j.cli;

import java.io.OutputStream;
import java.io.PrintStream;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.comm4j.api.Communicator;
import org.comm4j.api.spi.ThreadRanks;

/// Standard output for ranks that are threads: collects each rank's lines and says whose they are.
final class LabelledStream extends OutputStream {
  private static final int NO_RANK = -1;

  private final SharedStream target;
  private final Map<Integer, RankLine> lines = new ConcurrentHashMap<>();

  LabelledStream(SharedStream target) {
    this.target = target;
  }

  PrintStream stream() {
    return new PrintStream(this, true, target.target().charset());
  }

  @Override
  public void write(int b) {
    write(new byte[] {(byte) b}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int from, int count) {
    int rank = ThreadRanks.current().map(Communicator::rank).orElse(NO_RANK);
    lines
        .computeIfAbsent(rank, _ -> new RankLine(target, rank == NO_RANK ? "" : "[" + rank + "] "))
        .add(bytes, from, count);
  }

  /// Shows what is not finished: the ranks have ended.
  void end() {
    lines.values().forEach(RankLine::end);
  }
}
