package org.comm4j.api;

import java.util.function.Consumer;

/// Memory of a host that its ranks share: allocated, populated by the leader, fenced (from then on
/// read-only everywhere), closed. Each step out of that order is an [IllegalStateException].
public interface SharedRegion extends AutoCloseable {
  /// Where in its life a region is.
  enum Phase {
    /// Made; nothing is written yet.
    ALLOCATED,
    /// The leader has written at least once.
    POPULATED,
    /// Complete and read-only everywhere.
    FENCED,
    /// Given back by this rank.
    CLOSED
  }

  /// {@return what the elements are}
  DataType type();

  /// {@return how many elements there are}
  long count();

  /// {@return where in its life the region is, as this rank knows}
  Phase phase();

  /// Lets the leader write the region. May be called more than once before the fence.
  ///
  /// @param writer gets the whole region, writable, valid during the call
  /// @throws IllegalStateException on any rank but the leader, or after the fence
  void populate(Consumer<HostData> writer);

  /// Ends the population; a collective of the node group. Afterwards every rank sees what the
  /// leader wrote.
  ///
  /// @throws IllegalStateException if it was called before
  void fence();

  /// {@return the region, read-only: on every rank of the host the same memory}
  ///
  /// @throws IllegalStateException before the fence and after the close
  HostData data();

  /// Gives the memory back once every rank of the host has closed it. Closing twice does nothing.
  @Override
  void close();
}
