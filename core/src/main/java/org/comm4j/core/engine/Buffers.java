package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.UnsupportedException;
import org.comm4j.core.kernel.EpilogueKernel;
import org.comm4j.core.kernel.Kernel;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.transport.Scopes;
import org.jspecify.annotations.Nullable;

/// The memory that a plan's slices mean in one call, and the arithmetic on it. Copies and
/// reductions of a plan happen here and nowhere else.
final class Buffers {
  static final MemorySegment NOTHING = MemorySegment.ofArray(new byte[0]);

  private final @Nullable Kernel kernel;
  private final DataType type;
  private final DataType accumulator;
  private final boolean widened;
  private final boolean finishes; // has something to calculate at the end of a reduction
  private MemorySegment input = NOTHING;
  private MemorySegment output = NOTHING;
  private MemorySegment result = NOTHING; // what plans call the output; mostly it is
  private @Nullable Epilogue epilogue;
  private @Nullable HostData target; // the output, where there is an epilogue
  private long first; // of the output's elements in the whole result
  private boolean isApart; // the result, from the output
  private boolean inPlace;
  private MemorySegment scratch = NOTHING;
  private MemorySegment work = NOTHING;
  private boolean hasTemporary;

  /// The memory of a call; temporary memory comes later ([#allocate]).
  Buffers(Collective call, int rank) {
    ReduceOp op = CallSignature.op(call);
    this.type = type(call);
    this.kernel = op == null ? null : Kernel.of(op, type);
    this.accumulator = op == null ? type : op.accumulationType(type);
    this.widened = accumulator != type;
    this.finishes = widened || op == ReduceOp.AVERAGE;
    use(call, rank);
  }

  /// Turns to the memory of another call with the same type and operator.
  void use(Collective call, int rank) {
    useMemory(call, rank);
    epilogue = null;
    if (call instanceof Collective.WithEpilogue reduction && reduction.epilogue() != null) {
      use(reduction, reduction.epilogue(), rank);
    }
  }

  private void use(Collective.WithEpilogue call, Epilogue wanted, int rank) {
    segment(wanted.bias());
    segment(wanted.residual());
    epilogue = wanted;
    target = (HostData) call.output();
    first = EpilogueKernel.first(call, rank);
  }

  private void useMemory(Collective call, int rank) {
    switch (call) {
      case Collective.AllReduce c -> use(c.input(), c.output());
      case Collective.Reduce c -> use(c.input(), rank == c.root() ? c.output() : null);
      case Collective.Broadcast c -> {
        boolean isRoot = rank == c.root();
        use(isRoot ? c.data() : null, isRoot ? null : c.data());
      }
      case Collective.AllGather c -> use(c.input(), c.output());
      case Collective.AllGatherV c -> use(c.input(), c.output());
      case Collective.Gather c -> use(c.input(), rank == c.root() ? c.output() : null);
      case Collective.GatherV c -> use(c.input(), rank == c.root() ? c.output() : null);
      case Collective.Scatter c -> use(rank == c.root() ? c.input() : null, c.output());
      case Collective.ScatterV c -> use(rank == c.root() ? c.input() : null, c.output());
      case Collective.ReduceScatter c -> use(c.input(), c.output());
      case Collective.ReduceScatterV c -> use(c.input(), c.output());
      case Collective.AllToAll c -> use(c.input(), c.output());
      case Collective.AllToAllV c -> use(c.input(), c.output());
      case Collective.Scan c -> use(c.input(), c.output());
      case Collective.ExclusiveScan c -> use(c.input(), c.output());
      case Collective.Barrier _ -> use(null, null);
    }
  }

  private void use(@Nullable CommData in, @Nullable CommData out) {
    input = segment(in);
    output = segment(out);
    result = output;
    inPlace = overlap(input, output);
  }

  /// The type of a call's elements; bytes for a barrier, which has none.
  static DataType type(Collective call) {
    return switch (call) {
      case Collective.Reducing c -> c.input().type();
      case Collective.Broadcast c -> c.data().type();
      case Collective.AllGather c -> c.input().type();
      case Collective.AllGatherV c -> c.input().type();
      case Collective.Gather c -> c.input().type();
      case Collective.GatherV c -> c.input().type();
      case Collective.Scatter c -> c.output().type();
      case Collective.ScatterV c -> c.output().type();
      case Collective.AllToAll c -> c.input().type();
      case Collective.AllToAllV c -> c.input().type();
      case Collective.Barrier _ -> DataType.UINT8;
    };
  }

  /// The memory of host data.
  static MemorySegment segment(@Nullable CommData data) {
    return switch (data) {
      case null -> NOTHING;
      case HostData host -> host.segment();
      default ->
          throw new UnsupportedException(
              data
                  + ": this backend moves data in host memory only; copy it there, or use a backend"
                  + " for devices");
    };
  }

  /// Whether two segments have a byte in common.
  static boolean overlap(MemorySegment a, MemorySegment b) {
    if (a.equals(b)) {
      return a.byteSize() > 0;
    }
    if (a.isNative() && b.isNative()) { // as below, but without objects
      return a.address() < b.address() + b.byteSize() && b.address() < a.address() + a.byteSize();
    }
    return a.asOverlappingSlice(b).isPresent();
  }

  /// The only thread that may touch memory, or null for any.
  static @Nullable Thread boundTo(MemorySegment memory) {
    return Scopes.isConfined(memory) ? Thread.currentThread() : null;
  }

  /// The only thread that may touch the call's memory, or null for any.
  @Nullable Thread boundTo() {
    Thread ofInput = boundTo(input);
    Thread ofData = ofInput == null ? boundTo(output) : ofInput;
    Epilogue end = epilogue;
    if (ofData != null || end == null) {
      return ofData;
    }
    Thread ofBias = boundTo(segment(end.bias()));
    return ofBias == null ? boundTo(segment(end.residual())) : ofBias;
  }

  /// Whether the call reads or writes a part of this memory.
  boolean touches(MemorySegment memory) {
    Epilogue end = epilogue;
    return overlap(memory, input)
        || overlap(memory, output)
        || (end != null
            && (overlap(memory, segment(end.bias())) || overlap(memory, segment(end.residual()))));
  }

  /// Whether the owner of the user's memory has closed some of it.
  boolean isClosed() {
    Epilogue end = epilogue;
    return isClosed(input)
        || isClosed(output)
        || (end != null && (isClosed(segment(end.bias())) || isClosed(segment(end.residual()))));
  }

  private static boolean isClosed(MemorySegment memory) {
    return !memory.scope().isAlive();
  }

  DataType type() {
    return type;
  }

  /// Takes the plan's temporary memory.
  void allocate(Schedule plan, TemporaryMemory temporary) {
    try {
      take(plan, temporary);
    } catch (Throwable e) { // there is no memory
      release(temporary);
      throw e;
    }
  }

  private void take(Schedule plan, TemporaryMemory temporary) {
    hasTemporary = plan.scratchCount() + plan.workCount() > 0;
    if (hasTemporary) {
      scratch = temporary.take(type.bytes(plan.scratchCount()));
      work = temporary.take(accumulator.bytes(plan.workCount()));
    }
    HostData out = target;
    if (epilogue != null && out != null && EpilogueKernel.needsMemory(epilogue, type, out)) {
      result = temporary.take(type.bytes(out.count()));
      isApart = true;
      inPlace = false; // the input stays as it is until the end
    }
  }

  /// Does the epilogue, if there is one: the plan has been run, and no peer reads this rank's input
  /// any more.
  void end() {
    if (epilogue != null && target != null) {
      EpilogueKernel.apply(epilogue, type, result, 0, target, first);
    }
  }

  void release(TemporaryMemory temporary) {
    if (isApart) {
      temporary.giveBack(result);
      isApart = false;
    }
    if (hasTemporary) {
      temporary.giveBack(scratch);
      temporary.giveBack(work);
      scratch = NOTHING;
      work = NOTHING;
    }
    input = NOTHING; // the call may be kept for another; the user's memory must not be
    output = NOTHING;
    result = NOTHING;
    epilogue = null;
    target = null;
  }

  int wireBytes(Step.Wire wire) {
    return (wire == Step.Wire.VALUE ? type : accumulator).bytes();
  }

  long bytes(Slice slice) {
    return typeOf(slice.space()).bytes(slice.count());
  }

  /// The memory of a slice.
  MemorySegment memory(Slice slice) {
    if (slice.count() == 0) {
      return NOTHING; // an empty part of a partition may stand anywhere, behind the end too
    }
    return memory(slice.space()).asSlice(offset(slice), bytes(slice));
  }

  /// The memory that a slice is a part of, at [#offset].
  MemorySegment whole(Slice slice) {
    return slice.count() == 0 ? NOTHING : memory(slice.space());
  }

  /// Where a slice begins, in bytes.
  long offset(Slice slice) {
    return slice.count() == 0 ? 0 : typeOf(slice.space()).bytes(slice.from());
  }

  /// Whether a slice keeps what it holds until the call has ended, so that peers may read it where
  /// it is.
  boolean isConstant(Slice slice) {
    return slice.space() == Space.INPUT && !inPlace;
  }

  void copy(Slice from, Slice to) {
    copy(memory(from.space()), offset(from), wireOf(from), to);
  }

  void reduce(Slice from, Slice to) {
    reduce(memory(from.space()), offset(from), wireOf(from), to);
  }

  void finish(Slice from, Slice to, int divisor) {
    if (from.count() > 0 && (finishes || !from.equals(to))) {
      kernel()
          .finish(
              memory(from.space()),
              offset(from),
              memory(to.space()),
              offset(to),
              from.count(),
              divisor);
    }
  }

  /// Copies `to.count()` elements of a wire type; widens if need be.
  void copy(MemorySegment source, long sourceOffset, Step.Wire wire, Slice to) {
    MemorySegment target = memory(to.space());
    long targetOffset = offset(to);
    if (to.count() == 0) {
      return;
    }
    if (needsWidening(wire, to)) {
      kernel().widen(source, sourceOffset, target, targetOffset, to.count());
    } else if (!source.equals(target) || sourceOffset != targetOffset) {
      MemorySegment.copy(source, sourceOffset, target, targetOffset, bytes(to));
    }
  }

  /// `to = to ∘ source`.
  void reduce(MemorySegment source, long sourceOffset, Step.Wire wire, Slice to) {
    if (to.count() == 0) {
      return;
    }
    if (needsWidening(wire, to)) {
      kernel().combineRaw(source, sourceOffset, memory(to.space()), offset(to), to.count());
    } else {
      kernel().combine(source, sourceOffset, memory(to.space()), offset(to), to.count());
    }
  }

  /// `to = source ∘ to`.
  void reduceBefore(
      MemorySegment source,
      long sourceOffset,
      Step.Wire wire,
      Slice to,
      TemporaryMemory temporary) {
    if (to.count() == 0) {
      return;
    }
    MemorySegment target = memory(to.space());
    if (needsWidening(wire, to)) {
      MemorySegment wide = temporary.take(bytes(to));
      kernel().widen(source, sourceOffset, wide, 0, to.count());
      kernel().combineInto(wide, 0, target, offset(to), target, offset(to), to.count());
      temporary.giveBack(wide);
    } else {
      kernel()
          .combineInto(source, sourceOffset, target, offset(to), target, offset(to), to.count());
    }
  }

  /// `to = own ∘ source`, or `to = source ∘ own`; all but `to` in the type of `own`.
  void fold(MemorySegment source, long sourceOffset, Slice own, Slice to, boolean ownFirst) {
    MemorySegment a = ownFirst ? memory(own.space()) : source;
    long aOffset = ownFirst ? offset(own) : sourceOffset;
    MemorySegment b = ownFirst ? source : memory(own.space());
    long bOffset = ownFirst ? sourceOffset : offset(own);
    MemorySegment out = memory(to.space());
    if (to.count() == 0) {
      return;
    }
    if (needsWidening(wireOf(own), to)) {
      kernel().combineRawInto(a, aOffset, b, bOffset, out, offset(to), to.count());
    } else {
      kernel().combineInto(a, aOffset, b, bOffset, out, offset(to), to.count());
    }
  }

  /// `to = finish(own ∘ source)`, or `to = finish(source ∘ own)`, all in the data's type.
  void finish(
      MemorySegment source, long sourceOffset, Slice own, Slice to, boolean ownFirst, int divisor) {
    MemorySegment a = ownFirst ? memory(own.space()) : source;
    long aOffset = ownFirst ? offset(own) : sourceOffset;
    MemorySegment b = ownFirst ? source : memory(own.space());
    long bOffset = ownFirst ? sourceOffset : offset(own);
    if (to.count() > 0) {
      kernel()
          .combineFinished(
              a, aOffset, b, bOffset, memory(to.space()), offset(to), to.count(), divisor);
    }
  }

  /// Whether a copy of a wire type has nothing to calculate.
  boolean isPlainCopy(Step.Wire wire, Slice to) {
    return !needsWidening(wire, to);
  }

  private boolean needsWidening(Step.Wire wire, Slice to) {
    return widened && wire == Step.Wire.VALUE && to.space() == Space.WORK;
  }

  private Step.Wire wireOf(Slice slice) {
    return slice.space() == Space.WORK ? Step.Wire.ACCUMULATOR : Step.Wire.VALUE;
  }

  private DataType typeOf(Space space) {
    return space == Space.WORK ? accumulator : type;
  }

  private MemorySegment memory(Space space) {
    return switch (space) {
      case INPUT -> input;
      case OUTPUT -> result;
      case SCRATCH -> scratch;
      case WORK -> work;
    };
  }

  private Kernel kernel() {
    if (kernel == null) {
      throw new IllegalStateException("a plan that reduces for a call without an operator");
    }
    return kernel;
  }
}
