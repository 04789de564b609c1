package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;

/// One rank's end of a transport between two, for tests that say how payloads go: this one takes
/// all, and nothing comes.
class OneOfTwo implements Transport {
  private final int rank;

  OneOfTwo(int rank) {
    this.rank = rank;
  }

  @Override
  public final int rank() {
    return rank;
  }

  @Override
  public final int size() {
    return 2;
  }

  @Override
  public final int maxPayloadBytes(int peer) {
    return 4096;
  }

  @Override
  public boolean offer(int peer, long[] header, MemorySegment payload) {
    return true;
  }

  @Override
  public int poll(PayloadHandler handler, int limit) {
    return 0;
  }

  @Override
  public void park(long nanos) {}

  @Override
  public void wakeUp() {}

  @Override
  public void close() {}
}
