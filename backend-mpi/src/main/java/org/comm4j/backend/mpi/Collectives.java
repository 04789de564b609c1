package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.comm4j.api.Collective;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.Partition;

/// Makes the stages of collectives: which function of the library moves what.
final class Collectives {
  /// What one broadcast of the library moves at most, a multiple of each type's bytes: beyond 2^31
  /// MPICH 4.0's non-blocking one fails, however it is counted.
  static final long BROADCAST_BYTES = 1 << 30;

  private final MpiGroup group;
  private final Reductions reductions;
  private final long comm;
  private final int largest;
  private final int rank;
  private final int size;

  Collectives(MpiGroup group) {
    this.group = group;
    this.reductions = new Reductions(group);
    this.comm = group.collectives();
    this.largest = group.job().largestCount();
    this.rank = group.rank();
    this.size = group.size();
  }

  /// The stages of a call of a group of more than one.
  ///
  /// @param number of the call, the same on all ranks
  List<Stage> stages(Collective call, long number, CallMemory memory) {
    return switch (call) {
      case Collective.Reducing c -> reductions.stages(c, number, memory);
      case Collective.Barrier _ ->
          List.of(
              Stage.of(
                  "Barrier",
                  request -> MpiCollectives.startBarrier(comm, request),
                  () -> MpiCollectives.barrier(comm)));
      case Collective.Broadcast c -> broadcasts(c, memory);
      case Collective.AllGather c -> List.of(allGather(c, memory));
      case Collective.AllGatherV c -> allGatherV(c, number, memory);
      case Collective.Gather c -> List.of(gather(c, memory));
      case Collective.GatherV c -> gatherV(c, number, memory);
      case Collective.Scatter c -> List.of(scatter(c, memory));
      case Collective.ScatterV c -> scatterV(c, number, memory);
      case Collective.AllToAll c -> List.of(allToAll(c, memory));
      case Collective.AllToAllV c -> allToAllV(c, number, memory);
    };
  }

  private List<Stage> broadcasts(Collective.Broadcast c, CallMemory memory) {
    HostData data = Messages.host(c.data());
    int bytes = data.type().bytes();
    MemorySegment buffer =
        rank == c.root()
            ? memory.input(data.segment(), bytes)
            : memory.output(data.segment(), bytes);
    if (data.bytes() <= BROADCAST_BYTES) {
      return List.of(broadcast(buffer, data.count(), data.type(), c.root()));
    }
    List<Stage> stages = new ArrayList<>();
    for (long at = 0; at < data.bytes(); at += BROADCAST_BYTES) {
      long length = Math.min(BROADCAST_BYTES, data.bytes() - at);
      stages.add(broadcast(buffer.asSlice(at, length), length / bytes, data.type(), c.root()));
    }
    return stages;
  }

  private Stage broadcast(MemorySegment buffer, long count, DataType type, int root) {
    Amount amount = Amount.of(count, type, largest);
    return Stage.of(
        "Bcast",
        request ->
            MpiCollectives.startBroadcast(
                buffer, amount.count(), amount.type(), root, comm, request),
        () -> MpiCollectives.broadcast(buffer, amount.count(), amount.type(), root, comm),
        amount);
  }

  private Stage allGather(Collective.AllGather c, CallMemory memory) {
    HostData in = Messages.host(c.input());
    HostData out = Messages.host(c.output());
    Buffers buffers = buffers(in, out, memory);
    Amount amount = Amount.of(in.count(), in.type(), largest);
    return Stage.of(
        "Allgather",
        request ->
            MpiCollectives.startAllGather(
                buffers.input(), buffers.output(), amount.count(), amount.type(), comm, request),
        () ->
            MpiCollectives.allGather(
                buffers.input(), buffers.output(), amount.count(), amount.type(), comm),
        amount);
  }

  /// Gathers as many elements of each rank, all ranks' one behind the other.
  ///
  /// @param bytes of an element
  static Stage gatherAll(MemorySegment own, MemorySegment all, long count, int bytes, long comm) {
    long unit = Amount.unit(bytes);
    return Stage.of(
        "Allgather",
        request -> MpiCollectives.startAllGather(own, all, count, unit, comm, request),
        () -> MpiCollectives.allGather(own, all, count, unit, comm));
  }

  /// The memory of an input and an output, as the library is given it.
  record Buffers(MemorySegment input, MemorySegment output) {}

  /// Where the input is a part of the output the library is told so, or has a copy of it.
  private static Buffers buffers(HostData in, HostData out, CallMemory memory) {
    int bytes = in.type().bytes();
    MemorySegment output = memory.output(out.segment(), bytes);
    boolean inPlace = out.overlaps(in) && memory.isDirect(out.segment(), bytes);
    return new Buffers(inPlace ? inPlace() : memory.input(in.segment(), bytes), output);
  }

  static MemorySegment inPlace() {
    return MemorySegment.ofAddress(Functions.constants().inPlace);
  }

  private List<Stage> allGatherV(Collective.AllGatherV c, long number, CallMemory memory) {
    HostData in = Messages.host(c.input());
    HostData out = Messages.host(c.output());
    DataType type = in.type();
    Partition parts = c.parts();
    boolean counted = Parts.total(parts) <= largest; // the same on all ranks
    boolean mayBeDirect = !counted || parts.extent() <= largest;
    Parts target = Parts.output(parts, out.segment(), type, mayBeDirect, memory);
    boolean inPlace = counted && target.isDirect() && out.overlaps(in);
    MemorySegment input = inPlace ? inPlace() : memory.input(in.segment(), type.bytes());
    if (!counted) {
      Exchange exchange = new Exchange(group, c.label(), Tags.ofCall(number), type);
      for (int peer = 0; peer < size; peer++) {
        exchange.send(peer, input, 0, in.count());
        exchange.receive(peer, target.memory(), target.offset(peer), parts.count(peer));
      }
      return List.of(exchange.then(() -> target.copyOwn(in.segment(), 0, rank)));
    }
    long unit = Amount.unit(type.bytes());
    MemorySegment counts = memory.counts(size, parts::count);
    MemorySegment places = memory.counts(size, peer -> target.elementPlaces()[peer]);
    return List.of(
        Stage.of(
            "Allgatherv",
            request ->
                MpiCollectives.startAllGatherV(
                    input, in.count(), target.memory(), counts, places, unit, comm, request),
            () ->
                MpiCollectives.allGatherV(
                    input, in.count(), target.memory(), counts, places, unit, comm)));
  }

  private Stage gather(Collective.Gather c, CallMemory memory) {
    HostData in = Messages.host(c.input());
    boolean isRoot = rank == c.root();
    Buffers buffers =
        isRoot
            ? buffers(in, Messages.host(Objects.requireNonNull(c.output())), memory)
            : new Buffers(memory.input(in.segment(), in.type().bytes()), MemorySegment.NULL);
    Amount amount = Amount.of(in.count(), in.type(), largest);
    return Stage.of(
        "Gather",
        request ->
            MpiCollectives.startGather(
                buffers.input(),
                buffers.output(),
                amount.count(),
                amount.type(),
                c.root(),
                comm,
                request),
        () ->
            MpiCollectives.gather(
                buffers.input(), buffers.output(), amount.count(), amount.type(), c.root(), comm),
        amount);
  }

  /// By messages: only the root knows how much there is, so only it could choose a form.
  private List<Stage> gatherV(Collective.GatherV c, long number, CallMemory memory) {
    HostData in = Messages.host(c.input());
    DataType type = in.type();
    Exchange exchange = new Exchange(group, c.label(), Tags.ofCall(number), type);
    if (rank != c.root()) {
      exchange.send(c.root(), memory.input(in.segment(), type.bytes()), 0, in.count());
      return List.of(exchange);
    }
    HostData out = Messages.host(Objects.requireNonNull(c.output()));
    Partition parts = Objects.requireNonNull(c.parts());
    memory.uses(in.segment());
    Parts target = Parts.output(parts, out.segment(), type, true, memory);
    for (int peer = 0; peer < size; peer++) {
      exchange.receive(peer, target.memory(), target.offset(peer), parts.count(peer));
    }
    return List.of(
        own(c, in.count(), parts.count(rank), () -> target.copyOwn(in.segment(), 0, rank)),
        exchange);
  }

  private Stage scatter(Collective.Scatter c, CallMemory memory) {
    HostData out = Messages.host(c.output());
    int bytes = out.type().bytes();
    boolean isRoot = rank == c.root();
    MemorySegment input = MemorySegment.NULL;
    MemorySegment output;
    if (isRoot) {
      HostData in = Messages.host(Objects.requireNonNull(c.input()));
      input = memory.input(in.segment(), bytes);
      boolean inPlace = in.overlaps(out);
      output = inPlace ? inPlace() : memory.output(out.segment(), bytes);
    } else {
      output = memory.output(out.segment(), bytes);
    }
    MemorySegment source = input;
    Amount amount = Amount.of(out.count(), out.type(), largest);
    return Stage.of(
        "Scatter",
        request ->
            MpiCollectives.startScatter(
                source, output, amount.count(), amount.type(), c.root(), comm, request),
        () -> MpiCollectives.scatter(source, output, amount.count(), amount.type(), c.root(), comm),
        amount);
  }

  /// By messages, as [#gatherV].
  private List<Stage> scatterV(Collective.ScatterV c, long number, CallMemory memory) {
    HostData out = Messages.host(c.output());
    DataType type = out.type();
    Exchange exchange = new Exchange(group, c.label(), Tags.ofCall(number), type);
    if (rank != c.root()) {
      exchange.receive(c.root(), memory.output(out.segment(), type.bytes()), 0, out.count());
      return List.of(exchange);
    }
    HostData in = Messages.host(Objects.requireNonNull(c.input()));
    Partition parts = Objects.requireNonNull(c.parts());
    memory.uses(out.segment());
    MemorySegment source = memory.input(in.segment(), type.bytes());
    for (int peer = 0; peer < size; peer++) {
      exchange.send(peer, source, type.bytes(parts.displacement(peer)), parts.count(peer));
    }
    return List.of(
        own(
            c,
            parts.count(rank),
            out.count(),
            () -> copyPart(in, parts.displacement(rank), out, out.count())),
        exchange);
  }

  /// What a rank sends to itself.
  private Stage own(Collective call, long sent, long expected, Runnable copy) {
    return Stage.ours(() -> {
      if (sent != expected) {
        throw new MismatchedCallException(
            "rank %d sends itself %d elements but expects %d in its %s"
                .formatted(rank, sent, expected, call.label()));
      }
      copy.run();
    });
  }

  private static void copyPart(HostData from, long fromIndex, HostData to, long count) {
    DataType type = from.type();
    if (count > 0 && !from.slice(fromIndex, count).isSameMemory(to)) {
      CallMemory.copy(from.segment(), type.bytes(fromIndex), to.segment(), 0, type.bytes(count));
    }
  }

  private Stage allToAll(Collective.AllToAll c, CallMemory memory) {
    HostData in = Messages.host(c.input());
    HostData out = Messages.host(c.output());
    int bytes = in.type().bytes();
    MemorySegment input = memory.input(in.segment(), bytes);
    MemorySegment output = memory.output(out.segment(), bytes);
    Amount amount = Amount.of(in.count() / size, in.type(), largest);
    return Stage.of(
        "Alltoall",
        request ->
            MpiCollectives.startAllToAll(
                input, output, amount.count(), amount.type(), comm, request),
        () -> MpiCollectives.allToAll(input, output, amount.count(), amount.type(), comm),
        amount);
  }

  /// By messages: each rank knows its own counts alone, so ranks could not choose one form for what
  /// an int can't count.
  private List<Stage> allToAllV(Collective.AllToAllV c, long number, CallMemory memory) {
    HostData in = Messages.host(c.input());
    HostData out = Messages.host(c.output());
    DataType type = in.type();
    MemorySegment source = memory.input(in.segment(), type.bytes());
    Parts target = Parts.output(c.receiveParts(), out.segment(), type, true, memory);
    Exchange exchange = new Exchange(group, c.label(), Tags.ofCall(number), type);
    for (int peer = 0; peer < size; peer++) {
      exchange.receive(peer, target.memory(), target.offset(peer), c.receiveParts().count(peer));
      exchange.send(
          peer, source, type.bytes(c.sendParts().displacement(peer)), c.sendParts().count(peer));
    }
    return List.of(
        own(
            c,
            c.sendParts().count(rank),
            c.receiveParts().count(rank),
            () -> target.copyOwn(in.segment(), type.bytes(c.sendParts().displacement(rank)), rank)),
        exchange);
  }

  /// Where parts are in a buffer of the library's: at their places, or one behind the other.
  ///
  /// @param memory the buffer
  /// @param elementPlaces of the parts in it, by rank
  /// @param isDirect whether that is the user's buffer itself
  record Parts(
      Partition parts,
      DataType type,
      MemorySegment memory,
      long[] elementPlaces,
      boolean isDirect) {

    /// How many elements all parts have together.
    static long total(Partition parts) {
      long total = 0;
      for (int rank = 0; rank < parts.ranks(); rank++) {
        total += parts.count(rank);
      }
      return total;
    }

    /// An output: the user's, or a copy of its parts that is copied to their places at the end.
    ///
    /// @param mayBeDirect whether the user's will do if the library can use it
    static Parts output(
        Partition parts,
        MemorySegment user,
        DataType type,
        boolean mayBeDirect,
        CallMemory memory) {
      memory.uses(user);
      long[] places = new long[parts.ranks()];
      MemorySegment direct = mayBeDirect ? memory.direct(user, type.bytes()) : null;
      if (direct != null) {
        for (int rank = 0; rank < places.length; rank++) {
          places[rank] = parts.count(rank) == 0 ? 0 : parts.displacement(rank);
        }
        return new Parts(parts, type, direct, places, true);
      }
      MemorySegment copy = memory.take(type.bytes(total(parts)));
      long place = 0;
      for (int rank = 0; rank < places.length; rank++) {
        places[rank] = place;
        memory.copyAtEnd(
            copy,
            type.bytes(place),
            user,
            type.bytes(parts.displacement(rank)),
            type.bytes(parts.count(rank)));
        place += parts.count(rank);
      }
      return new Parts(parts, type, copy, places, false);
    }

    /// Where a rank's part is, in bytes.
    long offset(int rank) {
      return type.bytes(elementPlaces[rank]);
    }

    /// Copies this rank's own part, which nobody sends.
    void copyOwn(MemorySegment from, long fromByte, int rank) {
      long bytes = type.bytes(parts.count(rank));
      if (bytes == 0) {
        return;
      }
      MemorySegment to = memory.asSlice(offset(rank), bytes);
      boolean isThere = from.isNative() && from.address() + fromByte == to.address();
      if (!isThere) {
        CallMemory.copy(from, fromByte, to, 0, bytes);
      }
    }
  }
}
