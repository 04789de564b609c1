package org.comm4j.core.transport;

import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Session;

/// Transports between the ranks of one host, for backends that connect hosts: they take what is on
/// the class path, found with [java.util.ServiceLoader], and do without where nothing is.
public interface HostTransports {
  /// Opens this rank's end; all ranks of the session call it at once.
  ///
  /// @param host of ranks that have the same host identity; not closed with the transport
  /// @param config of the launch
  /// @param carriesCollectives whether collectives will go through windows
  ///   ([PeerMemory#carriesCollectives]): then what the first communicator needs of them has
  ///   memory, or this fails on all ranks
  /// @return the caller closes it
  /// @throws org.comm4j.api.CommException if it can't be opened on some rank
  HostTransport open(Session host, CommConfig config, boolean carriesCollectives);
}
