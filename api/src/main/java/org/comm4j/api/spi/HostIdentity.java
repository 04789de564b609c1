package org.comm4j.api.spi;

/// Tells whether two ranks share memory: what the kernel says, never what a launcher says.
///
/// @param name the host's name, for people
/// @param id equal exactly where processes share files in `/dev/shm`, memory and the loopback
///   interface: boot id, the namespaces for mounts, processes, IPC and networks, the user, and
///   which folder is `/dev/shm`
public record HostIdentity(String name, String id) {}
