package org.comm4j.api;

import java.util.function.Consumer;

/// Memory of a host that its ranks share: allocated, populated by the leader, fenced (from then on
/// read-only everywhere), closed. Each step out of that order is an [IllegalStateException].
///
/// @param <D> whose memory it is: the host's or a device's
public interface SharedRegion<D extends CommData> extends AutoCloseable {
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
  /// @param writer gets the whole region, writable, valid only during the call: kept longer, it
  ///   might still let itself be written while the others read. What it has a device do must have
  ///   ended before the fence
  /// @throws IllegalStateException on any rank but the leader, or after the fence
  /// @throws ConcurrentUseException if a user-defined operator calls it
  void populate(Consumer<D> writer);

  /// Lets the leader copy from the host's memory into the region, wherever that is; as [#populate].
  ///
  /// @param from which element of the region becomes the first one
  /// @param source of the region's type; may be read-only
  /// @throws IllegalArgumentException if the type is another one, the region is too short, or the
  ///   source is closed or another thread's
  /// @throws IllegalStateException on any rank but the leader, or after the fence
  /// @throws ConcurrentUseException if a user-defined operator calls it
  void write(long from, HostData source);

  /// Ends the population; a collective of the node group, and so a call on the communicator, for
  /// one thread at a time. Afterwards every rank sees what the leader wrote.
  ///
  /// @throws IllegalStateException if it was called before, by the writer of [#populate], or on a
  ///   closed communicator ([ClosedException])
  void fence();

  /// {@return the region, read-only: on every rank of the host the same memory} Of a device's
  /// memory it is where this rank's device reaches it, and nobody but its programs keeps the ranks
  /// from writing.
  ///
  /// @throws IllegalStateException before the fence and after the close
  D data();

  /// Copies from the region, wherever that is, into the host's memory; returns when it is there.
  ///
  /// @param from which element of the region is the first one
  /// @param target of the region's type
  /// @throws IllegalArgumentException if the type is another one, the region is too short, or the
  ///   target is read-only, closed or another thread's
  /// @throws IllegalStateException before the fence, while another thread closes the region and
  ///   after that; of a device's memory also once this rank has closed its communicators
  void read(long from, HostData target);

  /// Gives the memory back once every rank of the host has closed it. What a rank has a device do
  /// with it must have ended before. What this rank viewed of a shared region is gone then: each
  /// use of it is an exception. Closing twice does nothing.
  ///
  /// @throws IllegalStateException while an operation in flight, the writer of [#populate] or
  ///   another thread's [#fence] or [#read] uses it; it stays open
  /// @throws ConcurrentUseException if a user-defined operator closes it; it stays open
  @Override
  void close();
}
