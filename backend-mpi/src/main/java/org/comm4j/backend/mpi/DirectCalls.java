package org.comm4j.backend.mpi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.ReduceOp;
import org.jspecify.annotations.Nullable;

/// The calls that programs make most, straight to the library's blocking functions: nothing is in
/// flight, nothing is allocated. What is not simple goes the long way, which gives the same.
///
/// Used by the communicator's caller alone, of whom the API admits one at a time.
final class DirectCalls {
  /// What is copied from and to arrays in memory of this object's own; more takes temporary memory.
  private static final int STAGED_BYTES = 64 << 10;

  private final MpiGroup group;
  private final int largest;
  private final long largestTried;
  private final boolean synchronous;
  private final MemorySegment inPlace = Collectives.inPlace();
  private final MemorySegment status;
  private final MemorySegment stagedInput;
  private final MemorySegment stagedOutput;
  private final List<MemorySegment> read = new ArrayList<>(1); // taken for the call that runs
  private final List<MemorySegment> written = new ArrayList<>(1);
  private final ArrayPins pins;
  private @Nullable ReduceOp op; // of the last reduction, with what it is in the library
  private @Nullable DataType type;
  private boolean isByLibrary;
  private Reductions.@Nullable Operator operator;
  private long opInLibrary;
  private long typeInLibrary;

  /// @param pins the communicator's
  DirectCalls(MpiGroup group, ArrayPins pins) {
    this.group = group;
    this.pins = pins;
    this.largest = group.job().largestCount();
    this.largestTried = group.job().largestTried();
    this.synchronous = group.job().config().synchronousSend();
    Arena arena = Arena.ofAuto();
    this.status = arena.allocate(Functions.constants().statusBytes, 8);
    this.stagedInput = arena.allocate(STAGED_BYTES, 64);
    this.stagedOutput = arena.allocate(STAGED_BYTES, 64);
  }

  /// Runs a collective.
  ///
  /// @return false if it has to go the long way
  boolean run(Collective call) {
    boolean isOver = false;
    try {
      boolean done = runNow(call);
      isOver = true;
      return done;
    } finally {
      end(isOver, call);
    }
  }

  private boolean runNow(Collective call) {
    return switch (call) {
      case Collective.AllReduce c -> allReduce(c);
      case Collective.Broadcast c -> broadcast(c);
      case Collective.AllGather c -> allGather(c);
      case Collective.Barrier _ -> {
        group.nextSequence();
        Errors.check(MpiCollectives.barrier(group.collectives()), "MPI_Barrier");
        yield true;
      }
      default -> false;
    };
  }

  private static boolean canUse(CommData data, long largest) {
    return data instanceof HostData host && host.count() <= largest;
  }

  /// The user's memory where it is, for the library; null where that works with a copy.
  private @Nullable MemorySegment own(HostData data) {
    return pins.here(data.segment(), data.type().bytes());
  }

  /// What the library reads.
  private MemorySegment input(HostData data) {
    MemorySegment own = own(data);
    return own == null ? stagedInput(data) : own;
  }

  private MemorySegment stagedInput(HostData data) {
    MemorySegment staged = stagedInput;
    if (data.bytes() > STAGED_BYTES) {
      staged = group.job().memory().takeForReading(data.bytes());
      read.add(staged);
    }
    group.staging().copy(data.segment(), 0, staged, 0, data.bytes());
    return staged;
  }

  private MemorySegment stagedOutput(HostData data) {
    if (data.bytes() <= STAGED_BYTES) {
      return stagedOutput;
    }
    MemorySegment block = group.job().memory().take(data.bytes());
    written.add(block);
    return block;
  }

  /// Puts what the library has written to where it belongs.
  private static void copyOut(MemorySegment staged, HostData data, long bytes) {
    MemorySegment.copy(staged, 0, data.segment(), 0, bytes);
  }

  /// Gives the call's memory back. Of one that has failed the library may still use it: then arrays
  /// stay where they are, and copies where they were, for as long as the process lives.
  private void end(boolean isOver, Operation call) {
    if (!isOver) {
      pins.keep();
      keepData(call);
      CallMemory.keep(read);
      CallMemory.keep(written);
      return;
    }
    pins.release();
    if (!read.isEmpty() || !written.isEmpty()) {
      group.job().memory().giveBackRead(read);
      group.job().memory().giveBackWritten(written);
    }
  }

  private static void keepData(Operation call) {
    switch (call) {
      case Collective.AllReduce c -> keep(c.input(), c.output());
      case Collective.Broadcast c -> keep(c.data());
      case Collective.AllGather c -> keep(c.input(), c.output());
      case PointToPoint.Send c -> keep(c.data());
      case PointToPoint.Receive c -> keep(c.data());
      default -> {} // those that run here have no memory
    }
  }

  private static void keep(CommData... used) {
    for (CommData each : used) {
      if (each instanceof HostData host) {
        CallMemory.keep(host.segment());
      }
    }
  }

  private boolean allReduce(Collective.AllReduce c) {
    if (c.epilogue() != null
        || !canUse(c.input(), largestTried)
        || !canUse(c.output(), largestTried)
        || !isByLibrary(c.op(), c.input().type())) {
      return false;
    }
    HostData in = (HostData) c.input();
    HostData out = (HostData) c.output();
    MemorySegment own = own(out);
    MemorySegment output = own == null ? stagedOutput(out) : own;
    MemorySegment input = input(in);
    boolean isSame = input.address() == output.address();
    long count = in.count();
    group.nextSequence();
    int code =
        MpiCollectives.allReduce(
            isSame ? inPlace : input,
            output,
            count,
            typeInLibrary,
            opInLibrary,
            group.collectives());
    Errors.check(code, "MPI_Allreduce");
    if (operator != null) {
      operator.finish(output, count, group.size());
    }
    if (own == null) {
      copyOut(output, out, out.bytes());
    }
    return true;
  }

  private boolean isByLibrary(ReduceOp wanted, DataType wantedType) {
    if (wanted != op || wantedType != type) { // an equal operator costs a look more
      op = wanted;
      type = wantedType;
      isByLibrary = Reductions.isByLibrary(wanted, wantedType, group);
      if (isByLibrary) {
        operator = new Reductions.Operator(wanted, wantedType);
        opInLibrary = operator.inLibrary();
        typeInLibrary = operator.typeInLibrary();
      }
    }
    return isByLibrary;
  }

  private boolean broadcast(Collective.Broadcast c) {
    if (!canUse(c.data(), largest) || c.data().bytes() > Collectives.BROADCAST_BYTES) {
      return false;
    }
    HostData data = (HostData) c.data();
    boolean isRoot = group.rank() == c.root();
    MemorySegment own = own(data);
    MemorySegment buffer = own;
    if (buffer == null) {
      buffer = isRoot ? stagedInput(data) : stagedOutput(data);
    }
    group.nextSequence();
    int code =
        MpiCollectives.broadcast(
            buffer, data.count(), Amount.unit(data.type().bytes()), c.root(), group.collectives());
    Errors.check(code, "MPI_Bcast");
    if (own == null && !isRoot) {
      copyOut(buffer, data, data.bytes());
    }
    return true;
  }

  private boolean allGather(Collective.AllGather c) {
    if (!canUse(c.input(), largest) || !canUse(c.output(), largest)) {
      return false;
    }
    HostData in = (HostData) c.input();
    HostData out = (HostData) c.output();
    long count = in.count();
    long unit = Amount.unit(in.type().bytes());
    MemorySegment own = own(out);
    MemorySegment output = own == null ? stagedOutput(out) : own;
    MemorySegment ownInput = own(in);
    boolean isPart = own != null && ownInput != null && out.overlaps(in);
    MemorySegment input = ownInput == null ? stagedInput(in) : ownInput;
    group.nextSequence();
    int code =
        MpiCollectives.allGather(
            isPart ? inPlace : input, output, count, unit, group.collectives());
    Errors.check(code, "MPI_Allgather");
    if (own == null) {
      copyOut(output, out, out.bytes());
    }
    return true;
  }

  /// Runs a send.
  ///
  /// @return false if it has to go the long way
  boolean send(PointToPoint.Send call) {
    if (!canUse(call.data(), largest)) {
      return false;
    }
    boolean isOver = false;
    try {
      sendNow(call, (HostData) call.data());
      isOver = true;
      return true;
    } finally {
      end(isOver, call);
    }
  }

  private void sendNow(PointToPoint.Send call, HostData data) {
    MemorySegment buffer = input(data);
    long count = data.count();
    long unit = Amount.unit(data.type().bytes());
    int tag = Tags.of(call.tag(), data.type());
    int code =
        synchronous
            ? Mpi.ssend(buffer, count, unit, call.destination(), tag, group.messages())
            : Mpi.send(buffer, count, unit, call.destination(), tag, group.messages());
    Errors.check(code, synchronous ? "MPI_Ssend" : "MPI_Send");
  }

  /// Runs a receive.
  ///
  /// @return null if it has to go the long way
  @Nullable Received receive(PointToPoint.Receive call) {
    if (!canUse(call.data(), largest)) {
      return null;
    }
    HostData data = (HostData) call.data();
    boolean isOver = false;
    try {
      MemorySegment own = own(data);
      MemorySegment buffer = own == null ? stagedOutput(data) : own;
      int code =
          Mpi.recv(
              buffer,
              data.count(),
              Amount.unit(data.type().bytes()),
              Tags.source(call.source()),
              Tags.of(call.tag(), data.type()),
              group.messages(),
              status);
      boolean isTruncated = Errors.isTruncation(code);
      if (!isTruncated) {
        Errors.check(code, "MPI_Recv");
      }
      isOver = true; // whatever is wrong with the message, the library is done
      return received(call, data, own == null ? buffer : null, isTruncated);
    } finally {
      end(isOver, call);
    }
  }

  /// Looks at what the library has received.
  ///
  /// @param staged where it is; null if that is where it belongs
  private Received received(
      PointToPoint.Receive call,
      HostData data,
      @Nullable MemorySegment staged,
      boolean isTruncated) {
    int source = Statuses.source(status);
    int tag = Statuses.tag(status);
    var expected = new MessageCall.Expected(call.source(), call.tag(), data.type(), data.count());
    if (isTruncated) {
      throw expected.truncated(group, call.label(), source, tag);
    }
    long bytes = Statuses.bytes(status);
    Received received = expected.received(group, call.label(), source, tag, bytes);
    if (staged != null) {
      copyOut(staged, data, bytes);
    }
    return received;
  }
}
