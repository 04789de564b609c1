package org.comm4j.backend.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntToLongFunction;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.Partition;
import org.comm4j.api.ReduceOp;
import org.comm4j.core.schedule.CollectiveKind;
import org.jspecify.annotations.Nullable;

/// Collectives as kernels: which ones, on what data, in how many pieces. All ranks of the group
/// take the same decisions, from what they know alike. Used under the lock of [DeviceCalls].
///
/// Where all ranks are of one process peers read the data where it is. Else a rank copies it, piece
/// by piece, into its window, which peers have open.
final class KernelCollectives {
  private static final int UNIT_BYTES = 16;
  private static final int WORD_BYTES = 8;
  private static final long CALLS_BETWEEN_CLEARS = 1L << 31;
  private static final long CALL_THAT_CLEARS = 2;
  private static final long FIRST_CALL_WITH_LINES = 4;

  private final CudaRank rank;
  private final DeviceGroup group;
  private final int me;
  private final int size;
  private final Window layout;
  private final Parameters parameters;
  private final long chunkBytes;
  private final long stagedAt; // in a bank of scratch
  private long digest; // of the call that is launched
  private int maxBlocks; // of its kernels

  KernelCollectives(CudaRank rank, DeviceGroup group) {
    this.rank = rank;
    this.group = group;
    this.me = group.memory().workerId();
    this.size = group.memory().workers();
    this.layout = group.layout();
    this.parameters = group.parameters();
    this.chunkBytes = rank.options().chunkBytes();
    this.stagedAt = layout.scratchBytes() - chunkBytes;
  }

  /// {@return whether there are kernels for a call; the same on all ranks} There are none for
  /// scans, and none where a rank does not know how much the others have.
  static boolean has(Collective call) {
    return has(CollectiveKind.of(call))
        && (!(call instanceof Collective.Reducing it)
            || KernelName.reduce(it.op(), it.input().type()).isPresent());
  }

  /// {@return whether there are kernels for such calls, where one combines with their operator}
  static boolean has(CollectiveKind kind) {
    return switch (kind) {
      case SCAN, EXCLUSIVE_SCAN, GATHER_V, SCATTER_V, ALL_TO_ALL_V, BARRIER -> false;
      case ALL_REDUCE,
          REDUCE,
          REDUCE_SCATTER,
          REDUCE_SCATTER_V,
          BROADCAST,
          ALL_GATHER,
          ALL_GATHER_V,
          GATHER,
          SCATTER,
          ALL_TO_ALL ->
          true;
    };
  }

  /// Puts a call into the stream.
  ///
  /// @param call one that there are kernels for
  /// @param signature a number for what the ranks must agree on
  void launch(Collective call, long signature) {
    begin(signature);
    switch (call) {
      case Collective.AllReduce c -> allReduce(c);
      case Collective.Reduce c -> reduce(c);
      case Collective.ReduceScatter c ->
          reduceScatter(
              c.input(),
              Partition.even(size, c.output().count()),
              c.output(),
              c,
              group.isOneProcess());
      case Collective.ReduceScatterV c -> // ranks may have the parts at different places
          reduceScatter(c.input(), c.parts(), c.output(), c, false);
      case Collective.Broadcast c ->
          gather(
              c.root() == me ? c.data() : null,
              c.root() == me ? null : c.data(),
              peer -> peer == c.root() && me != peer ? c.data().bytes() : 0,
              _ -> 0,
              c.data().bytes());
      case Collective.AllGather c -> {
        long bytes = c.input().bytes();
        gather(c.input(), c.output(), _ -> bytes, peer -> peer * bytes, bytes);
      }
      case Collective.Gather c -> {
        long bytes = c.input().bytes();
        boolean isRoot = c.root() == me;
        gather(
            c.input(),
            isRoot ? c.output() : null,
            _ -> isRoot ? bytes : 0,
            peer -> peer * bytes,
            bytes);
      }
      case Collective.AllGatherV c -> {
        long element = c.input().type().bytes();
        Partition parts = c.parts();
        long most = 0;
        for (int peer = 0; peer < size; peer++) {
          most = Math.max(most, parts.count(peer) * element);
        }
        gather(
            c.input(),
            c.output(),
            peer -> parts.count(peer) * element,
            peer -> parts.displacement(peer) * element,
            most);
      }
      case Collective.Scatter c ->
          scatter(
              c.root() == me ? c.input() : null,
              c.output(),
              c.output().bytes(),
              peer -> peer == c.root());
      case Collective.AllToAll c ->
          scatter(c.input(), c.output(), c.input().bytes() / size, _ -> true);
      default -> throw new IllegalArgumentException(call + " (expected: one with kernels)");
    }
  }

  /// Puts into the stream that all ranks have come, with the same.
  ///
  /// @param signature a number for what the ranks must agree on
  void meet(long signature) {
    begin(signature);
    publish(next(8), List.of(), window(), false);
    run(KernelName.MEET, 1);
  }

  private void begin(long signature) {
    digest = signature;
    maxBlocks = group.maxBlocks();
  }

  /// {@return the number of the last kernel that was put into the stream}
  long number() {
    return group.memory().epoch();
  }

  // --- reductions ---

  private void allReduce(Collective.AllReduce call) {
    DeviceData input = (DeviceData) call.input();
    DeviceData output = (DeviceData) call.output();
    boolean hasLines =
        KernelName.lowLatency(call.op(), input.type()).isPresent()
            && canUseLines(group.memory().epoch() + 1);
    CudaTable.Rule rule =
        rank.table()
            .choose(new CudaTable.Call(group.arch(), size, input.bytes(), hasLines, chunkBytes));
    maxBlocks = Math.min(rule.maxBlocks(), group.maxBlocks());
    digest = digest * 31 + rule.maxBlocks(); // ranks with other tables must not wait for blocks
    int divisor = divisor(call.op());
    switch (rule.form()) {
      case LOW_LATENCY -> {
        next(1);
        parameters.data(input.address(), output.address(), false);
        parameters.twoStage(input.count(), divisor);
        epilogue(call, 0);
        run(lowLatency(call), input.bytes() / WORD_BYTES);
      }
      case ONE_STAGE -> {
        boolean inPlace = input.address() == output.address();
        publish(next(2), List.of(input), output.address(), group.isOneProcess() && !inPlace);
        parameters.oneStage(0, input.count(), divisor);
        epilogue(call, 0);
        run(kernel(call), input.bytes() / UNIT_BYTES);
      }
      case TWO_STAGE -> {
        long piece = elements(group.isOneProcess() ? mostBytesInPlace() : chunkBytes, input);
        for (long from = 0; from < input.count(); from += piece) {
          DeviceData part = input.slice(from, Math.min(piece, input.count() - from));
          long to = output.address() + output.type().bytes(from);
          publish(next(3), List.of(part), to, group.isOneProcess());
          parameters.twoStage(part.count(), divisor);
          epilogue(call, from);
          run(kernel(call), part.bytes() / UNIT_BYTES / size);
        }
      }
    }
  }

  /// Of how much data a rank's part fits into the scratch.
  private long mostBytesInPlace() {
    return (layout.scratchBytes() / UNIT_BYTES - 1) * size * UNIT_BYTES;
  }

  private void reduce(Collective.Reduce call) {
    DeviceData input = (DeviceData) call.input();
    boolean isRoot = call.root() == me;
    DeviceData output = isRoot && call.output() instanceof DeviceData to ? to : input;
    KernelName kernel = kernel(call);
    long piece = group.isOneProcess() ? Math.max(1, input.count()) : elements(chunkBytes, input);
    long from = 0;
    do {
      DeviceData part = input.slice(from, Math.min(piece, input.count() - from));
      long to = output.address() + input.type().bytes(from);
      publish(next(4), List.of(part), to, group.isOneProcess());
      parameters.oneStage(0, isRoot ? part.count() : 0, divisor(call.op()));
      run(kernel, part.bytes() / UNIT_BYTES);
      from += piece;
    } while (from < input.count());
  }

  /// @param call with the operator and the epilogue
  /// @param inPlace whether peers read the input where it is; then the parts are one behind the
  ///   other
  private void reduceScatter(
      CommData in, Partition parts, CommData out, Collective.WithEpilogue call, boolean inPlace) {
    DeviceData input = (DeviceData) in;
    DeviceData output = (DeviceData) out;
    KernelName kernel = kernel(call);
    int element = input.type().bytes();
    long most = 0;
    for (int each = 0; each < size; each++) {
      most = Math.max(most, parts.count(each));
    }
    long piece = inPlace ? Math.max(1, most) : elements(chunkBytes / size, input);
    long from = 0;
    do {
      List<DeviceData> pieces = new ArrayList<>();
      long begin = 0;
      for (int each = 0; each < size; each++) {
        long count = Math.clamp(parts.count(each) - from, 0, piece);
        if (each < me) {
          begin += inPlace ? count : padded(count * element) / element;
        }
        // a part without elements may be anywhere
        pieces.add(input.slice(count == 0 ? 0 : parts.displacement(each) + from, count));
      }
      long to = output.address() + output.type().bytes(Math.min(from, output.count()));
      publish(next(5), inPlace ? List.of(input) : pieces, to, inPlace);
      parameters.oneStage(begin, pieces.get(me).count(), divisor(call.op()));
      epilogue(call, Math.min(from, output.count()));
      run(kernel, Math.min(piece, most) * element / UNIT_BYTES);
      from += piece;
    } while (from < most);
  }

  /// Makes a call's epilogue part of its next kernel, which gives this rank's output from an
  /// element on.
  private void epilogue(Collective.WithEpilogue call, long from) {
    parameters.epilogue(call, me, from);
  }

  private int divisor(ReduceOp op) {
    return op == ReduceOp.AVERAGE ? size : 1;
  }

  private KernelName kernel(Collective.Reducing call) {
    DataType type = call.input().type();
    return expression(call)
        .map(Expression::reduce)
        .orElseGet(() ->
            call instanceof Collective.WithEpilogue it && isCast(it)
                ? KernelName.reduceAndCast(type)
                : KernelName.reduce(call.op(), type).orElseThrow());
  }

  private KernelName lowLatency(Collective.AllReduce call) {
    DataType type = call.input().type();
    return expression(call)
        .map(Expression::lowLatency)
        .orElseGet(() ->
            isCast(call)
                ? KernelName.lowLatencyAndCast(type)
                : KernelName.lowLatency(call.op(), type).orElseThrow());
  }

  private Optional<Expression> expression(Collective call) {
    return Expression.of(call, rank.options().expressions());
  }

  /// Ranks may differ in it: all kernels of an operator and type meet alike.
  private static boolean isCast(Collective.WithEpilogue call) {
    return call.output().type() != call.input().type();
  }

  // --- copies ---

  /// Each rank has one piece of data, which some or all fetch.
  ///
  /// @param bytes how much this rank fetches from each
  /// @param to to where in its output
  /// @param most how much the rank has that has the most; the same on all ranks
  private void gather(
      @Nullable CommData in,
      @Nullable CommData out,
      IntToLongFunction bytes,
      IntToLongFunction to,
      long most) {
    DeviceData input = (DeviceData) in;
    long output = out == null ? 0 : ((DeviceData) out).address();
    long piece = group.isOneProcess() ? Math.max(1, most) : chunkBytes;
    long from = 0;
    do {
      List<DeviceData> pieces =
          input == null || from >= input.bytes() ? List.of() : List.of(bytesOf(input, from, piece));
      publish(next(6), pieces, output, group.isOneProcess());
      for (int peer = 0; peer < size; peer++) {
        long count = Math.clamp(bytes.applyAsLong(peer) - from, 0, piece);
        parameters.fetch(peer, count, 0, to.applyAsLong(peer) + from);
      }
      run(KernelName.FETCH, Math.min(piece, most) / UNIT_BYTES);
      from += piece;
    } while (from < most);
  }

  @FunctionalInterface
  private interface Sends {
    boolean from(int peer);
  }

  /// Some ranks have one piece of data for each rank.
  ///
  /// @param bytes of a piece
  private void scatter(@Nullable CommData in, CommData out, long bytes, Sends sends) {
    DeviceData input = (DeviceData) in;
    long output = ((DeviceData) out).address();
    boolean inPlace = group.isOneProcess();
    long piece = inPlace ? Math.max(1, bytes) : chunkBytes / size / UNIT_BYTES * UNIT_BYTES;
    long from = 0;
    do {
      long count = Math.min(piece, bytes - from);
      List<DeviceData> pieces = new ArrayList<>();
      for (int each = 0; each < size && input != null; each++) {
        pieces.add(bytesOf(input, each * bytes + from, count));
      }
      publish(next(7), inPlace && input != null ? List.of(input) : pieces, output, inPlace);
      for (int peer = 0; peer < size; peer++) {
        long at = me * (inPlace ? bytes : padded(count));
        parameters.fetch(peer, sends.from(peer) ? count : 0, at, out(peer, bytes, from, sends));
      }
      run(KernelName.FETCH, count / UNIT_BYTES);
      from += piece;
    } while (from < bytes);
  }

  /// Where in its output a rank puts what it gets from another one: behind that of lower ranks, if
  /// they send too.
  private static long out(int peer, long bytes, long from, Sends sends) {
    long lower = 0;
    for (int each = 0; each < peer; each++) {
      lower += sends.from(each) ? 1 : 0;
    }
    return lower * bytes + from;
  }

  // --- one kernel ---

  /// Begins the next kernel of the group, which is different from all that may be at its place.
  ///
  /// @param form what is done with the data, besides what the signature says
  /// @return its number
  private long next(int form) {
    long number = group.memory().nextEpoch();
    if (number > CALLS_BETWEEN_CLEARS && number % CALLS_BETWEEN_CLEARS == CALL_THAT_CLEARS) {
      rank.device().clear(window() + layout.lines(), layout.linesBytes(), group.stream());
    }
    parameters.call(number, digest * 31 + form);
    return number;
  }

  /// Lines tell one call from another by half its number, so they are cleared in time. Then none
  /// may write into them: whoever has come to a call by the signals knows that all have ended the
  /// one before, so nobody is in a call that uses lines yet, or any more.
  private static boolean canUseLines(long number) {
    return number % CALLS_BETWEEN_CLEARS >= FIRST_CALL_WITH_LINES;
  }

  private long window() {
    return group.memory().barrierIn(me);
  }

  /// Says where this rank's data is.
  ///
  /// @param inPlace whether peers read it where it is, in one piece
  private void publish(long number, List<DeviceData> pieces, long output, boolean inPlace) {
    if (inPlace && !pieces.isEmpty()) {
      parameters.data(pieces.getFirst().address(), output, true);
      return;
    }
    long bank = layout.scratch() + (number & 1) * layout.scratchBytes() + stagedAt;
    long to = window() + bank;
    long at = 0;
    for (DeviceData piece : pieces) {
      if (piece.bytes() > 0) {
        rank.device().copy(piece.address(), to + at, piece.bytes(), group.stream());
      }
      at += padded(piece.bytes());
    }
    parameters.data(to, output, inPlace);
  }

  /// @param units how many threads have something to do
  private void run(KernelName kernel, long units) {
    int threads = rank.threads();
    int blocks = Math.clamp(Math.ceilDiv(units, threads), 1, maxBlocks);
    rank.device().launch(rank.gpu().kernel(kernel), blocks, threads, group.stream(), parameters);
  }

  /// So many whole elements are at most in so many bytes, a whole number of units.
  private static long elements(long bytes, CommData data) {
    return Math.max(1, bytes / UNIT_BYTES) * UNIT_BYTES / data.type().bytes();
  }

  private static long padded(long bytes) {
    return Math.ceilDiv(bytes, UNIT_BYTES) * UNIT_BYTES;
  }

  /// A part of data, in bytes.
  private static DeviceData bytesOf(DeviceData data, long from, long most) {
    long bytes = Math.min(most, data.bytes() - from);
    return new DeviceData(DataType.UINT8, data.address() + from, bytes, data.device());
  }
}
