package org.comm4j.backend.local;

import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Session;
import org.comm4j.core.transport.HostTransport;
import org.comm4j.core.transport.HostTransports;

/// Shared memory between the ranks of one host, for backends that connect hosts.
public final class ShmTransports implements HostTransports {
  /// Does nothing.
  public ShmTransports() {}

  @Override
  public HostTransport open(Session host, CommConfig config, boolean carriesCollectives) {
    return new ShmRendezvous(host, ShmProvider.ROOT, config.joinTimeout(), carriesCollectives)
        .open(
            WindowOption.SHM.bytes(config),
            NativeCalls.find(),
            SingleCopyOption.of(config),
            SharedMemoryTransport.MAX_SLEEP_NANOS);
  }
}
