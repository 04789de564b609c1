package org.comm4j.backend.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.comm4j.api.BackendException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.Partition;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.core.kernel.EpilogueKernel;
import org.comm4j.core.schedule.Ends;
import org.jspecify.annotations.Nullable;

/// The naive path: a collective of data in devices' memory is copied to the host, done there, and
/// copied back. Used by one thread at a time.
///
/// What a rank reads and writes are parts, often one, often one for each rank, that all ranks cut
/// alike: a round takes so many elements of each that they are at most a chunk. Rounds take turns in
/// two slots of pinned memory, so the device copies while the host is busy, and a call needs at most
/// four chunks whatever its size, with an epilogue two more and room for its bias:
///
///     device   fetch 0 | fetch 1         | store 0, fetch 2 | store 1, fetch 3 | …
///     host     -       | collective 0    | collective 1     | collective 2     | …
///
/// What ends in a cast is reduced where its input has come to, and cast into the output's memory.
/// An epilogue that ends in an [Expression] is for the device alone: a kernel reads the result from
/// the host's memory, does all of it, and writes the output.
///
/// A round writes where it has read or where no round reads, in place too, so it does not matter that
/// the next one has been read before.
final class HostPath {
  private final CudaRank rank;
  private final BackendCommunicator host;
  private final CudaDevice.Stream stream;
  private final int me;
  private final int size;

  /// @param host of the same ranks; nobody else uses it
  /// @param stream which has nothing in it during a call; not closed with this
  HostPath(CudaRank rank, BackendCommunicator host, CudaDevice.Stream stream) {
    this.rank = rank;
    this.host = host;
    this.stream = stream;
    this.me = host.rank();
    this.size = host.size();
  }

  /// What ranks have told each other before a call.
  ///
  /// @param other a rank that calls something else; empty if none does
  /// @param most how many elements the largest part of any rank has
  /// @param elementBytes the size of the largest element of any rank: outputs may differ
  record Agreement(OptionalInt other, long most, int elementBytes) {}

  /// Meets the others: ranks that disagree might do so about the number of rounds alone, and of
  /// some calls no rank knows all parts.
  ///
  /// @param digest of what ranks must agree on
  Agreement agree(Collective call, long digest) {
    Ends ends = Ends.of(call, me);
    Side input = input(call, ends);
    Side output = output(call, ends);
    long[] mine = {
      digest,
      Math.max(input.most(), output.most()),
      Math.max(input.elementBytes(), output.elementBytes())
    };
    long[] all = new long[mine.length * size];
    host.run(new Collective.AllGather(CommData.of(mine), CommData.of(all)));
    return new Agreement(
        IntStream.range(0, size).filter(each -> all[mine.length * each] != digest).findFirst(),
        most(all, 1, mine.length),
        Math.toIntExact(most(all, 2, mine.length)));
  }

  private static long most(long[] all, int from, int step) {
    return IntStream.iterate(from, at -> at < all.length, at -> at + step)
        .mapToLong(at -> all[at])
        .max()
        .orElseThrow();
  }

  /// Runs a call to its end.
  void run(Collective call, Agreement agreed) {
    Ends ends = Ends.of(call, me);
    Side input = input(call, ends);
    Side output = output(call, ends);
    long cut = cut(call, agreed.elementBytes());
    long rounds = Math.max(1, Math.ceilDiv(agreed.most(), cut));
    List<Slot> inputs = new ArrayList<>();
    List<Slot> outputs = new ArrayList<>();
    var ending = new Ending(call, Math.min(2, rounds), cut);
    try {
      for (int slot = 0; slot < Math.min(2, rounds); slot++) {
        inputs.add(new Slot(input, cut));
        outputs.add(new Slot(output, cut));
        assert outputs.getLast().bytes <= rank.options().chunkBytes() || cut == 1 : cut;
      }
      run(call, rounds, inputs, outputs, ending);
    } finally {
      awaitCopies();
      inputs.forEach(Slot::close);
      outputs.forEach(Slot::close);
      ending.close();
    }
  }

  private void run(
      Collective call, long rounds, List<Slot> inputs, List<Slot> outputs, Ending ending) {
    boolean isStored =
        !(call instanceof Collective.ExclusiveScan) || me > 0; // rank 0 has no result
    at(inputs, 0).fetch(0);
    ending.fetch(0);
    HostData last = null;
    for (long round = 0; round < rounds; round++) {
      rank.device().await(stream); // this input has come, and this slot's last result has gone
      if (last != null && isStored) {
        ending.store(last, at(outputs, round - 1), round - 1);
      }
      if (round + 1 < rounds) {
        at(inputs, round + 1).fetch(round + 1);
        ending.fetch(round + 1);
      }
      Slot input = at(inputs, round);
      Slot output = at(outputs, round);
      HostData result = result(call, input, output, round);
      host.run(onHost(call, input, result, output, round));
      ending.apply(result, output, round);
      last = result;
    }
    if (last != null && isStored) {
      ending.store(last, at(outputs, rounds - 1), rounds - 1);
    }
    rank.device().await(stream);
  }

  private static Slot at(List<Slot> slots, long round) {
    return slots.get((int) (round % slots.size()));
  }

  /// Also where the call has failed: then memory goes back that they use.
  private void awaitCopies() {
    try {
      rank.device().await(stream);
    } catch (BackendException _) {
      // the device has failed, which the call says
    }
  }

  /// How many elements of each part a round takes; the same on all ranks.
  private long cut(Collective call, int elementBytes) {
    long parts =
        switch (call) {
          case Collective.AllReduce _,
              Collective.Reduce _,
              Collective.Broadcast _,
              Collective.Scan _,
              Collective.ExclusiveScan _,
              Collective.Barrier _ ->
              1;
          case Collective.AllGather _,
              Collective.AllGatherV _,
              Collective.Gather _,
              Collective.GatherV _,
              Collective.Scatter _,
              Collective.ScatterV _,
              Collective.ReduceScatter _,
              Collective.ReduceScatterV _,
              Collective.AllToAll _,
              Collective.AllToAllV _ ->
              size;
        };
    return Math.max(1, rank.options().chunkBytes() / elementBytes / parts);
  }

  // --- parts ---

  /// What a rank reads, or what it writes.
  ///
  /// @param parts of the data
  private record Side(DeviceData data, Partition parts) {
    static Side of(@Nullable CommData data, @Nullable Partition parts) {
      if (!(data instanceof DeviceData device)) { // this rank has none
        return new Side(new DeviceData(DataType.UINT8, 0, 0, 0), Partition.of(0));
      }
      return new Side(device, parts == null ? Partition.of(device.count()) : parts);
    }

    int elementBytes() {
      return data.type().bytes();
    }

    /// How many elements the largest part has.
    long most() {
      return IntStream.range(0, parts.ranks()).mapToLong(parts::count).max().orElse(0);
    }

    /// How many elements of a part a round takes.
    long count(int part, long round, long cut) {
      return Math.clamp(parts.count(part) - round * cut, 0, cut);
    }

    DeviceData piece(int part, long round, long cut) {
      long count = count(part, round, cut);
      return data.slice(count == 0 ? 0 : parts.displacement(part) + round * cut, count);
    }
  }

  private Side input(Collective call, Ends ends) {
    return Side.of(
        ends.input(),
        switch (call) {
          case Collective.Scatter c -> even(c.output());
          case Collective.ReduceScatter c -> even(c.output());
          case Collective.AllToAll c -> Partition.even(size, c.input().count() / size);
          case Collective.ScatterV c -> c.parts();
          case Collective.ReduceScatterV c -> c.parts();
          case Collective.AllToAllV c -> c.sendParts();
          case Collective.AllReduce _,
              Collective.Reduce _,
              Collective.Broadcast _,
              Collective.AllGather _,
              Collective.AllGatherV _,
              Collective.Gather _,
              Collective.GatherV _,
              Collective.Scan _,
              Collective.ExclusiveScan _,
              Collective.Barrier _ ->
              null;
        });
  }

  private Side output(Collective call, Ends ends) {
    return Side.of(
        ends.output(),
        switch (call) {
          case Collective.AllGather c -> even(c.input());
          case Collective.Gather c -> even(c.input());
          case Collective.AllToAll c -> Partition.even(size, c.input().count() / size);
          case Collective.AllGatherV c -> c.parts();
          case Collective.GatherV c -> c.parts();
          case Collective.AllToAllV c -> c.receiveParts();
          case Collective.AllReduce _,
              Collective.Reduce _,
              Collective.Broadcast _,
              Collective.Scatter _,
              Collective.ScatterV _,
              Collective.ReduceScatter _,
              Collective.ReduceScatterV _,
              Collective.Scan _,
              Collective.ExclusiveScan _,
              Collective.Barrier _ ->
              null;
        });
  }

  /// As many parts as this one as there are ranks.
  private Partition even(CommData part) {
    return Partition.even(size, part.count());
  }

  // --- rounds ---

  /// Pinned memory for what a round reads, or for what it writes.
  private final class Slot implements AutoCloseable {
    private final Side side;
    private final long cut;
    private final long bytes;
    private final CudaDevice.HostMemory memory;

    Slot(Side side, long cut) {
      this.side = side;
      this.cut = cut;
      this.bytes = bytes(0); // no round has more than the first
      this.memory = rank.gpu().hostMemory().take(bytes);
    }

    private long bytes(long round) {
      return side.data.type().bytes(parts(round).extent());
    }

    /// The parts as a round has them here, one behind the other.
    Partition parts(long round) {
      return Partition.of(
          IntStream.range(0, side.parts.ranks())
              .mapToLong(part -> side.count(part, round, cut))
              .toArray());
    }

    /// A round's data.
    HostData data(long round) {
      return CommData.of(side.data.type(), memory.segment().asSlice(0, bytes(round)));
    }

    void fetch(long round) {
      copy(round, (device, here, length) -> rank.device().copy(device, here, length, stream));
    }

    void store(long round) {
      copy(round, (device, here, length) -> rank.device().copy(here, device, length, stream));
    }

    /// Several pieces at once where they lie one behind the other.
    private void copy(long round, Copy copy) {
      long here = memory.segment().address();
      long device = 0;
      long length = 0;
      for (int part = 0; part < side.parts.ranks(); part++) {
        DeviceData piece = side.piece(part, round, cut);
        if (piece.bytes() > 0 && length > 0 && piece.address() != device + length) {
          copy.put(device, here, length);
          here += length;
          length = 0;
        }
        device = length == 0 ? piece.address() : device;
        length += piece.bytes();
      }
      if (length > 0) {
        copy.put(device, here, length);
      }
    }

    @Override
    public void close() {
      rank.gpu().hostMemory().giveBack(bytes, memory);
    }
  }

  /// How a round's result is stored, with the call's epilogue if it has one: on the host, where
  /// then the bias is as a whole, and of the residual what a round needs, or by a kernel.
  private final class Ending {
    private final @Nullable Epilogue epilogue; // for the host
    private final Collective call;
    private final Optional<Expression> expression; // for a kernel, with the rest
    private final long first;
    private final long cut;
    private @Nullable HostCopy bias; // the whole, which may be too large to be pinned
    private final List<Slot> residuals = new ArrayList<>();

    Ending(Collective call, long slots, long cut) {
      var reduction = call instanceof Collective.WithEpilogue it ? it : null;
      this.call = call;
      this.expression = Expression.of(call, rank.options().expressions());
      this.epilogue = reduction == null || expression.isPresent() ? null : reduction.epilogue();
      this.first = reduction == null ? 0 : EpilogueKernel.first(reduction, me);
      this.cut = cut;
      if (epilogue == null) {
        return;
      }
      try {
        if (epilogue.bias() != null) {
          bias = new HostCopy(rank, (DeviceData) epilogue.bias());
          bias.fetch(bias.of());
        }
        for (int slot = 0; slot < slots && epilogue.residual() != null; slot++) {
          residuals.add(new Slot(Side.of(epilogue.residual(), null), cut));
        }
      } catch (RuntimeException | Error e) {
        awaitCopies();
        close();
        throw e;
      }
    }

    /// Puts into the stream that what it needs in a round comes.
    void fetch(long round) {
      if (!residuals.isEmpty()) {
        at(residuals, round).fetch(round);
      }
    }

    void apply(HostData result, Slot output, long round) {
      if (epilogue == null) {
        return;
      }
      HostData whole = bias == null ? null : bias.data(bias.of());
      HostData residual = residuals.isEmpty() ? null : at(residuals, round).data(round);
      var here = new Epilogue(epilogue.scale(), whole, residual);
      EpilogueKernel.apply(
          here, result.type(), result.segment(), 0, output.data(round), first + round * cut);
    }

    /// Puts a round's result, after [#apply], into the output.
    ///
    /// @param result where the host has left it
    void store(HostData result, Slot output, long round) {
      if (expression.isEmpty()) {
        output.store(round);
        return;
      }
      DeviceData piece = output.side.piece(0, round, cut);
      if (piece.count() == 0) {
        return;
      }
      var parameters =
          new Parameters()
              .data(result.segment().address(), piece.address(), false)
              .oneStage(0, piece.count(), 1)
              .epilogue((Collective.WithEpilogue) call, me, round * cut);
      int threads = rank.threads();
      long blocks = Math.ceilDiv(piece.count(), threads);
      rank.device()
          .launch(
              rank.gpu().kernel(expression.get().finish()),
              Math.clamp(blocks, 1, rank.device().multiprocessors()),
              threads,
              stream,
              parameters);
    }

    void close() {
      if (bias != null) {
        bias.close();
      }
      residuals.forEach(Slot::close);
    }
  }

  @FunctionalInterface
  private interface Copy {
    /// Puts a copy into the stream.
    void put(long device, long here, long length);
  }

  /// Where a round's result goes, before the epilogue: to the output, or, if that has another type,
  /// to its place in the input.
  private HostData result(Collective call, Slot input, Slot output, long round) {
    HostData data = output.data(round);
    if (!(call instanceof Collective.WithEpilogue it) || it.output().type() == it.input().type()) {
      return data;
    }
    HostData in = input.data(round);
    return it instanceof Collective.AllReduce
        ? in
        : in.slice(input.parts(round).displacement(me), data.count());
  }

  /// A round's call of the host.
  private Collective onHost(Collective call, Slot input, HostData out, Slot output, long round) {
    CommData in = input.data(round);
    return switch (call) {
      case Collective.AllReduce c -> new Collective.AllReduce(in, out, c.op());
      case Collective.Reduce c ->
          new Collective.Reduce(in, c.root() == me ? out : null, c.op(), c.root());
      case Collective.Broadcast c -> new Collective.Broadcast(c.root() == me ? in : out, c.root());
      case Collective.AllGather _ -> new Collective.AllGather(in, out);
      case Collective.AllGatherV _ -> new Collective.AllGatherV(in, out, output.parts(round));
      case Collective.Gather c -> new Collective.Gather(in, c.root() == me ? out : null, c.root());
      case Collective.GatherV c ->
          c.root() == me
              ? new Collective.GatherV(in, out, output.parts(round), me)
              : new Collective.GatherV(in, null, null, c.root());
      case Collective.Scatter c ->
          new Collective.Scatter(c.root() == me ? in : null, out, c.root());
      case Collective.ScatterV c ->
          c.root() == me
              ? new Collective.ScatterV(in, input.parts(round), out, me)
              : new Collective.ScatterV(null, null, out, c.root());
      case Collective.ReduceScatter c -> new Collective.ReduceScatter(in, out, c.op());
      case Collective.ReduceScatterV c ->
          new Collective.ReduceScatterV(in, input.parts(round), out, c.op());
      case Collective.AllToAll _ -> new Collective.AllToAll(in, out);
      case Collective.AllToAllV _ ->
          new Collective.AllToAllV(in, input.parts(round), out, output.parts(round));
      case Collective.Scan c -> new Collective.Scan(in, out, c.op());
      case Collective.ExclusiveScan c -> new Collective.ExclusiveScan(in, out, c.op());
      case Collective.Barrier c -> c;
    };
  }
}
