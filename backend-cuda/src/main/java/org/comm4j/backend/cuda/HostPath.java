package org.comm4j.backend.cuda;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.DeviceData;
import org.comm4j.api.UnsupportedException;
import org.comm4j.api.spi.BackendCommunicator;
import org.jspecify.annotations.Nullable;

/// The naive path: a collective of data in devices' memory is copied to the host, done there, and
/// copied back. Used by one thread at a time.
final class HostPath {
  private final CudaRank rank;
  private final BackendCommunicator host;
  private final int me;

  /// @param host of the same ranks; nobody else uses it
  HostPath(CudaRank rank, BackendCommunicator host) {
    this.rank = rank;
    this.host = host;
    this.me = host.rank();
  }

  /// Runs a call to its end.
  ///
  /// @throws UnsupportedException if a rank has more than 1 GiB in a call that can't be cut
  void run(Collective call) {
    long piece = rank.options().chunkBytes();
    switch (call) {
      case Collective.AllReduce c when c.input().bytes() > piece -> {
        for (Range part : pieces(c.input(), piece)) {
          whole(new Collective.AllReduce(part.of(c.input()), part.of(c.output()), c.op()));
        }
      }
      case Collective.Reduce c when c.input().bytes() > piece -> {
        for (Range part : pieces(c.input(), piece)) {
          CommData output = c.output() == null ? null : part.of(c.output());
          whole(new Collective.Reduce(part.of(c.input()), output, c.op(), c.root()));
        }
      }
      case Collective.Broadcast c when c.data().bytes() > piece -> {
        for (Range part : pieces(c.data(), piece)) {
          whole(new Collective.Broadcast(part.of(c.data()), c.root()));
        }
      }
      default -> whole(call);
    }
  }

  private record Range(long from, long count) {
    CommData of(CommData data) {
      return data.slice(from, count);
    }
  }

  private static List<Range> pieces(CommData data, long bytes) {
    long most = Math.max(1, bytes / data.type().bytes());
    List<Range> pieces = new ArrayList<>();
    for (long from = 0; from < data.count(); from += most) {
      pieces.add(new Range(from, Math.min(most, data.count() - from)));
    }
    return pieces;
  }

  private void whole(Collective call) {
    Ends ends = Ends.of(call, me);
    try (Copy copy = new Copy(ends)) {
      if (ends.input() instanceof DeviceData input) {
        copy.fetch(input);
      }
      host.run(onHost(call, copy));
      for (CommData written : ends.written()) {
        copy.store((DeviceData) written);
      }
    }
  }

  /// The call on the host's copy.
  private Collective onHost(Collective call, Copy copy) {
    return switch (call) {
      case Collective.AllReduce c ->
          new Collective.AllReduce(copy.of(c.input()), copy.of(c.output()), c.op());
      case Collective.Reduce c ->
          new Collective.Reduce(copy.of(c.input()), copy.orNull(c.output()), c.op(), c.root());
      case Collective.Broadcast c -> new Collective.Broadcast(copy.of(c.data()), c.root());
      case Collective.AllGather c ->
          new Collective.AllGather(copy.of(c.input()), copy.of(c.output()));
      case Collective.AllGatherV c ->
          new Collective.AllGatherV(copy.of(c.input()), copy.of(c.output()), c.parts());
      case Collective.Gather c ->
          new Collective.Gather(copy.of(c.input()), copy.orNull(c.output()), c.root());
      case Collective.GatherV c ->
          c.root() == me
              ? new Collective.GatherV(
                  copy.of(c.input()), copy.orNull(c.output()), c.parts(), c.root())
              : new Collective.GatherV(copy.of(c.input()), null, null, c.root());
      case Collective.Scatter c ->
          new Collective.Scatter(copy.orNull(c.input()), copy.of(c.output()), c.root());
      case Collective.ScatterV c ->
          c.root() == me
              ? new Collective.ScatterV(
                  copy.orNull(c.input()), c.parts(), copy.of(c.output()), c.root())
              : new Collective.ScatterV(null, null, copy.of(c.output()), c.root());
      case Collective.ReduceScatter c ->
          new Collective.ReduceScatter(copy.of(c.input()), copy.of(c.output()), c.op());
      case Collective.ReduceScatterV c ->
          new Collective.ReduceScatterV(copy.of(c.input()), c.parts(), copy.of(c.output()), c.op());
      case Collective.AllToAll c ->
          new Collective.AllToAll(copy.of(c.input()), copy.of(c.output()));
      case Collective.AllToAllV c ->
          new Collective.AllToAllV(
              copy.of(c.input()), c.sendParts(), copy.of(c.output()), c.receiveParts());
      case Collective.Scan c ->
          new Collective.Scan(copy.of(c.input()), copy.of(c.output()), c.op());
      case Collective.ExclusiveScan c ->
          new Collective.ExclusiveScan(copy.of(c.input()), copy.of(c.output()), c.op());
      case Collective.Barrier c -> c;
    };
  }

  /// What a rank's data becomes on the host. Where one end lies in the other it does so here.
  private final class Copy implements AutoCloseable {
    private final List<HostCopy> blocks = new ArrayList<>();

    Copy(Ends ends) {
      DeviceData input = (DeviceData) ends.input();
      DeviceData output = (DeviceData) ends.output();
      try {
        if (input != null && (output == null || input.bytes() >= output.bytes())) {
          add(input);
        }
        if (output != null) {
          add(output);
        }
        if (input != null) {
          add(input);
        }
      } catch (RuntimeException e) {
        close();
        throw e;
      }
    }

    private void add(DeviceData data) {
      if (block(data) == null) {
        blocks.add(new HostCopy(rank, data, "make several calls"));
      }
    }

    private @Nullable HostCopy block(DeviceData data) {
      return blocks.stream().filter(block -> block.has(data)).findFirst().orElse(null);
    }

    /// Data that this rank does not use is nothing here.
    CommData of(CommData data) {
      CommData used = orNull(data);
      return used != null ? used : CommData.of(data.type(), MemorySegment.ofArray(new byte[0]));
    }

    /// The same; null where this rank has none, or one that it does not use.
    @Nullable CommData orNull(@Nullable CommData data) {
      if (!(data instanceof DeviceData device)) {
        return null;
      }
      HostCopy block = block(device);
      return block == null ? null : block.data(device);
    }

    void fetch(DeviceData input) {
      Objects.requireNonNull(block(input)).fetch(input);
    }

    void store(DeviceData output) {
      Objects.requireNonNull(block(output)).store(output);
    }

    @Override
    public void close() {
      blocks.forEach(HostCopy::close);
    }
  }
}
