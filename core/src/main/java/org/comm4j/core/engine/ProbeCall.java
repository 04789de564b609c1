package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.PointToPoint.Probe;
import org.comm4j.api.Received;
import org.jspecify.annotations.Nullable;

/// Waits until a message that it accepts has been announced.
final class ProbeCall extends Arrival {
  private final Probe probe;

  ProbeCall(Context context, Probe probe) {
    super(context, probe.source(), null);
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
  @Nullable Message message() {
    return null;
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
