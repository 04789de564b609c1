package org.comm4j.cli;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.comm4j.api.Communicator;
import org.comm4j.api.spi.ThreadRanks;

/// Standard output for ranks that are threads: collects each rank's lines and says whose they are.
final class LabelledStream extends OutputStream {
  private static final int NO_RANK = -1;

  private final PrintStream target;
  private final Map<Integer, ByteArrayOutputStream> lines = new HashMap<>();

  LabelledStream(PrintStream target) {
    this.target = target;
  }

  PrintStream stream() {
    return new PrintStream(this, true, StandardCharsets.UTF_8);
  }

  @Override
  public void write(int b) {
    write(new byte[] {(byte) b}, 0, 1);
  }

  @Override
  public synchronized void write(byte[] bytes, int from, int count) {
    int rank = ThreadRanks.current().map(Communicator::rank).orElse(NO_RANK);
    ByteArrayOutputStream line = lines.computeIfAbsent(rank, _ -> new ByteArrayOutputStream());
    for (int i = from; i < from + count; i++) {
      line.write(bytes[i]);
      if (bytes[i] == '\n' || bytes[i] == '\r') {
        flush(rank, line);
      }
    }
  }

  private void flush(int rank, ByteArrayOutputStream line) {
    String label = rank == NO_RANK ? "" : "[" + rank + "] ";
    target.print(label + line.toString(StandardCharsets.UTF_8));
    target.flush();
    line.reset();
  }
}
