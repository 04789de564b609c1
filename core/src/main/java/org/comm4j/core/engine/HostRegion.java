package org.comm4j.core.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.TransportFailedException;

/// A region of the host's memory, whoever has it.
public final class HostRegion extends Region<HostData> {
  private final HostData whole;

  /// A region that is allocated.
  ///
  /// @param leader whether this rank writes it
  public HostRegion(HostData whole, boolean leader, Owner owner) {
    super(whole.type(), whole.count(), leader, owner);
    this.whole = whole;
  }

  /// The region of a rank that is alone on its host.
  ///
  /// @param checkUnused throws [IllegalStateException] if an operation in flight uses this
  /// @throws TransportFailedException if there is no room for it
  public static HostRegion ofOne(DataType type, long count, Consumer<HostData> checkUnused) {
    HostData whole =
        CommData.of(type, PlainBuffer.memory(Arena.ofAuto(), "createRegion", type.bytes(count)));
    return new HostRegion(
        whole,
        true,
        new Owner() {
          @Override
          public void fence() {}

          @Override
          public void close() {
            checkUnused.accept(whole);
          }
        });
  }

  @Override
  protected HostData whole(boolean isReadOnly) {
    return isReadOnly ? CommData.of(type(), whole.segment().asReadOnly()) : whole;
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
