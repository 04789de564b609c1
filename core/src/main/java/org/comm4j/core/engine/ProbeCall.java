package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import org.comm4j.api.Communicator;
import org.comm4j.api.PointToPoint.Probe;
import org.comm4j.api.Received;
import org.jspecify.annotations.Nullable;

/// Waits until a message that it accepts has been announced.
final class ProbeCall extends Call {
  private final Probe probe;

  ProbeCall(Context context, Probe probe) {
    super(context, probe, null);
    this.probe = probe;
  }

  @Override
  boolean advance() {
    @Nullable Message message = context.messages().find(probe.source(), probe.tag());
    if (message == null) {
      return false;
    }
    complete(new Received(message.source(), message.tag(), message.count()));
    return true;
  }

  @Override
  public boolean cancel() {
    try (var _ = engine.lock()) {
      if (hasEnded()) {
        return false;
      }
      fail(new java.util.concurrent.CancellationException(describe() + " was cancelled"));
      return true;
    }
  }

  @Override
  void missing(BitSet ranks) {
    if (probe.source() == Communicator.ANY_SOURCE) {
      context.addSources(ranks);
    } else {
      ranks.set(probe.source());
    }
  }

  @Override
  BitSet lost(BitSet left) {
    boolean othersMaySend =
        probe.source() == Communicator.ANY_SOURCE && left.cardinality() < context.size() - 1;
    return othersMaySend ? new BitSet() : super.lost(left);
  }

  @Override
  void inquire() {
    context.inquiries().ask(probe.source());
  }

  @Override
  boolean touches(MemorySegment memory) {
    return false;
  }

  @Override
  void release() {}

  @Override
  String describe() {
    return "probe(rank %s, tag %s)"
        .formatted(Messages.any(probe.source()), Messages.any(probe.tag()));
  }
}
