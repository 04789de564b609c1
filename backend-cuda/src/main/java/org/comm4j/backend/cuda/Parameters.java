package org.comm4j.backend.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.comm4j.api.Collective;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.Epilogue;
import org.comm4j.core.kernel.EpilogueKernel;

/// The parameters of a kernel, laid out as `call.cuh` has them (`Call`, and behind it what `Copy`
/// adds). Addresses are those of the rank that launches. Used for any number of launches, by one
/// thread at a time: a launch takes a copy.
final class Parameters {
  /// The size of a `Call`.
  static final int CALL_BYTES = 176 + 16 * Window.MAX_RANKS;

  /// The size of a `Copy`.
  static final int COPY_BYTES = CALL_BYTES + 24 * Window.MAX_RANKS;

  private static final int EPILOGUE = 120;
  private static final int WINDOWS = 176;
  private static final int BASES = WINDOWS + 8 * Window.MAX_RANKS;
  private static final int BYTES = CALL_BYTES;
  private static final int FROM = BYTES + 8 * Window.MAX_RANKS;
  private static final int TO = FROM + 8 * Window.MAX_RANKS;
  private static final int ADDRESSES_BYTES = 16; // of one, before the parameters

  private final MemorySegment memory = Arena.ofAuto().allocate(ADDRESSES_BYTES + COPY_BYTES, 16);
  private final MemorySegment segment = memory.asSlice(ADDRESSES_BYTES);

  /// @param rank of who launches
  /// @param window the same on all ranks
  /// @param control the address of this rank's [Control]
  /// @param timeoutNs how long a kernel waits for a peer
  Parameters(int rank, Window window, long control, long timeoutNs) {
    memory.set(ADDRESS, 0, segment);
    put(16, timeoutNs).put(24, control);
    put(64, window.lines()).put(72, window.lineBytes());
    put(80, window.scratch()).put(88, window.scratchBytes());
    segment.set(JAVA_INT, 96, rank);
    segment.set(JAVA_INT, 100, window.ranks());
  }

  /// Of kernels that meet nobody.
  Parameters() {
    this(0, new Window(1, 0, 0), 0, 0);
  }

  private Parameters put(long offset, long value) {
    segment.set(JAVA_LONG, offset, value);
    return this;
  }

  /// How this rank reaches another one, or itself.
  ///
  /// @param window the address of that rank's window
  /// @param base what to add to the addresses of data that it publishes
  Parameters peer(int rank, long window, long base) {
    return put(WINDOWS + 8L * rank, window).put(BASES + 8L * rank, base);
  }

  /// A call of the group: the same number and digest on all ranks.
  ///
  /// @param number one more than that of the call before, from 1
  /// @param digest of what the ranks must agree on
  Parameters call(long number, long digest) {
    return put(0, number).put(8, digest);
  }

  /// This rank's memory.
  ///
  /// @param input its data's address, less the base that the others add to it
  /// @param output the address of its result
  /// @param isLent whether the input is anybody's memory: then the kernel ends when all have read
  ///   it
  Parameters data(long input, long output, boolean isLent) {
    segment.set(JAVA_INT, 112, isLent ? 1 : 0);
    return put(32, input).put(40, output);
  }

  /// A reduction in one stage, without epilogue. Where several ranks reduce the same elements, no
  /// output may be memory that the others read.
  ///
  /// @param from the first element of everybody's data that this rank reduces
  /// @param count how many elements; 0 for a rank that gets no result
  /// @param divisor of an average
  Parameters oneStage(long from, long count, int divisor) {
    return reduction(from, count, divisor, 1);
  }

  /// An all-reduce in two stages, or of little data, without epilogue. The output may be the input.
  ///
  /// @param count how many elements: a part of them must fit into the scratch, or all of them into
  ///   the lines; of little data at least 1, since a call without data meets nobody
  /// @param divisor of an average
  Parameters twoStage(long count, int divisor) {
    return reduction(0, count, divisor, 2);
  }

  private Parameters reduction(long from, long count, int divisor, int stages) {
    segment.set(JAVA_INT, 104, divisor);
    segment.set(JAVA_INT, 108, stages);
    return put(48, from).put(56, count).put(EPILOGUE, 0);
  }

  /// A function of each element of the result, done where it is stored in this rank's output: for the
  /// reduction set last, of an operator and type that [KernelName#hasEpilogue]. It is
  ///
  ///     round(widen(result[i]) × factor + bias[(first + i) mod biasCount] + residual[i])
  ///
  /// in kernels of an [Expression] with that around it before it is rounded, where `result` is what the reduction gives without it, and each step is rounded in FLOAT64
  /// where input or output is that, else in FLOAT32: bit for bit the reduction and then the function, as
  /// [org.comm4j.api.Epilogue] promises. Nothing of it goes to other ranks, each may have another
  /// one or none. Of a call in pieces each gets the function of its part of the output.
  ///
  /// @param type of the output; another one than the input's for kernels that cast, and no others
  /// @param factor is rounded to the type of the steps; 1 for none
  /// @param bias the address of elements of the output's type
  /// @param biasCount how many; 0 for none
  /// @param first which element the output's first one is, for the bias; at least 0
  /// @param residual the address of as many elements of the output's type as that has; 0 for none.
  ///   May be exactly the output, or this rank's input
  Parameters epilogue(
      DataType type, double factor, long bias, long biasCount, long first, long residual) {
    segment.set(JAVA_INT, EPILOGUE, 1);
    segment.set(JAVA_INT, EPILOGUE + 4, type.id());
    segment.set(JAVA_DOUBLE, EPILOGUE + 8, factor);
    segment.set(JAVA_FLOAT, EPILOGUE + 16, (float) factor);
    put(EPILOGUE + 24, bias).put(EPILOGUE + 32, biasCount).put(EPILOGUE + 40, first);
    return put(EPILOGUE + 48, residual);
  }

  /// The same of a call that may have an epilogue.
  ///
  /// @param rank the caller's
  /// @param from the kernel's first element of this rank's output
  Parameters epilogue(Collective.WithEpilogue call, int rank, long from) {
    Epilogue epilogue = call.epilogue();
    if (epilogue == null) {
      return this;
    }
    assert KernelName.hasEpilogue(call.op(), call.input().type()) : call;
    long bias = epilogue.bias() instanceof DeviceData data ? data.address() : 0;
    long biasCount = epilogue.bias() instanceof DeviceData data ? data.count() : 0;
    long residual =
        epilogue.residual() instanceof DeviceData data
            ? data.address() + data.type().bytes(from)
            : 0;
    long first = EpilogueKernel.first(call, rank) + from;
    return epilogue(call.output().type(), epilogue.scale(), bias, biasCount, first, residual);
  }

  /// What this rank fetches from another one.
  ///
  /// @param bytes how much
  /// @param from from where in that rank's data, in bytes
  /// @param to to where in the output, in bytes
  Parameters fetch(int rank, long bytes, long from, long to) {
    return put(BYTES + 8L * rank, bytes).put(FROM + 8L * rank, from).put(TO + 8L * rank, to);
  }

  /// {@return the parameters' addresses, as a launch takes them: one, of the block} Not a copy.
  MemorySegment addresses() {
    return memory;
  }
}
