package org.comm4j.api.spi;

/// What the ranks of a backend are.
public enum RankKind {
  /// Threads of one JVM; [BackendProvider#launch] makes them a group.
  THREADS,
  /// Processes; [BackendProvider#open] gives each its communicator.
  PROCESSES
}
