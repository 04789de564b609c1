package org.comm4j.core.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.jspecify.annotations.Nullable;

/// A region of the host's memory, whoever has it. On a group of one it is plain.
public final class HostRegion extends Region<HostData> {
  private final MemorySegment memory;

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
    super(type, count, leader, owner);
    this.memory = memory == null ? Arena.ofAuto().allocate(type.bytes(count), 64) : memory;
  }

  @Override
  protected HostData whole(boolean isReadOnly) {
    return CommData.of(type(), isReadOnly ? memory.asReadOnly() : memory);
  }

  @Override
  protected HostData part(HostData data, long from, long count) {
    return data.slice(from, count);
  }

  @Override
  protected void copyIn(HostData source, HostData part) {
    MemorySegment.copy(source.segment(), 0, part.segment(), 0, part.bytes());
  }

  @Override
  protected void copyOut(HostData part, HostData target) {
    MemorySegment.copy(part.segment(), 0, target.segment(), 0, part.bytes());
  }
}
