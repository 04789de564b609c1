package org.comm4j.backend.mpi;

import java.util.List;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.jspecify.annotations.Nullable;

/// Waits for a message without receiving it.
final class ProbeCall extends MessageCall {
  private final PointToPoint.Probe operation;
  private @Nullable Received found;

  ProbeCall(MpiGroup group, PointToPoint.Probe operation, CallMemory memory) {
    super(
        group,
        operation,
        memory,
        List.of(),
        -1,
        new Expected(operation.source(), Communicator.ANY_TAG, DataType.INT8, 0));
    this.operation = operation;
  }

  @Override
  boolean advance() {
    Probe message = look();
    if (message == null) {
      return false;
    }
    DataType type = Tags.type(message.tag());
    found = new Received(message.source(), Tags.tag(message.tag()), message.bytes() / type.bytes());
    return super.advance(); // it has no stages
  }

  /// The oldest message, if that is one of ours: to the library a tag of ours is as many as there
  /// are types, and asked for one it passes by older messages of another. Behind one of another tag
  /// only that is left.
  private @Nullable Probe look() {
    int source = Tags.source(operation.source());
    Probe oldest = Probe.of(group.messages(), source, Functions.constants().anyTag);
    if (oldest == null
        || operation.tag() == Communicator.ANY_TAG
        || operation.tag() == Tags.tag(oldest.tag())) {
      return oldest;
    }
    for (DataType type : DataType.values()) {
      Probe message = Probe.of(group.messages(), source, Tags.of(operation.tag(), type));
      if (message != null) {
        return message;
      }
    }
    return null;
  }

  @Override
  @Nullable Received receive(@Nullable Requests ended) {
    return found;
  }
}
