package org.comm4j.core.engine;

import org.comm4j.core.transport.Transport;

/// One rank's end of a transport between two, for tests that say how payloads go.
abstract class OneOfTwo implements Transport {
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
  public void park(long nanos) {}

  @Override
  public void wakeUp() {}

  @Override
  public void close() {}
}
