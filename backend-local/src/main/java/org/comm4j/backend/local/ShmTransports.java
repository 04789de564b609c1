package org.comm4j.backend.local;

import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Session;
import org.comm4j.core.transport.HostTransports;
import org.comm4j.core.transport.Transport;

/// Shared memory between the ranks of one host, for backends that connect hosts.
public final class ShmTransports implements HostTransports {
  private static final long NO_WINDOW = 0;

  /// Does nothing.
  public ShmTransports() {}

  @Override
  public Transport open(Session host, CommConfig config) {
    return new ShmRendezvous(host, ShmProvider.ROOT, config.joinTimeout())
        .open(NO_WINDOW, NativeCalls.find(), SharedMemoryTransport.MAX_SLEEP_NANOS);
  }
}
