package org.comm4j.api;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.comm4j.api.Collective.AllGather;
import org.comm4j.api.Collective.AllGatherV;
import org.comm4j.api.Collective.AllReduce;
import org.comm4j.api.Collective.AllToAll;
import org.comm4j.api.Collective.AllToAllV;
import org.comm4j.api.Collective.Barrier;
import org.comm4j.api.Collective.Broadcast;
import org.comm4j.api.Collective.ExclusiveScan;
import org.comm4j.api.Collective.Gather;
import org.comm4j.api.Collective.GatherV;
import org.comm4j.api.Collective.Reduce;
import org.comm4j.api.Collective.ReduceScatter;
import org.comm4j.api.Collective.ReduceScatterV;
import org.comm4j.api.Collective.Scan;
import org.comm4j.api.Collective.Scatter;
import org.comm4j.api.Collective.ScatterV;
import org.comm4j.api.PointToPoint.Probe;
import org.comm4j.api.PointToPoint.Receive;
import org.comm4j.api.PointToPoint.Send;
import org.comm4j.api.PointToPoint.SendReceive;
import org.comm4j.api.spi.KnownOperation;
import org.jspecify.annotations.Nullable;

/// What is checked of an operation before a backend sees it: its shape against the group
/// ([Checks#group]), what the backend can do, and that its memory can be used. Allocates nothing
/// for a legal operation, but what [KnownOperation] notes once in many records.
final class OperationChecks {
  /// Belongs to nobody: memory that it may not use is confined to one thread.
  private static final Thread ANOTHER_THREAD = Thread.ofPlatform().unstarted(() -> {});

  private final int rank;
  private final int size;
  private final String backend;
  private final boolean messages;
  private final boolean userDefinedOperators;
  private final boolean epilogues;
  private final boolean expressions;
  private final boolean hostMemory;
  private final boolean deviceMemory;
  private final KnownOperation known = new KnownOperation(); // of those that block

  OperationChecks(int rank, int size, String backend, Capabilities capabilities) {
    this.rank = rank;
    this.size = size;
    this.backend = backend;
    this.messages = capabilities.supports(Capability.POINT_TO_POINT);
    this.userDefinedOperators = capabilities.supports(Capability.USER_DEFINED_OPERATORS);
    this.epilogues = capabilities.supports(Capability.EPILOGUE);
    this.expressions = capabilities.supports(Capability.EXPRESSIONS);
    this.hostMemory = capabilities.supports(Capability.HOST_MEMORY);
    this.deviceMemory = capabilities.supports(Capability.DEVICE_MEMORY);
  }

  /// Checks an operation that ends before the call returns; of one that is known only what may have
  /// changed.
  void blocking(Operation operation) {
    if (!known.isKnown(operation)) {
      group(operation);
      known.note(operation);
    }
    memory(operation, false);
  }

  /// Checks an operation that goes on after the call, on any thread.
  void asynchronous(Operation operation) {
    group(operation);
    memory(operation, true);
  }

  /// Checks what stays as it is from one start to the next.
  void group(Operation operation) {
    Checks.group(operation, rank, size);
    if (operation instanceof PointToPoint && !messages) {
      throw unsupported(operation.label() + " (no messages between two ranks)");
    }
    if (operation instanceof Collective.Reducing reducing
        && reducing.op() instanceof ReduceOp.UserDefined
        && !userDefinedOperators) {
      throw unsupported("the user-defined operator '" + reducing.op().name() + "'");
    }
    if (operation instanceof Collective.WithEpilogue call && call.epilogue() != null) {
      epilogue(call, call.epilogue());
    }
  }

  private void epilogue(Collective.WithEpilogue call, Epilogue epilogue) {
    if (!epilogues) {
      throw unsupported(call.label() + " with an epilogue (" + epilogue + ")");
    }
    if (epilogue.expression() != null && !expressions) {
      throw new UnsupportedException(
          "%s with the expression '%s' is not supported by backend '%s' as it was opened; call it without and do that to the output, or use data in a device's memory on a backend that was told of the expression (cuda: COMM_CUDA_EXPRESSIONS)"
              .formatted(call.label(), epilogue.expression(), backend));
    }
  }

  /// Checks that the memory which this rank's part reads or writes is there, for this thread and,
  /// where the operation is asynchronous, for every other.
  void memory(Operation operation, boolean asynchronous) {
    switch (operation) {
      case PointToPoint message -> memoryOf(message, asynchronous);
      case Collective collective -> memoryOf(collective, asynchronous);
    }
  }

  private void memoryOf(Collective operation, boolean asynchronous) {
    if (operation instanceof Collective.WithEpilogue call && call.epilogue() != null) {
      memoryOf(call.epilogue(), asynchronous);
    }
    switch (operation) {
      case AllReduce o -> both(o.input(), o.output(), asynchronous);
      case Reduce o -> both(o.input(), onRoot(o.root(), o.output()), asynchronous);
      case Broadcast o -> one("data", o.data(), asynchronous);
      case AllGather o -> both(o.input(), o.output(), asynchronous);
      case AllGatherV o -> both(o.input(), o.output(), asynchronous);
      case Gather o -> both(o.input(), onRoot(o.root(), o.output()), asynchronous);
      case GatherV o -> both(o.input(), onRoot(o.root(), o.output()), asynchronous);
      case Scatter o -> both(onRoot(o.root(), o.input()), o.output(), asynchronous);
      case ScatterV o -> both(onRoot(o.root(), o.input()), o.output(), asynchronous);
      case ReduceScatter o -> both(o.input(), o.output(), asynchronous);
      case ReduceScatterV o -> both(o.input(), o.output(), asynchronous);
      case AllToAll o -> both(o.input(), o.output(), asynchronous);
      case AllToAllV o -> both(o.input(), o.output(), asynchronous);
      case Scan o -> both(o.input(), o.output(), asynchronous);
      case ExclusiveScan o -> both(o.input(), o.output(), asynchronous);
      case Barrier _ -> {}
    }
  }

  private void memoryOf(Epilogue epilogue, boolean asynchronous) {
    if (epilogue.bias() != null) {
      one("bias", epilogue.bias(), asynchronous);
    }
    if (epilogue.residual() != null) {
      one("residual", epilogue.residual(), asynchronous);
    }
  }

  private void memoryOf(PointToPoint operation, boolean asynchronous) {
    switch (operation) {
      case Send o -> one("data", o.data(), asynchronous);
      case Receive o -> one("data", o.data(), asynchronous);
      case SendReceive o -> both(o.input(), o.output(), asynchronous);
      case Probe _ -> {}
    }
  }

  private @Nullable CommData onRoot(int root, @Nullable CommData data) {
    return rank == root ? data : null;
  }

  private void both(@Nullable CommData input, @Nullable CommData output, boolean asynchronous) {
    if (input != null) {
      one("input", input, asynchronous);
    }
    if (output != null) {
      one("output", output, asynchronous);
    }
  }

  /// Checks memory of the host's that is read or written before the call returns.
  static void usable(String what, HostData data) {
    segment(what, Objects.requireNonNull(data, what), false);
  }

  private void one(String what, CommData data, boolean asynchronous) {
    switch (data) {
      case HostData host -> {
        if (!hostMemory) {
          throw unsupported(what + ": " + data + " in the host's memory");
        }
        segment(what, host, asynchronous);
      }
      case DeviceData device -> {
        if (!deviceMemory) {
          throw unsupported(what + ": " + data);
        }
        open(what, data, device.scope());
      }
    }
  }

  private static void open(String what, CommData data, MemorySegment.Scope scope) {
    if (!scope.isAlive()) {
      throw new IllegalArgumentException(
          "%s: %s of an arena or buffer that is closed (expected: memory that stays open until the operation has ended)"
              .formatted(what, data));
    }
  }

  private static void segment(String what, HostData data, boolean asynchronous) {
    MemorySegment segment = data.segment();
    open(what, data, segment.scope());
    if (!segment.isAccessibleBy(Thread.currentThread())) {
      throw new IllegalArgumentException(
          "%s: %s of an arena that is confined to another thread than '%s' (expected: memory of this thread, or of a shared arena)"
              .formatted(what, data, Thread.currentThread().getName()));
    }
    if (asynchronous && !segment.isAccessibleBy(ANOTHER_THREAD)) {
      throw new IllegalArgumentException(
          "%s: %s of a confined arena (expected: memory of a shared or automatic arena, or a heap array; confined memory is fine in blocking calls)"
              .formatted(what, data));
    }
  }

  private UnsupportedException unsupported(String what) {
    return new UnsupportedException(
        "%s is not supported by backend '%s'; capabilities() tells beforehand"
            .formatted(what, backend));
  }
}
