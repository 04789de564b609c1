package org.comm4j.cli;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.Partition;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;

/// One operation of one size on one rank: its buffers, the call, and what must come out.
final class BenchCase implements AutoCloseable {
  private static final int ROOT = 0;
  private static final int TAG = 1;
  private static final int ANSWER_TAG = 2;

  /// A window of messages is at most so many, and at most so many bytes.
  private static final int MOST_MESSAGES = 64;

  private static final long MOST_WINDOW_BYTES = 16L << 20;

  private final Communicator communicator;
  private final BenchMemory memory;
  private final BenchData data;
  private final long count;
  private final int rank;
  private final int size;
  private final List<Runnable> ends = new ArrayList<>();
  private final List<Expected> expected = new ArrayList<>();
  private final List<Runnable> resets = new ArrayList<>();
  private Runnable call = () -> {};
  private int callsPerUnit = 1;

  /// A part of a buffer of results.
  private record Expected(MemorySegment actual, byte[] period, long first) {}

  /// @param count of elements: of a rank's buffer, or of what a rank contributes or gets where a
  ///   buffer has a part for every rank
  BenchCase(
      Communicator communicator,
      BenchOperation operation,
      BenchMemory memory,
      DataType type,
      ReduceOp.Predefined op,
      long count) {
    this.communicator = communicator;
    this.memory = memory;
    this.count = count;
    this.rank = communicator.rank();
    this.size = communicator.size();
    this.data = new BenchData(type, op);
    try {
      prepare(operation);
    } catch (Throwable e) {
      close();
      throw e;
    }
  }

  /// What makes the call once: always of the class that the warm-up has seen, so that what was
  /// compiled for it holds.
  Runnable call() {
    return call;
  }

  /// How often the unit that is reported happens in one call: 2 halves of a round trip, the
  /// messages of a window, else 1.
  int unitsPerCall() {
    return callsPerUnit;
  }

  /// Makes the call with known data and looks at every element of this rank's result.
  ///
  /// @return how many are wrong
  long check() {
    resets.forEach(Runnable::run);
    call.run();
    return expected.stream()
        .mapToLong(each -> data.wrong(each.actual(), each.period(), each.first()))
        .sum();
  }

  /// Frees the memory. Nobody may be using it any more.
  @Override
  public void close() {
    ends.forEach(Runnable::run);
    ends.clear();
  }

  // --- the operations ---

  private void prepare(BenchOperation operation) {
    ReduceOp op = data.op();
    boolean root = rank == ROOT;
    long all = count * size;
    Partition parts = uneven();
    switch (operation) {
      case ALL_REDUCE -> {
        HostData in = input(count);
        HostData out = output(count);
        expect(out, data.reduction(size - 1), 0);
        run(new Collective.AllReduce(in, out, op));
      }
      case REDUCE -> {
        HostData in = input(count);
        HostData out = root ? output(count) : null;
        if (out != null) {
          expect(out, data.reduction(size - 1), 0);
        }
        run(new Collective.Reduce(in, out, op, ROOT));
      }
      case BROADCAST -> {
        HostData buffer = root ? input(count) : output(count);
        expect(buffer, data.contribution(ROOT), 0);
        run(new Collective.Broadcast(buffer, ROOT));
      }
      case ALL_GATHER -> {
        HostData in = input(count);
        HostData out = output(all);
        expectAll(out, Partition.even(size, count));
        run(new Collective.AllGather(in, out));
      }
      case ALL_GATHER_V -> {
        HostData in = input(parts.count(rank));
        HostData out = output(all);
        expectAll(out, parts);
        run(new Collective.AllGatherV(in, out, parts));
      }
      case GATHER -> {
        HostData in = input(count);
        HostData out = root ? output(all) : null;
        if (out != null) {
          expectAll(out, Partition.even(size, count));
        }
        run(new Collective.Gather(in, out, ROOT));
      }
      case GATHER_V -> {
        HostData in = input(parts.count(rank));
        HostData out = root ? output(all) : null;
        if (out != null) {
          expectAll(out, parts);
        }
        run(new Collective.GatherV(in, out, root ? parts : null, ROOT));
      }
      case SCATTER -> {
        HostData in = root ? input(all) : null;
        HostData out = output(count);
        expect(out, data.contribution(ROOT), rank * count);
        run(new Collective.Scatter(in, out, ROOT));
      }
      case SCATTER_V -> {
        HostData in = root ? input(all) : null;
        HostData out = output(parts.count(rank));
        expect(out, data.contribution(ROOT), parts.displacement(rank));
        run(new Collective.ScatterV(in, root ? parts : null, out, ROOT));
      }
      case REDUCE_SCATTER -> {
        HostData in = input(all);
        HostData out = output(count);
        expect(out, data.reduction(size - 1), rank * count);
        run(new Collective.ReduceScatter(in, out, op));
      }
      case REDUCE_SCATTER_V -> {
        HostData in = input(all);
        HostData out = output(parts.count(rank));
        expect(out, data.reduction(size - 1), parts.displacement(rank));
        run(new Collective.ReduceScatterV(in, parts, out, op));
      }
      case ALL_TO_ALL -> {
        HostData in = input(all);
        HostData out = output(all);
        for (int from = 0; from < size; from++) {
          expect(out.slice(from * count, count), data.contribution(from), rank * count);
        }
        run(new Collective.AllToAll(in, out));
      }
      case ALL_TO_ALL_V -> allToAllV(parts);
      case SCAN -> {
        HostData in = input(count);
        HostData out = output(count);
        expect(out, data.reduction(rank), 0);
        run(new Collective.Scan(in, out, op));
      }
      case EXCLUSIVE_SCAN -> {
        HostData in = input(count);
        HostData out = output(count);
        if (rank > 0) {
          expect(out, data.reduction(rank - 1), 0);
        }
        run(new Collective.ExclusiveScan(in, out, op));
      }
      case BARRIER -> call = communicator::barrier;
      case PING_PONG -> pingPong();
      case STREAM -> stream();
    }
  }

  /// Each rank sends every rank as much as that rank's part has, so that rows differ from columns.
  private void allToAllV(Partition parts) {
    HostData in = input(parts.extent());
    long mine = parts.count(rank);
    HostData out = output(mine * size);
    for (int from = 0; from < size; from++) {
      expect(out.slice(from * mine, mine), data.contribution(from), parts.displacement(rank));
    }
    run(new Collective.AllToAllV(in, parts, out, Partition.even(size, mine)));
  }

  private void pingPong() {
    callsPerUnit = 2;
    if (rank > 1) {
      return;
    }
    int peer = 1 - rank;
    HostData out = input(count);
    HostData in = output(count);
    expect(in, data.contribution(peer), 0);
    var send = new PointToPoint.Send(out, peer, TAG);
    var receive = new PointToPoint.Receive(in, peer, TAG);
    call =
        rank == 0
            ? () -> {
              communicator.run(send);
              communicator.run(receive);
            }
            : () -> {
              communicator.run(receive);
              communicator.run(send);
            };
  }

  /// Rank 0 sends a window of messages, rank 1 answers the last one.
  private void stream() {
    int messages =
        Math.clamp(MOST_WINDOW_BYTES / Math.max(1, data.type().bytes(count)), 1, MOST_MESSAGES);
    callsPerUnit = messages;
    if (rank > 1) {
      return;
    }
    HostData buffer = rank == 0 ? input(count) : output(count);
    expect(buffer, data.contribution(0), 0);
    HostData answer = CommData.of(new byte[1]);
    if (rank == 0) {
      var send = new PointToPoint.Send(buffer, 1, TAG);
      var receive = new PointToPoint.Receive(answer, 1, ANSWER_TAG);
      List<Request> started = new ArrayList<>(messages);
      call =
          () -> {
            for (int i = 0; i < messages; i++) {
              started.add(communicator.start(send));
            }
            Request.waitAll(started);
            started.clear();
            communicator.run(receive);
          };
    } else {
      var receive = new PointToPoint.Receive(buffer, 0, TAG);
      var send = new PointToPoint.Send(answer, 0, ANSWER_TAG);
      call =
          () -> {
            for (int i = 0; i < messages; i++) {
              communicator.run(receive);
            }
            communicator.run(send);
          };
    }
  }

  // --- pieces ---

  private void run(Collective collective) {
    call = () -> communicator.run(collective);
  }

  /// Parts whose mean is the count: pairs of ranks with a half more and a half less.
  private Partition uneven() {
    long[] counts = new long[size];
    for (int each = 0; each < size; each++) {
      boolean paired = each < size - size % 2;
      long half = paired ? count / 2 : 0;
      counts[each] = each % 2 == 0 ? count + half : count - half;
    }
    return Partition.of(counts);
  }

  private HostData input(long elements) {
    HostData buffer = make(elements);
    data.fill(buffer.segment(), data.contribution(rank));
    return buffer;
  }

  private HostData output(long elements) {
    HostData buffer = make(elements);
    resets.add(() -> BenchData.clear(buffer.segment()));
    return buffer;
  }

  private HostData make(long elements) {
    BenchMemory.Buffer buffer = memory.make(communicator, data.type(), elements);
    ends.add(buffer.end());
    return buffer.data();
  }

  private void expect(HostData actual, byte[] period, long first) {
    expected.add(new Expected(actual.segment(), period, first));
  }

  private void expectAll(HostData actual, Partition parts) {
    for (int from = 0; from < size; from++) {
      expect(actual.slice(parts.displacement(from), parts.count(from)), data.contribution(from), 0);
    }
  }
}
