package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.Partition;
import org.comm4j.core.kernel.EpilogueKernel;
import org.jspecify.annotations.Nullable;

/// Collectives of a group of one: the result is the input, bit for bit, and what the output gets is
/// the function of it that the call may have. Allocates nothing.
public final class Identity {
  private Identity() {}

  /// Runs a call of the only rank of a group.
  public static void run(Collective call) {
    switch (call) {
      case Collective.AllReduce c -> finish(c.input(), 0, c.output(), c.epilogue());
      case Collective.Reduce c -> copy(c.input(), c.output());
      case Collective.AllGather c -> copy(c.input(), c.output());
      case Collective.AllGatherV c -> copyTo(c.input(), c.output(), c.parts());
      case Collective.Gather c -> copy(c.input(), c.output());
      case Collective.GatherV c -> copyTo(c.input(), c.output(), c.parts());
      case Collective.Scatter c -> copy(c.input(), c.output());
      case Collective.ScatterV c -> copyFrom(c.input(), c.parts(), c.output());
      case Collective.ReduceScatter c -> finish(c.input(), 0, c.output(), c.epilogue());
      case Collective.ReduceScatterV c ->
          finish(c.input(), c.parts().displacement(0), c.output(), c.epilogue());
      case Collective.AllToAll c -> copy(c.input(), c.output());
      case Collective.AllToAllV c ->
          copy(
              c.input(),
              c.sendParts().displacement(0),
              c.output(),
              c.receiveParts().displacement(0),
              c.sendParts().count(0));
      case Collective.Scan c -> copy(c.input(), c.output());
      case Collective.ExclusiveScan _, Collective.Broadcast _, Collective.Barrier _ -> {}
    }
  }

  private static void finish(
      CommData from, long fromIndex, CommData to, @Nullable Epilogue epilogue) {
    if (epilogue == null) {
      copy(from, fromIndex, to, 0, to.count());
    } else if (to.count() > 0) {
      long offset = from.type().bytes(fromIndex);
      EpilogueKernel.apply(
          epilogue, from.type(), Buffers.segment(from), offset, (HostData) to, fromIndex);
    }
  }

  private static void copy(@Nullable CommData from, @Nullable CommData to) {
    if (to != null) {
      copy(from, 0, to, 0, to.count());
    }
  }

  private static void copyTo(CommData from, @Nullable CommData to, @Nullable Partition parts) {
    copy(from, 0, to, parts == null ? 0 : parts.displacement(0), from.count());
  }

  private static void copyFrom(@Nullable CommData from, @Nullable Partition parts, CommData to) {
    copy(from, parts == null ? 0 : parts.displacement(0), to, 0, to.count());
  }

  private static void copy(
      @Nullable CommData from, long fromIndex, @Nullable CommData to, long toIndex, long count) {
    MemorySegment source = Buffers.segment(from);
    MemorySegment target = Buffers.segment(to);
    if (count > 0 && from != null && !source.equals(target)) {
      MemorySegment.copy(
          source,
          from.type().bytes(fromIndex),
          target,
          from.type().bytes(toIndex),
          from.type().bytes(count));
    }
  }
}
