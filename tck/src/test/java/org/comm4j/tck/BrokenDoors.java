package org.comm4j.tck;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Capabilities;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.Operation;
import org.comm4j.api.Partition;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.UnsupportedException;
import org.comm4j.api.spi.BackendCommunicator;
import org.jspecify.annotations.Nullable;

/// Communicators that break one rule each.
final class BrokenDoors {
  private BrokenDoors() {}

  /// How a broken all-reduce calculates.
  interface Fold {
    byte[] fold(ReduceOp op, DataType type, List<byte[]> inputs, int rank);
  }

  private static MemorySegment segment(CommData data) {
    return ((HostData) data).segment();
  }

  private static byte[] bytes(CommData data) {
    return segment(data).toArray(JAVA_BYTE);
  }

  private static void write(byte[] from, CommData to) {
    MemorySegment.copy(from, 0, segment(to), JAVA_BYTE, 0, from.length);
  }

  /// An all-reduce with an arithmetic of its own.
  static final class Folding extends Door {
    private final Fold fold;

    Folding(BackendCommunicator inner, Fold fold) {
      super(inner, each -> new Folding(each, fold));
      this.fold = fold;
    }

    @Override
    @Nullable Operation change(Operation operation) {
      if (!(operation instanceof Collective.AllReduce call)
          || size() == 1
          || !(call.op() instanceof ReduceOp.Predefined)) {
        return operation;
      }
      byte[] mine = bytes(call.input());
      byte[] all = new byte[mine.length * size()];
      inner.run(new Collective.AllGather(CommData.of(mine), CommData.of(all)));
      List<byte[]> inputs = new ArrayList<>();
      for (int rank = 0; rank < size(); rank++) {
        inputs.add(Arrays.copyOfRange(all, rank * mine.length, (rank + 1) * mine.length));
      }
      write(fold.fold(call.op(), call.input().type(), inputs, rank()), call.output());
      return null;
    }
  }

  static byte[] reversed(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    return Oracle.fold(op, type, inputs.reversed());
  }

  static byte[] startingHere(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    List<byte[]> rotated = new ArrayList<>(inputs.subList(rank, inputs.size()));
    rotated.addAll(inputs.subList(0, rank));
    return Oracle.fold(op, type, rotated);
  }

  private static long calls;

  static synchronized byte[] asItComes(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    return ++calls / inputs.size() % 2 == 0
        ? Oracle.fold(op, type, inputs)
        : reversed(op, type, inputs, rank);
  }

  static byte[] roundingEachTime(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    if (op == ReduceOp.AVERAGE) {
      return Oracle.fold(op, type, inputs);
    }
    byte[] result = inputs.getFirst();
    for (byte[] next : inputs.subList(1, inputs.size())) {
      result = Oracle.fold(op, type, List.of(result, next));
    }
    return result;
  }

  static byte[] sumForIntegers(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    boolean wrong = op == ReduceOp.AVERAGE && type.isInteger();
    return Oracle.fold(wrong ? ReduceOp.SUM : op, type, inputs);
  }

  static byte[] sumForFloats(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    boolean wrong = op == ReduceOp.AVERAGE && !type.isInteger();
    return Oracle.fold(wrong ? ReduceOp.SUM : op, type, inputs);
  }

  /// As C's `a > b ? a : b`.
  static byte[] losingNan(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    byte[] right = Oracle.fold(op, type, inputs);
    if (type.kind() != Kind.FLOAT || op != ReduceOp.MAX) {
      return right;
    }
    ByteBuffer to = Oracle.buffer(right);
    for (int at = 0; at < right.length; at += type.bytes()) {
      double most = Double.NEGATIVE_INFINITY;
      for (byte[] input : inputs) {
        double value = Oracle.readFloat(type, Oracle.buffer(input), at);
        most = value > most ? value : most;
      }
      Oracle.write(to, at, type.bytes(), Oracle.encode(type, most));
    }
    return right;
  }

  static byte[] negativeNan(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    byte[] right = Oracle.fold(op, type, inputs);
    if (type.kind() == Kind.FLOAT) {
      ByteBuffer to = Oracle.buffer(right);
      for (int at = 0; at < right.length; at += type.bytes()) {
        if (Double.isNaN(Oracle.readFloat(type, to, at))) {
          long sign = 1L << (8 * type.bytes() - 1);
          Oracle.write(to, at, type.bytes(), Oracle.read(to, at, type.bytes()) | sign);
        }
      }
    }
    return right;
  }

  static byte[] highestIndex(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    if (type.kind() != Kind.PAIR) {
      return Oracle.fold(op, type, inputs);
    }
    List<byte[]> turned = inputs.stream().map(BrokenDoors::withTurnedIndexes).toList();
    return withTurnedIndexes(Oracle.fold(op, type, turned));
  }

  private static byte[] withTurnedIndexes(byte[] pairs) {
    byte[] turned = pairs.clone();
    ByteBuffer buffer = Oracle.buffer(turned);
    for (int at = DataType.PAIR_INDEX_OFFSET; at < turned.length; at += 16) {
      buffer.putLong(at, -buffer.getLong(at));
    }
    return turned;
  }

  static byte[] infiniteE4m3(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    byte[] right = Oracle.fold(op, type, inputs);
    if (type == DataType.FLOAT8_E4M3 && op == ReduceOp.SUM) {
      for (int i = 0; i < right.length; i++) {
        right[i] = (right[i] & 0x7f) == 0x7e ? 0x7f : right[i];
      }
    }
    return right;
  }

  static byte[] bitsForLogic(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    return Oracle.fold(op == ReduceOp.LOGICAL_AND ? ReduceOp.BIT_AND : op, type, inputs);
  }

  static byte[] saturating(ReduceOp op, DataType type, List<byte[]> inputs, int rank) {
    byte[] right = Oracle.fold(op, type, inputs);
    if (type == DataType.INT8 && op == ReduceOp.SUM) {
      for (int i = 0; i < right.length; i++) {
        int sum = 0;
        for (byte[] input : inputs) {
          sum += input[i];
        }
        right[i] = (byte) Math.max(-128, Math.min(127, sum));
      }
    }
    return right;
  }

  /// A door that changes operations.
  private static final class Changing extends Door {
    private final Change change;

    Changing(BackendCommunicator inner, Change change) {
      super(inner, each -> new Changing(each, change));
      this.change = change;
    }

    @Override
    @Nullable Operation change(Operation operation) {
      return change.of(operation, inner);
    }
  }

  private interface Change {
    @Nullable Operation of(Operation operation, BackendCommunicator inner);
  }

  static UnaryOperator<BackendCommunicator> folding(Fold fold) {
    return inner -> new Folding(inner, fold);
  }

  private static UnaryOperator<BackendCommunicator> changing(Change change) {
    return inner -> new Changing(inner, change);
  }

  /// The root's data stays as it was, or its write would be the first thing that is noticed.
  static UnaryOperator<BackendCommunicator> rootIsAlwaysZero() {
    return changing((operation, inner) -> {
      if (!(operation instanceof Collective.Broadcast call)) {
        return operation;
      }
      CommData data = call.data();
      if (inner.rank() == call.root()) {
        data = CommData.of(data.type(), MemorySegment.ofArray(bytes(data)));
      }
      return new Collective.Broadcast(data, 0);
    });
  }

  static UnaryOperator<BackendCommunicator> epiloguesAreIgnored() {
    return changing((operation, inner) ->
        operation instanceof Collective.AllReduce call
                && call.input().type() == call.output().type()
            ? new Collective.AllReduce(call.input(), call.output(), call.op())
            : operation);
  }

  /// In each rank's part of a reduce-scatter.
  static UnaryOperator<BackendCommunicator> biasesStartAnew() {
    return changing((operation, inner) -> {
      if (!(operation instanceof Collective.ReduceScatter call)
          || call.epilogue() == null
          || call.epilogue().bias() == null) {
        return operation;
      }
      CommData bias = call.epilogue().bias();
      byte[] from = bytes(bias);
      byte[] turned = new byte[from.length];
      int first = (int) (inner.rank() * call.output().bytes() % from.length);
      System.arraycopy(from, 0, turned, first, from.length - first);
      System.arraycopy(from, from.length - first, turned, 0, first);
      return new Collective.ReduceScatter(
          call.input(),
          call.output(),
          call.op(),
          call.epilogue().plusBias(CommData.of(bias.type(), MemorySegment.ofArray(turned))));
    });
  }

  /// As if it had reduced into the output before it reads what is to be added.
  static UnaryOperator<BackendCommunicator> residualsAreOverwritten() {
    return changing((operation, inner) ->
        operation instanceof Collective.AllReduce call
                && call.epilogue() != null
                && call.epilogue().residual() != null
                && segment(call.epilogue().residual()).equals(segment(call.output()))
            ? new Collective.AllReduce(
                call.input(),
                call.output(),
                call.op(),
                new Epilogue(call.epilogue().scale() + 1, call.epilogue().bias(), null))
            : operation);
  }

  static UnaryOperator<BackendCommunicator> shrinkIsNotSaid() {
    return SilentShrink::new;
  }

  private static final class SilentShrink extends Door {
    SilentShrink(BackendCommunicator inner) {
      super(inner, SilentShrink::new);
    }

    @Override
    public Capabilities capabilities() {
      EnumSet<Capability> some = EnumSet.copyOf(inner.capabilities().supported());
      some.remove(Capability.SHRINK);
      return new Capabilities(some, inner.capabilities().deviations());
    }
  }

  /// Says that it has them.
  static UnaryOperator<BackendCommunicator> expressionsAreIgnored() {
    return each -> new WithoutExpressions(each, false);
  }

  /// Says so too.
  static UnaryOperator<BackendCommunicator> expressionsAreRefused() {
    return each -> new WithoutExpressions(each, true);
  }

  private static final class WithoutExpressions extends Door {
    private final boolean areRefused;

    WithoutExpressions(BackendCommunicator inner, boolean areRefused) {
      super(inner, each -> new WithoutExpressions(each, areRefused));
      this.areRefused = areRefused;
    }

    @Override
    public Capabilities capabilities() {
      EnumSet<Capability> all = EnumSet.copyOf(inner.capabilities().supported());
      all.add(Capability.EXPRESSIONS);
      return new Capabilities(all, inner.capabilities().deviations());
    }

    @Override
    Operation change(Operation operation) {
      if (areRefused
          && operation instanceof Collective.WithEpilogue call
          && call.epilogue() != null
          && call.epilogue().expression() != null) {
        throw new UnsupportedException("not '%s'".formatted(call.epilogue().expression()));
      }
      if (!(operation instanceof Collective.AllReduce call) || call.epilogue() == null) {
        return operation;
      }
      Epilogue it = call.epilogue();
      return new Collective.AllReduce(
          call.input(),
          call.output(),
          call.op(),
          new Epilogue(it.scale(), it.bias(), it.residual()));
    }
  }

  /// As if the types of outputs had to agree.
  static UnaryOperator<BackendCommunicator> outputsKeepTheInputsType() {
    return changing((operation, inner) ->
        operation instanceof Collective.AllReduce call
                && call.epilogue() != null
                && call.input().type() != call.output().type()
            ? new Collective.AllReduce(call.input(), call.input(), call.op())
            : operation);
  }

  static UnaryOperator<BackendCommunicator> barrierIsNothing() {
    return changing(
        (operation, inner) -> operation instanceof Collective.Barrier ? null : operation);
  }

  static UnaryOperator<BackendCommunicator> tagsAreIgnored() {
    return changing((operation, inner) ->
        switch (operation) {
          case PointToPoint.Send call -> new PointToPoint.Send(call.data(), call.destination(), 0);
          case PointToPoint.Receive call -> new PointToPoint.Receive(call.data(), call.source(), 0);
          default -> operation;
        });
  }

  static UnaryOperator<BackendCommunicator> sourcesAreIgnored() {
    return changing((operation, inner) ->
        operation instanceof PointToPoint.Receive call
            ? new PointToPoint.Receive(call.data(), -1, call.tag())
            : operation);
  }

  static UnaryOperator<BackendCommunicator> operatorsAreNotCompared() {
    return changing((operation, inner) ->
        operation instanceof Collective.AllReduce call && call.op() == ReduceOp.MAX
            ? new Collective.AllReduce(call.input(), call.output(), ReduceOp.SUM)
            : operation);
  }

  static UnaryOperator<BackendCommunicator> userOperatorsAreTurned() {
    return changing((operation, inner) -> {
      if (!(operation instanceof Collective.AllReduce call)
          || !(call.op() instanceof ReduceOp.UserDefined op)) {
        return operation;
      }
      ReduceOp turned =
          ReduceOp.of(
              op.name(),
              (source, accumulator, type, count) -> {
                MemorySegment lower = MemorySegment.ofArray(accumulator.toArray(JAVA_BYTE));
                MemorySegment upper = MemorySegment.ofArray(source.toArray(JAVA_BYTE));
                op.function().combine(lower.asReadOnly(), upper, type, count);
                accumulator.copyFrom(upper);
              });
      return new Collective.AllReduce(call.input(), call.output(), turned);
    });
  }

  /// The last part of an all-gather-V stands one element too far, where there is room.
  static UnaryOperator<BackendCommunicator> displacementsAreOffByOne() {
    return changing((operation, inner) -> {
      if (!(operation instanceof Collective.AllGatherV call)
          || call.parts().extent() >= call.output().count()
          || segment(call.output()).asOverlappingSlice(segment(call.input())).isPresent()) {
        return operation;
      }
      Partition parts = call.parts();
      long[] counts = new long[parts.ranks()];
      long[] displacements = new long[parts.ranks()];
      int last = -1;
      for (int rank = 0; rank < counts.length; rank++) {
        counts[rank] = parts.count(rank);
        displacements[rank] = parts.displacement(rank);
        if (counts[rank] > 0 && displacements[rank] + counts[rank] == parts.extent()) {
          last = rank;
        }
      }
      if (last >= 0) {
        displacements[last]++;
      }
      return new Collective.AllGatherV(
          call.input(), call.output(), Partition.of(counts, displacements));
    });
  }

  /// Uses the input as scratch memory.
  static UnaryOperator<BackendCommunicator> inputsAreWritten() {
    return inner -> new Scribbling(inner);
  }

  private static final class Scribbling extends Door {
    Scribbling(BackendCommunicator inner) {
      super(inner, Scribbling::new);
    }

    @Override
    void ended(Operation operation) {
      if (operation instanceof Collective.AllGather call
          && !segment(call.input()).isReadOnly()
          && call.input().bytes() > 0
          && segment(call.output()).asOverlappingSlice(segment(call.input())).isEmpty()) {
        segment(call.input()).fill((byte) 0);
      }
    }
  }

  /// Uses the input as scratch memory, and puts back what was there where the call ends well.
  static UnaryOperator<BackendCommunicator> inputsAreLostOnFailure() {
    return inner -> new Losing(inner);
  }

  private static final class Losing extends Door {
    Losing(BackendCommunicator inner) {
      super(inner, Losing::new);
    }

    @Override
    void failed(Operation operation) {
      if (operation instanceof Collective.AllReduce call
          && segment(call.output()).asOverlappingSlice(segment(call.input())).isEmpty()) {
        long last = call.input().bytes() - 8;
        segment(call.input()).asSlice(0, 8).copyFrom(segment(call.input()).asSlice(last));
      }
    }
  }

  /// Looks for an interrupt before it waits, and never again.
  static UnaryOperator<BackendCommunicator> sleepersAreNotInterrupted() {
    return inner -> new SoundAsleep(inner);
  }

  private static final class SoundAsleep extends Door {
    SoundAsleep(BackendCommunicator inner) {
      super(inner, SoundAsleep::new);
    }

    @Override
    public @Nullable Received run(Operation operation) {
      if (Thread.currentThread().isInterrupted()) {
        return inner.run(operation);
      }
      var call =
          CompletableFuture.supplyAsync(
              () -> inner.run(operation), body -> Thread.ofPlatform().daemon().start(body));
      try {
        return call.join(); // whatever comes meanwhile
      } catch (CompletionException e) {
        throw e.getCause() instanceof CommException broken ? broken : e;
      }
    }
  }

  /// Keeps memory of communicators that are aborted.
  static UnaryOperator<BackendCommunicator> abortsKeep(List<byte[]> kept) {
    return inner -> new Hoarding(inner, kept);
  }

  private static final class Hoarding extends Door {
    private final List<byte[]> kept;

    Hoarding(BackendCommunicator inner, List<byte[]> kept) {
      super(inner, each -> new Hoarding(each, kept));
      this.kept = kept;
    }

    @Override
    public void abort(CommException failure) {
      kept.add(new byte[1_000_000]);
      inner.abort(failure);
    }
  }

  /// Ends calls in progress where another rank aborts, and not where this one does.
  static UnaryOperator<BackendCommunicator> ownAbortsEndNothing() {
    return inner -> new Stubborn(inner);
  }

  private static final class Stubborn extends Door {
    Stubborn(BackendCommunicator inner) {
      super(inner, Stubborn::new);
    }

    @Override
    public @Nullable Received run(Operation operation) {
      boolean isBroken = inner.failure() != null;
      try {
        return inner.run(operation);
      } catch (AbortedException e) {
        if (!isBroken && e.rank() == rank()) {
          waitForNothing();
        }
        throw e;
      }
    }
  }

  private static void waitForNothing() {
    try {
      new CountDownLatch(1).await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedCallException("interrupted");
    }
  }

  /// On rank 0 a child is there whatever became of it on the others.
  static UnaryOperator<BackendCommunicator> childrenAreMadeAlone() {
    return inner -> new Alone(inner);
  }

  private static final class Alone extends Door {
    Alone(BackendCommunicator inner) {
      super(inner, Alone::new);
    }

    @Override
    public BackendCommunicator duplicate() {
      try {
        return super.duplicate();
      } catch (AbortedException e) {
        if (rank() == 0) {
          return new Unbroken(inner);
        }
        throw e;
      }
    }
  }

  private static final class Unbroken extends Door {
    Unbroken(BackendCommunicator inner) {
      super(inner, Unbroken::new);
    }

    @Override
    public @Nullable CommException failure() {
      return null;
    }
  }

  /// Until they are interrupted.
  static UnaryOperator<BackendCommunicator> receivesNeverEnd() {
    return changing((operation, inner) -> {
      if (operation instanceof PointToPoint.Receive) {
        waitForNothing();
      }
      return operation;
    });
  }

  /// Writes what an operation ignores.
  static UnaryOperator<BackendCommunicator> ignoredOutputsAreWritten() {
    return inner -> new Overwriting(inner);
  }

  private static final class Overwriting extends Door {
    Overwriting(BackendCommunicator inner) {
      super(inner, Overwriting::new);
    }

    @Override
    void ended(Operation operation) {
      if (operation instanceof Collective.ExclusiveScan call
          && rank() == 0
          && segment(call.output()).asOverlappingSlice(segment(call.input())).isEmpty()) {
        segment(call.output()).fill((byte) 0);
      }
    }
  }

  static UnaryOperator<BackendCommunicator> syncIsNothing() {
    return inner -> new NotWaiting(inner);
  }

  private static final class NotWaiting extends Door {
    NotWaiting(BackendCommunicator inner) {
      super(inner, NotWaiting::new);
    }

    @Override
    public void sync() {}
  }

  static UnaryOperator<BackendCommunicator> keysAreIgnored() {
    return inner -> new Keyless(inner);
  }

  private static final class Keyless extends Door {
    Keyless(BackendCommunicator inner) {
      super(inner, Keyless::new);
    }

    @Override
    public Optional<BackendCommunicator> split(int color, int key) {
      return super.split(color, 0);
    }
  }

  static UnaryOperator<BackendCommunicator> closeNeverEnds() {
    return inner -> new Endless(inner);
  }

  private static final class Endless extends Door {
    private static final CountDownLatch NEVER = new CountDownLatch(1);

    Endless(BackendCommunicator inner) {
      super(inner, Endless::new);
    }

    @Override
    public void close() {
      while (NEVER.getCount() > 0) {
        try {
          NEVER.await();
        } catch (InterruptedException e) {
          // it hangs whatever happens
        }
      }
    }
  }

  static UnaryOperator<BackendCommunicator> closeTakesLong() {
    return inner -> new Slow(inner);
  }

  private static final class Slow extends Door {
    private static final long TOO_LONG_NS = Promise.CLOSED.allowed().toNanos();
    private boolean closed;

    Slow(BackendCommunicator inner) {
      super(inner, Slow::new);
    }

    @Override
    public void close() {
      inner.close();
      if (closed) {
        return;
      }
      closed = true;
      long end = System.nanoTime() + TOO_LONG_NS;
      while (System.nanoTime() < end) {
        LockSupport.parkNanos(end - System.nanoTime());
      }
    }
  }

  static UnaryOperator<BackendCommunicator> memoryIsNotZeroed() {
    return inner -> new Dirty(inner);
  }

  private static final class Dirty extends Door {
    Dirty(BackendCommunicator inner) {
      super(inner, Dirty::new);
    }

    @Override
    public CommBuffer allocate(DataType type, long count) {
      CommBuffer buffer = inner.allocate(type, count);
      buffer.hostData().segment().fill((byte) 3);
      return buffer;
    }
  }
}
