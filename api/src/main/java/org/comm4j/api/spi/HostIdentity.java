package org.comm4j.api.spi;

/// Tells whether two ranks share memory: what the kernel says, never what a launcher says.
///
/// @param name the host's name, for people
/// @param id equal exactly where processes can share files in `/dev/shm`: boot id, the namespaces
///   for mounts and processes, and the user
public record HostIdentity(String name, String id) {}
