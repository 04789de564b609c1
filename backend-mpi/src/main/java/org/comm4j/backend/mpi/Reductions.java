package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.Partition;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.comm4j.core.kernel.EpilogueKernel;
import org.comm4j.core.kernel.Kernel;
import org.jspecify.annotations.Nullable;

/// Makes the stages of reductions. Either the library reduces, or it moves the ranks' data and our
/// kernels fold it: in `ordered` reduction, and where the library's operator would break a rule.
final class Reductions {
  /// Data of all ranks together up to which every rank folds everything.
  static final long SMALL_BYTES = 64 << 10;

  private final MpiGroup group;
  private final long comm;
  private final int largest;
  private final long largestTried;
  private final int rank;
  private final int size;

  Reductions(MpiGroup group) {
    this.group = group;
    this.comm = group.collectives();
    this.largest = group.job().largestCount();
    this.largestTried = group.job().largestTried();
    this.rank = group.rank();
    this.size = group.size();
  }

  List<Stage> stages(Collective.Reducing call, long number, CallMemory memory) {
    return call instanceof Collective.WithEpilogue reduction && reduction.epilogue() != null
        ? finishedStages(reduction, reduction.epilogue(), number, memory)
        : plainStages(call, number, memory);
  }

  /// The reduction as it is without the epilogue, and that at the very end.
  private List<Stage> finishedStages(
      Collective.WithEpilogue call, Epilogue epilogue, long number, CallMemory memory) {
    HostData out = Messages.host(call.output());
    DataType type = call.input().type();
    HostData result = out;
    if (EpilogueKernel.needsMemory(epilogue, type, out)) {
      long bytes = type.bytes(out.count());
      result = CommData.of(type, memory.take(bytes).asSlice(0, bytes));
    }
    CommData input = call.input();
    if (result != out && Messages.host(input).isSameMemory(out)) { // as in place as without it
      result.segment().copyFrom(Messages.host(input).segment());
      input = result;
    }
    List<Stage> stages = plainStages(withoutEpilogue(call, input, result), number, memory);
    memory.uses(out.segment());
    uses(memory, epilogue.bias());
    uses(memory, epilogue.residual());
    MemorySegment from = result.segment();
    long first = EpilogueKernel.first(call, rank);
    memory.atEnd(() -> EpilogueKernel.apply(epilogue, type, from, 0, out, first));
    return stages;
  }

  private static void uses(CallMemory memory, @Nullable CommData data) {
    if (data != null) {
      memory.uses(Messages.host(data).segment());
    }
  }

  private static Collective.Reducing withoutEpilogue(
      Collective.WithEpilogue call, CommData input, HostData result) {
    return switch (call) {
      case Collective.AllReduce c -> new Collective.AllReduce(input, result, c.op());
      case Collective.ReduceScatter c -> new Collective.ReduceScatter(input, result, c.op());
      case Collective.ReduceScatterV c ->
          new Collective.ReduceScatterV(input, c.parts(), result, c.op());
    };
  }

  private List<Stage> plainStages(Collective.Reducing call, long number, CallMemory memory) {
    Operator op = new Operator(call.op(), call.input().type());
    boolean library = isByLibrary(call.op(), call.input().type(), group) && isCountable(call);
    return switch (call) {
      case Collective.AllReduce c ->
          library ? allReduce(c, op, memory) : foldAll(c, op, number, memory);
      case Collective.Reduce c ->
          library ? reduce(c, op, memory) : foldAtRoot(c, op, number, memory);
      case Collective.ReduceScatter c -> {
        Partition parts = Partition.even(size, c.output().count());
        yield library
            ? reduceScatter(c.input(), parts, c.output(), op, memory)
            : foldParts(call, parts, c.output(), op, number, memory);
      }
      case Collective.ReduceScatterV c ->
          library
              ? reduceScatter(c.input(), c.parts(), c.output(), op, memory)
              : foldParts(call, c.parts(), c.output(), op, number, memory);
      case Collective.Scan c ->
          library
              ? scan(c.input(), c.output(), true, op, memory)
              : foldChain(call, c.output(), true, op, number, memory);
      case Collective.ExclusiveScan c ->
          library
              ? scan(c.input(), c.output(), false, op, memory)
              : foldChain(call, c.output(), false, op, number, memory);
    };
  }

  /// Whether the library's operator keeps our rules for this type, so that it reduces.
  static boolean isByLibrary(ReduceOp op, DataType type, MpiGroup group) {
    return group.job().config().reduction() == Reduction.FAST
        && isSame(op, type)
        && (isExact(type) || group.keepsBits());
  }

  /// Whether the order of operands never matters.
  static boolean isExact(DataType type) {
    return !isFloat(type) && !isComplex(type);
  }

  /// Whether the library's operator does as ours.
  static boolean isSame(ReduceOp op, DataType type) {
    return op instanceof ReduceOp.Predefined predefined && isSame(predefined, type);
  }

  /// What MPI's operators do as ours do. Minima of floats know no NaN there; averages of integers
  /// and small floats do not exist; products of complex numbers may follow C's rules for
  /// infinities. And libraries err: Open MPI 4.1 with AVX lets sums of short integers saturate,
  /// MPICH 4.0 compares unsigned integers as signed ones.
  private static boolean isSame(ReduceOp.Predefined op, DataType type) {
    boolean isNumber = isFloat(type) || isComplex(type);
    boolean isWhole = isInteger(type);
    return switch (op) {
      case SUM -> isNumber || (isWhole && type.bytes() >= Integer.BYTES);
      case PRODUCT -> isFloat(type) || (isWhole && type.bytes() >= Integer.BYTES);
      case AVERAGE -> isNumber;
      case MIN, MAX -> isSigned(type);
      case BIT_AND, BIT_OR, BIT_XOR, LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR ->
          isWhole || type == DataType.BOOL;
      default -> false;
    };
  }

  private static boolean isFloat(DataType type) {
    return type == DataType.FLOAT32 || type == DataType.FLOAT64;
  }

  private static boolean isComplex(DataType type) {
    return type == DataType.COMPLEX64 || type == DataType.COMPLEX128;
  }

  private static boolean isSigned(DataType type) {
    return switch (type) {
      case INT8, INT16, INT32, INT64 -> true;
      default -> false;
    };
  }

  private static boolean isInteger(DataType type) {
    return switch (type) {
      case INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64 -> true;
      default -> false;
    };
  }

  /// Whether the library's counts are large enough; all ranks have the same.
  private boolean isCountable(Collective.Reducing call) {
    return switch (call) {
      case Collective.AllReduce _ -> call.input().count() <= largestTried;
      case Collective.ReduceScatterV c -> Collectives.Parts.total(c.parts()) <= largest;
      default -> call.input().count() <= largest;
    };
  }

  /// A reduce-scatter's input as MPI wants it: parts one behind the other in the order of the
  /// ranks. Where this rank has them is no other's business.
  private static MemorySegment compact(HostData in, Partition parts, CallMemory memory) {
    DataType type = in.type();
    if (isCompact(parts)) {
      return memory.input(in.segment(), type.bytes());
    }
    memory.uses(in.segment());
    MemorySegment copy = memory.take(type.bytes(Collectives.Parts.total(parts)));
    long end = 0;
    for (int rank = 0; rank < parts.ranks(); rank++) {
      long bytes = type.bytes(parts.count(rank));
      CallMemory.copy(in.segment(), type.bytes(parts.displacement(rank)), copy, end, bytes);
      end += bytes;
    }
    return copy;
  }

  /// Whether parts lie one behind the other in the order of the ranks.
  private static boolean isCompact(Partition parts) {
    long end = 0;
    for (int rank = 0; rank < parts.ranks(); rank++) {
      if (parts.count(rank) > 0 && parts.displacement(rank) != end) {
        return false;
      }
      end += parts.count(rank);
    }
    return true;
  }

  /// An operator on a type, as the library knows it and as our kernels do.
  record Operator(ReduceOp op, DataType type) {
    long inLibrary() {
      ReduceOp.Predefined known = (ReduceOp.Predefined) op;
      return Functions.constants()
          .op(known == ReduceOp.Predefined.AVERAGE ? ReduceOp.Predefined.SUM : known);
    }

    long typeInLibrary() {
      return Functions.constants().type(type);
    }

    Kernel kernel() {
      return Kernel.of(op, type);
    }

    DataType accumulator() {
      return op.accumulationType(type);
    }

    /// Does what is left when the library has reduced: averages are divided, NaNs made canonical.
    void finish(MemorySegment result, long count, int divisor) {
      if (count == 0) {
        return;
      }
      if (op == ReduceOp.Predefined.AVERAGE) {
        kernel().finish(result, 0, result, 0, count, divisor);
      } else {
        Kernel.makeNansCanonical(type, result, 0, count);
      }
    }

    /// `target = a ∘ b ∘ …`, the left fold of raw contributions, finished.
    ///
    /// @param contributions one behind the other, or where they are
    /// @param work of the accumulator's type, for `count` elements
    void fold(
        List<Contribution> contributions,
        MemorySegment target,
        long targetOffset,
        long count,
        MemorySegment work) {
      if (count == 0) {
        return;
      }
      Kernel kernel = kernel();
      int ranks = contributions.size();
      Contribution a = contributions.getFirst();
      if (ranks == 1) {
        kernel.widen(a.memory(), a.offset(), work, 0, count);
        kernel.finish(work, 0, target, targetOffset, count, 1);
        return;
      }
      Contribution b = contributions.get(1);
      kernel.combineRawInto(a.memory(), a.offset(), b.memory(), b.offset(), work, 0, count);
      for (int i = 2; i < ranks; i++) {
        kernel.combineRaw(
            contributions.get(i).memory(), contributions.get(i).offset(), work, 0, count);
      }
      kernel.finish(work, 0, target, targetOffset, count, ranks);
    }
  }

  /// Where a rank's raw data is.
  ///
  /// @param offset in bytes
  record Contribution(MemorySegment memory, long offset) {}

  // --- by the library ---

  private static Collectives.Buffers buffers(HostData in, HostData out, CallMemory memory) {
    int bytes = in.type().bytes();
    boolean inPlace = in.isSameMemory(out);
    MemorySegment output = memory.output(out.segment(), bytes);
    return inPlace && memory.isDirect(out.segment(), bytes)
        ? new Collectives.Buffers(Collectives.inPlace(), output)
        : new Collectives.Buffers(memory.input(in.segment(), bytes), output);
  }

  private List<Stage> allReduce(Collective.AllReduce c, Operator op, CallMemory memory) {
    HostData out = Messages.host(c.output());
    Collectives.Buffers buffers = buffers(Messages.host(c.input()), out, memory);
    long count = out.count();
    long type = op.typeInLibrary();
    long code = op.inLibrary();
    return List.of(
        Stage.of(
                "Allreduce",
                request ->
                    MpiCollectives.startAllReduce(
                        buffers.input(), buffers.output(), count, type, code, comm, request),
                () ->
                    MpiCollectives.allReduce(
                        buffers.input(), buffers.output(), count, type, code, comm))
            .then(() -> op.finish(buffers.output(), count, size)));
  }

  private List<Stage> reduce(Collective.Reduce c, Operator op, CallMemory memory) {
    HostData in = Messages.host(c.input());
    boolean isRoot = rank == c.root();
    Collectives.Buffers buffers =
        isRoot
            ? notInPlace(
                buffers(in, Messages.host(Objects.requireNonNull(c.output())), memory),
                in.bytes(),
                memory)
            : new Collectives.Buffers(
                memory.input(in.segment(), in.type().bytes()), MemorySegment.NULL);
    long count = in.count();
    long type = op.typeInLibrary();
    long code = op.inLibrary();
    return List.of(
        Stage.of(
                "Reduce",
                request ->
                    MpiCollectives.startReduce(
                        buffers.input(),
                        buffers.output(),
                        count,
                        type,
                        code,
                        c.root(),
                        comm,
                        request),
                () ->
                    MpiCollectives.reduce(
                        buffers.input(), buffers.output(), count, type, code, c.root(), comm))
            .then(() -> {
              if (isRoot) {
                op.finish(buffers.output(), count, size);
              }
            }));
  }

  /// MPICH 4.0's blocking reduce takes the address that means "in place" for one of memory.
  private static Collectives.Buffers notInPlace(
      Collectives.Buffers buffers, long bytes, CallMemory memory) {
    boolean inPlace = buffers.input().address() == Functions.constants().inPlace;
    if (!inPlace || Functions.library().maker() == MpiLibrary.Maker.OPEN_MPI) {
      return buffers;
    }
    MemorySegment input = memory.take(bytes);
    CallMemory.copy(buffers.output(), 0, input, 0, bytes);
    return new Collectives.Buffers(input, buffers.output());
  }

  /// The library's in-place form would overwrite the whole input; ours leaves the rest of it alone.
  private List<Stage> reduceScatter(
      CommData input, Partition parts, CommData output, Operator op, CallMemory memory) {
    HostData in = Messages.host(input);
    HostData out = Messages.host(output);
    DataType type = in.type();
    MemorySegment source = compact(in, parts, memory);
    MemorySegment result;
    if (in.overlaps(out)
        || out.bytes() == 0) { // an empty part of the input is no other place either
      result = memory.take(Math.max(1, out.bytes()));
      memory.copyAtEnd(result, 0, out.segment(), 0, out.bytes());
    } else {
      result = memory.output(out.segment(), type.bytes());
    }
    long typeCode = op.typeInLibrary();
    long code = op.inLibrary();
    Runnable finish = () -> op.finish(result, out.count(), size);
    if (isEven(parts)) {
      long count = parts.count(0);
      return List.of(
          Stage.of(
                  "Reduce_scatter_block",
                  request ->
                      MpiCollectives.startReduceScatterBlock(
                          source, result, count, typeCode, code, comm, request),
                  () ->
                      MpiCollectives.reduceScatterBlock(
                          source, result, count, typeCode, code, comm))
              .then(finish));
    }
    MemorySegment counts = memory.counts(size, parts::count);
    return List.of(
        Stage.of(
                "Reduce_scatter",
                request ->
                    MpiCollectives.startReduceScatter(
                        source, result, counts, typeCode, code, comm, request),
                () -> MpiCollectives.reduceScatter(source, result, counts, typeCode, code, comm))
            .then(finish));
  }

  private static boolean isEven(Partition parts) {
    for (int rank = 1; rank < parts.ranks(); rank++) {
      if (parts.count(rank) != parts.count(0)) {
        return false;
      }
    }
    return true;
  }

  private List<Stage> scan(
      CommData input, CommData output, boolean inclusive, Operator op, CallMemory memory) {
    HostData out = Messages.host(output);
    boolean writes = inclusive || rank > 0; // rank 0 gets nothing from an exclusive scan
    HostData in = Messages.host(input);
    Collectives.Buffers buffers =
        writes
            ? buffers(in, out, memory)
            : new Collectives.Buffers(
                memory.input(in.segment(), in.type().bytes()), memory.take(in.bytes()));
    long count = in.count();
    long type = op.typeInLibrary();
    long code = op.inLibrary();
    Stage stage =
        inclusive
            ? Stage.of(
                "Scan",
                request ->
                    MpiCollectives.startScan(
                        buffers.input(), buffers.output(), count, type, code, comm, request),
                () ->
                    MpiCollectives.scan(buffers.input(), buffers.output(), count, type, code, comm))
            : Stage.of(
                "Exscan",
                request ->
                    MpiCollectives.startExclusiveScan(
                        buffers.input(), buffers.output(), count, type, code, comm, request),
                () ->
                    MpiCollectives.exclusiveScan(
                        buffers.input(), buffers.output(), count, type, code, comm));
    int divisor = inclusive ? rank + 1 : Math.max(1, rank);
    return List.of(
        stage.then(() -> {
          if (writes) {
            op.finish(buffers.output(), count, divisor);
          }
        }));
  }

  // --- folded by us ---

  /// Little data goes to everybody; of much each rank folds a part and passes that on.
  private List<Stage> foldAll(Collective.AllReduce c, Operator op, long number, CallMemory memory) {
    HostData in = Messages.host(c.input());
    HostData out = Messages.host(c.output());
    long count = in.count();
    DataType type = in.type();
    MemorySegment own = memory.input(in.segment(), type.bytes());
    MemorySegment result = memory.output(out.segment(), type.bytes());
    if (isSmall(in)) {
      MemorySegment all = memory.take(in.bytes() * size);
      MemorySegment work = memory.take(op.accumulator().bytes(count));
      return List.of(
          Collectives.gatherAll(own, all, count, type.bytes(), comm)
              .then(() -> op.fold(lined(all, in.bytes()), result, 0, count, work)));
    }
    Partition parts = cut(count);
    List<Stage> stages = new ArrayList<>(2);
    stages.add(
        foldOwnPart(
            c, own, parts, result, type.bytes(parts.displacement(rank)), op, number, memory));
    Exchange spread = new Exchange(group, c.label(), Tags.ofCall(number), type);
    long offset = type.bytes(parts.displacement(rank));
    for (int peer = 0; peer < size; peer++) {
      if (parts.count(rank) > 0) {
        spread.send(peer, result, offset, parts.count(rank));
      }
      if (parts.count(peer) > 0) {
        spread.receive(peer, result, type.bytes(parts.displacement(peer)), parts.count(peer));
      }
    }
    stages.add(spread);
    return stages;
  }

  private boolean isSmall(HostData data) {
    return data.bytes() * size <= SMALL_BYTES && data.count() <= largest;
  }

  /// Contributions of all ranks, one behind the other.
  private List<Contribution> lined(MemorySegment all, long bytes) {
    List<Contribution> contributions = new ArrayList<>(size);
    for (int peer = 0; peer < size; peer++) {
      contributions.add(new Contribution(all, peer * bytes));
    }
    return contributions;
  }

  /// Nearly equal parts.
  private Partition cut(long count) {
    long[] counts = new long[size];
    for (int peer = 0; peer < size; peer++) {
      counts[peer] = count / size + (peer < count % size ? 1 : 0);
    }
    return Partition.of(counts);
  }

  /// Gets every rank's data for this rank's part and folds it.
  private Stage foldOwnPart(
      Collective.Reducing call,
      MemorySegment own,
      Partition parts,
      MemorySegment target,
      long targetOffset,
      Operator op,
      long number,
      CallMemory memory) {
    DataType type = op.type();
    long count = parts.count(rank);
    long bytes = type.bytes(count);
    MemorySegment others = memory.take(bytes * (size - 1));
    MemorySegment work = memory.take(op.accumulator().bytes(count));
    Exchange exchange = new Exchange(group, call.label(), Tags.ofCall(number), type);
    List<Contribution> contributions = new ArrayList<>(size);
    for (int peer = 0; peer < size; peer++) {
      if (parts.count(peer) > 0) {
        exchange.send(peer, own, type.bytes(parts.displacement(peer)), parts.count(peer));
      }
      if (peer == rank) {
        contributions.add(new Contribution(own, type.bytes(parts.displacement(rank))));
      } else if (count > 0) {
        long place = bytes * (peer < rank ? peer : peer - 1);
        exchange.receive(peer, others, place, count);
        contributions.add(new Contribution(others, place));
      }
    }
    return exchange.then(() -> op.fold(contributions, target, targetOffset, count, work));
  }

  private List<Stage> foldAtRoot(Collective.Reduce c, Operator op, long number, CallMemory memory) {
    HostData in = Messages.host(c.input());
    DataType type = in.type();
    long count = in.count();
    boolean isRoot = rank == c.root();
    MemorySegment own = memory.input(in.segment(), type.bytes());
    MemorySegment result =
        isRoot
            ? memory.output(
                Messages.host(Objects.requireNonNull(c.output())).segment(), type.bytes())
            : MemorySegment.NULL;
    Partition parts = isSmall(in) ? atRoot(c.root(), count) : cut(count);
    MemorySegment part = isRoot ? result : memory.take(type.bytes(parts.count(rank)));
    long offset = isRoot ? type.bytes(parts.displacement(rank)) : 0;
    List<Stage> stages = new ArrayList<>(2);
    stages.add(foldOwnPart(c, own, parts, part, offset, op, number, memory));
    Exchange collect = new Exchange(group, c.label(), Tags.ofCall(number), type);
    for (int peer = 0; peer < size; peer++) {
      if (isRoot && parts.count(peer) > 0) {
        collect.receive(peer, result, type.bytes(parts.displacement(peer)), parts.count(peer));
      }
    }
    if (!isRoot && parts.count(rank) > 0) {
      collect.send(c.root(), part, 0, parts.count(rank));
    }
    stages.add(collect);
    return stages;
  }

  private Partition atRoot(int root, long count) {
    long[] counts = new long[size];
    counts[root] = count;
    return Partition.of(counts);
  }

  private List<Stage> foldParts(
      Collective.Reducing call,
      Partition parts,
      CommData output,
      Operator op,
      long number,
      CallMemory memory) {
    HostData in = Messages.host(call.input());
    HostData out = Messages.host(output);
    DataType type = in.type();
    MemorySegment own = memory.input(in.segment(), type.bytes());
    MemorySegment result = memory.output(out.segment(), type.bytes());
    return List.of(foldOwnPart(call, own, parts, result, 0, op, number, memory));
  }

  /// Each rank gets what the ranks before it have come to, adds its own and passes that on, in the
  /// accumulator's type.
  private List<Stage> foldChain(
      Collective.Reducing call,
      CommData output,
      boolean inclusive,
      Operator op,
      long number,
      CallMemory memory) {
    HostData in = Messages.host(call.input());
    HostData out = Messages.host(output);
    DataType type = in.type();
    DataType accumulator = op.accumulator();
    long count = in.count();
    Kernel kernel = op.kernel();
    MemorySegment own = memory.input(in.segment(), type.bytes());
    MemorySegment before = memory.take(accumulator.bytes(count));
    MemorySegment after = memory.take(accumulator.bytes(count));
    boolean writes = inclusive || rank > 0;
    MemorySegment result = writes ? memory.output(out.segment(), type.bytes()) : MemorySegment.NULL;
    Exchange receive = new Exchange(group, call.label(), Tags.ofCall(number), accumulator);
    if (rank > 0) {
      receive.receive(rank - 1, before, 0, count);
    }
    Exchange pass = new Exchange(group, call.label(), Tags.ofCall(number), accumulator);
    if (rank < size - 1) {
      pass.send(rank + 1, after, 0, count);
    }
    Runnable combine =
        () -> {
          if (count == 0) {
            return;
          }
          if (rank == 0) {
            kernel.widen(own, 0, after, 0, count);
          } else {
            CallMemory.copy(before, 0, after, 0, accumulator.bytes(count));
            kernel.combineRaw(own, 0, after, 0, count);
          }
          if (writes) {
            kernel.finish(
                inclusive ? after : before, 0, result, 0, count, inclusive ? rank + 1 : rank);
          }
        };
    return List.of(receive.then(combine), pass);
  }

  /// Whether it reduces by a user-defined operator.
  static boolean isUserDefined(Collective call) {
    return call instanceof Collective.Reducing reducing
        && reducing.op() instanceof ReduceOp.UserDefined;
  }
}
