package org.comm4j.tck;

import java.util.List;
import java.util.function.UnaryOperator;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.transport.Transport;

/// Groups of the engine on threads.
final class MemoryGroups {
  private MemoryGroups() {}

  /// @param windowBytes 0 for ranks that send messages alone
  static LocalGroup open(int size, CommConfig config, int payloadBytes, long windowBytes) {
    return open(
        size,
        config,
        payloadBytes,
        windowBytes,
        UnaryOperator.identity(),
        UnaryOperator.identity());
  }

  /// @param wire what stands between the engine and the transport
  /// @param door what stands between the API and the engine
  static LocalGroup open(
      int size,
      CommConfig config,
      int payloadBytes,
      long windowBytes,
      UnaryOperator<Transport> wire,
      UnaryOperator<BackendCommunicator> door) {
    List<MemoryTransport> transports = MemoryTransport.group(size, payloadBytes, windowBytes);
    return ThreadGroups.open(
        size,
        session -> {
          MemoryTransport transport = transports.get(session.rank());
          return door.apply(
              EngineCommunicator.open(
                  "memory",
                  session,
                  wire.apply(transport),
                  windowBytes == 0 ? null : transport,
                  config));
        });
  }
}
