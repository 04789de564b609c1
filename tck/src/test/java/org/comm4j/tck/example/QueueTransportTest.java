package org.comm4j.tck.example;

import java.util.List;
import org.comm4j.core.transport.Transport;
import org.comm4j.tck.TransportContract;

final class QueueTransportTest extends TransportContract {
  @Override
  protected List<? extends Transport> transports(int size) {
    return QueueTransport.group(size);
  }

  /// Queues stay, and nobody looks into those of a thread that has ended.
  @Override
  protected boolean kill(Transport rank) {
    return true;
  }
}
