package org.comm4j.core.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.SharedRegion;
import org.jspecify.annotations.Nullable;

/// A region and its life, whoever has the memory. On a group of one it is plain.
public final class HostRegion implements SharedRegion {
  private final DataType type;
  private final long count;
  private final boolean leader;
  private final MemorySegment memory;
  private final @Nullable Owner owner;
  private Phase phase = Phase.ALLOCATED;

  /// Whose memory a region is.
  public interface Owner {
    /// Ends the population; a collective of the ranks that share the region.
    void fence();

    /// This rank needs the region no more. Called once.
    void closed();
  }

  /// A region that is allocated.
  ///
  /// @param leader whether this rank writes it
  /// @param memory of `count` elements; null for plain memory of its own
  /// @param owner null on a group of one
  public HostRegion(
      DataType type,
      long count,
      boolean leader,
      @Nullable MemorySegment memory,
      @Nullable Owner owner) {
    this.type = type;
    this.count = count;
    this.leader = leader;
    this.memory = memory == null ? Arena.ofAuto().allocate(type.bytes(count), 64) : memory;
    this.owner = owner;
  }

  @Override
  public DataType type() {
    return type;
  }

  @Override
  public long count() {
    return count;
  }

  @Override
  public synchronized Phase phase() {
    return phase;
  }

  @Override
  public synchronized void populate(Consumer<HostData> writer) {
    if (!leader) {
      throw new IllegalStateException(
          "populate: only the leader, the host's rank 0, writes a region; ask isLeader()");
    }
    if (phase != Phase.ALLOCATED && phase != Phase.POPULATED) {
      throw wrong("populate", "before the fence");
    }
    writer.accept(CommData.of(type, memory));
    phase = Phase.POPULATED;
  }

  @Override
  public synchronized void fence() {
    if (phase != Phase.ALLOCATED && phase != Phase.POPULATED) {
      throw wrong("fence", "once, before the close");
    }
    if (owner != null) {
      owner.fence();
    }
    phase = Phase.FENCED;
  }

  @Override
  public synchronized HostData data() {
    if (phase != Phase.FENCED) {
      throw wrong("data", "between fence and close");
    }
    return CommData.of(type, memory.asReadOnly());
  }

  @Override
  public synchronized void close() {
    if (phase == Phase.CLOSED) {
      return;
    }
    phase = Phase.CLOSED;
    if (owner != null) {
      try {
        owner.closed();
      } catch (CommException | IllegalStateException _) {
        // the communicator is broken or closed: the leader has the memory back when this rank
        // leaves
      }
    }
  }

  private IllegalStateException wrong(String what, String when) {
    return new IllegalStateException(
        "%s: the region is %s (expected: called %s)".formatted(what, phase, when));
  }
}
