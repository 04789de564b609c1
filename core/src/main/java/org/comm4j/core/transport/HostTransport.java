package org.comm4j.core.transport;

/// A transport between ranks of one host, which also read each other's windows.
public interface HostTransport extends Transport, PeerMemory {}
