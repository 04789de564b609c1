package org.comm4j.cli;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import org.comm4j.api.spi.ThreadRanks;

/// Standard input for ranks that are threads: rank 0's alone, as where ranks are processes. For the
/// others it has ended.
final class RankInput extends FilterInputStream {
  RankInput(InputStream input) {
    super(input);
  }

  private static boolean hasEnded() {
    return ThreadRanks.current().map(rank -> rank.rank() > 0).orElse(false);
  }

  @Override
  public int read() throws IOException {
    return hasEnded() ? -1 : super.read();
  }

  @Override
  public int read(byte[] bytes, int from, int count) throws IOException {
    return hasEnded() ? -1 : super.read(bytes, from, count);
  }

  @Override
  public int available() throws IOException {
    return hasEnded() ? 0 : super.available();
  }

  @Override
  public long skip(long count) throws IOException {
    return hasEnded() ? 0 : super.skip(count);
  }

  @Override
  public void close() throws IOException {
    if (!hasEnded()) {
      super.close();
    }
  }
}
