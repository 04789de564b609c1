package org.comm4j.tck;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.zip.CRC32C;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.DeviceData;
import org.comm4j.api.HostData;
import org.comm4j.api.ReduceOp;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.tck.CollectiveCase.Bits;
import org.comm4j.tck.CollectiveCase.Expected;
import org.comm4j.tck.CollectiveCase.Part;
import org.jspecify.annotations.Nullable;

/// One rank's memory for a [CollectiveCase]: filled, handed to the call, and looked at afterwards.
///
/// Inputs and outputs lie in larger areas of known bytes, so that whatever is written beside them
/// is seen.
final class CaseMemory implements AutoCloseable {
  private static final int GUARD_BYTES = 64;

  /// Where the elements are.
  enum Place {
    /// A byte array.
    HEAP,
    /// An array of longs, so that elements are aligned.
    LONGS,
    /// Native memory.
    NATIVE,
    /// Native memory of a confined arena.
    CONFINED,
    /// Native memory at an odd address.
    UNALIGNED,
    /// What the communicator allocates.
    ALLOCATED,
    /// A byte array, the input as a read-only view.
    READ_ONLY
  }

  /// Makes the memory of [Place#ALLOCATED].
  @FunctionalInterface
  interface Allocator {
    CommBuffer allocate(DataType type, long count);
  }

  /// A piece of memory with guards around.
  private static final class Area {
    final MemorySegment all; // of a device's memory a copy
    final byte[] before;
    final @Nullable CommBuffer device; // whose memory it is, where the host can't read it

    Area(MemorySegment all, @Nullable CommBuffer device, SplittableRandom random) {
      this.all = all;
      this.device = device;
      this.before = new byte[(int) all.byteSize()];
      random.nextBytes(before);
    }

    void store() {
      if (device != null) {
        device.write(0, CommData.of(DataType.UINT8, all));
      }
    }

    void load() {
      if (device != null) {
        device.read(0, CommData.of(DataType.UINT8, all));
      }
    }

    /// Elements of it.
    CommData data(DataType type, int at, MemorySegment view) {
      return device != null && device.data() instanceof DeviceData data
          ? new DeviceData(type, data.address() + at, type.countIn(view.byteSize()), data.device())
          : CommData.of(type, view);
    }
  }

  private final Expected expected;
  private final CollectiveCase of;
  private final int rank;
  private final Place place;
  private final List<AutoCloseable> toClose = new ArrayList<>();
  private final @Nullable Area inputArea;
  private final @Nullable Area outputArea;
  private final MemorySegment input;
  private final MemorySegment output;
  private final int inputAt;
  private final int outputAt;
  private final Collective call;

  /// @param allocator makes the memory of [Place#ALLOCATED]; else not used
  CaseMemory(Expected expected, int rank, Place place, @Nullable Allocator allocator) {
    this.expected = expected;
    this.of = expected.of();
    this.rank = rank;
    this.place = place;
    int element = of.type().bytes();
    int inputCount = of.inputCount(rank);
    int outputCount = of.outputCount(rank);
    SplittableRandom random = new SplittableRandom(of.seed() + 1_000_003L * rank);
    if (of.isInPlace(rank) && inputCount >= 0 && outputCount >= 0) {
      int large = Math.max(inputCount, outputCount);
      int small = Math.min(inputCount, outputCount);
      Area area = area(large * element, allocator, random);
      int offset = Math.min(of.offsetInPlace(rank), large - small) * element;
      inputArea = area;
      outputArea = area;
      inputAt = GUARD_BYTES + (inputCount < outputCount ? offset : 0);
      outputAt = GUARD_BYTES + (outputCount < inputCount ? offset : 0);
    } else {
      inputArea = inputCount < 0 ? null : area(inputCount * element, allocator, random);
      outputArea = outputCount < 0 ? null : area(outputCount * element, allocator, random);
      inputAt = GUARD_BYTES;
      outputAt = GUARD_BYTES;
    }
    input = view(inputArea, inputAt, inputCount * element);
    output = view(outputArea, outputAt, outputCount * element);
    call = makeCall();
    fill();
  }

  private Area area(int bytes, @Nullable Allocator allocator, SplittableRandom random) {
    int all = bytes + 2 * GUARD_BYTES;
    if (place == Place.ALLOCATED) {
      CommBuffer buffer = Objects.requireNonNull(allocator).allocate(DataType.UINT8, all);
      toClose.add(buffer);
      return buffer.data() instanceof HostData host
          ? new Area(host.segment(), null, random)
          : new Area(MemorySegment.ofArray(new byte[all]), buffer, random);
    }
    MemorySegment memory =
        switch (place) {
          case HEAP, READ_ONLY -> MemorySegment.ofArray(new byte[all]);
          case LONGS -> MemorySegment.ofArray(new long[(all + 7) / 8]).asSlice(0, all);
          case NATIVE -> Arena.ofAuto().allocate(all, 64);
          case UNALIGNED -> Arena.ofAuto().allocate(all + 1, 64).asSlice(1);
          case CONFINED -> {
            Arena arena = Arena.ofConfined();
            toClose.add(arena);
            yield arena.allocate(all, 16);
          }
          case ALLOCATED -> throw new AssertionError("see above");
        };
    return new Area(memory, null, random);
  }

  private static MemorySegment view(@Nullable Area area, int at, int bytes) {
    return area == null ? MemorySegment.NULL : area.all.asSlice(at, Math.max(0, bytes));
  }

  /// Makes the memory as it is before a call; again, before the next one.
  void fill() {
    for (Area area : areas()) {
      MemorySegment.copy(area.before, 0, area.all, JAVA_BYTE, 0, area.before.length);
    }
    if (inputArea != null && reads()) {
      byte[] bytes = expected.input(rank);
      MemorySegment.copy(bytes, 0, input, JAVA_BYTE, 0, bytes.length);
    }
    areas().forEach(Area::store);
  }

  /// Only the root of a broadcast reads.
  private boolean reads() {
    return of.kind() != CollectiveKind.BROADCAST || rank == of.root();
  }

  private List<Area> areas() {
    List<Area> areas = new ArrayList<>(2);
    if (inputArea != null) {
      areas.add(inputArea);
    }
    if (outputArea != null && outputArea != inputArea) {
      areas.add(outputArea);
    }
    return areas;
  }

  // --- the call ---

  /// What this rank calls; the same record each time.
  Collective call() {
    return call;
  }

  private Collective makeCall() {
    boolean readOnly =
        place == Place.READ_ONLY
            && (of.kind() == CollectiveKind.BROADCAST ? reads() : !of.isInPlace(rank));
    CommData in = data(inputArea, inputAt, readOnly ? input.asReadOnly() : input);
    CommData out = data(outputArea, outputAt, output);
    CommData inOrNull = inputArea == null ? null : in;
    CommData outOrNull = outputArea == null ? null : out;
    return switch (of.kind()) {
      case BARRIER -> new Collective.Barrier();
      case BROADCAST -> new Collective.Broadcast(in, of.root());
      case REDUCE -> new Collective.Reduce(in, outOrNull, op(), of.root());
      case ALL_REDUCE -> new Collective.AllReduce(in, out, op());
      case GATHER -> new Collective.Gather(in, outOrNull, of.root());
      case GATHER_V ->
          new Collective.GatherV(
              in, outOrNull, outOrNull == null ? null : of.parts(rank), of.root());
      case ALL_GATHER -> new Collective.AllGather(in, out);
      case ALL_GATHER_V -> new Collective.AllGatherV(in, out, of.parts(rank));
      case SCATTER -> new Collective.Scatter(inOrNull, out, of.root());
      case SCATTER_V ->
          new Collective.ScatterV(
              inOrNull, inOrNull == null ? null : of.parts(rank), out, of.root());
      case REDUCE_SCATTER -> new Collective.ReduceScatter(in, out, op());
      case REDUCE_SCATTER_V -> new Collective.ReduceScatterV(in, of.parts(rank), out, op());
      case ALL_TO_ALL -> new Collective.AllToAll(in, out);
      case ALL_TO_ALL_V ->
          new Collective.AllToAllV(in, of.sendParts(rank), out, of.receiveParts(rank));
      case SCAN -> new Collective.Scan(in, out, op());
      case EXCLUSIVE_SCAN -> new Collective.ExclusiveScan(in, out, op());
    };
  }

  private CommData data(@Nullable Area area, int at, MemorySegment view) {
    return area == null ? CommData.of(of.type(), view) : area.data(of.type(), at, view);
  }

  private ReduceOp op() {
    return Objects.requireNonNull(of.op());
  }

  // --- afterwards ---

  /// A number for the output's elements: equal elements, equal numbers.
  long digest() {
    areas().forEach(Area::load);
    CRC32C crc = new CRC32C();
    for (Part part : expected.output(rank)) {
      int at = part.from() * of.type().bytes();
      crc.update(output.asSlice(at, part.bytes().length).toArray(JAVA_BYTE));
    }
    return crc.getValue();
  }

  /// Checks that the output has the elements that it must have, and that nothing else has changed.
  ///
  /// @throws RuleViolation if not
  void check(Bits bits) {
    areas().forEach(Area::load);
    List<Part> parts = expected.output(rank);
    for (Part part : parts) {
      checkElements(part, bits);
    }
    for (Area area : areas()) {
      byte[] should = image(area, parts);
      byte[] is = area.all.toArray(JAVA_BYTE);
      int at = Arrays.mismatch(should, is);
      if (at >= 0) {
        boolean inInput =
            area == inputArea && at >= inputAt && at < inputAt + input.byteSize() && reads();
        throw new RuleViolation(
            inInput ? "D4" : "D5",
            "%s on rank %d in %s memory changed byte %d %s"
                .formatted(
                    of,
                    rank,
                    place,
                    at - (inInput ? inputAt : outputAt),
                    inInput ? "of its input" : "counted from its output, which it must not write"));
      }
    }
  }

  /// An area as it must be, the output's elements as they are.
  private byte[] image(Area area, List<Part> parts) {
    byte[] image = area.before.clone();
    if (area == inputArea && reads()) {
      byte[] bytes = expected.input(rank);
      System.arraycopy(bytes, 0, image, inputAt, bytes.length);
    }
    if (area == outputArea) {
      for (Part part : parts) {
        int from = part.from() * of.type().bytes();
        MemorySegment.copy(output, JAVA_BYTE, from, image, outputAt + from, part.bytes().length);
      }
    }
    return image;
  }

  private void checkElements(Part part, Bits bits) {
    int element = of.type().bytes();
    int start = part.from() * element;
    byte[] should = part.bytes();
    byte[] is = output.asSlice(start, should.length).toArray(JAVA_BYTE);
    boolean moved = of.op() == null;
    if (Arrays.equals(should, is)) {
      return;
    }
    DataType type = of.type();
    List<byte[]> terms = expected.terms(rank, part);
    for (int at = 0; at < should.length; at += element) {
      boolean same =
          moved
              ? Arrays.equals(should, at, at + element, is, at, at + element)
              : isAsExpected(part, terms, bits, should, is, at);
      if (!same) {
        throw new RuleViolation(
            moved ? CollectiveCase.rule(of.kind()) : rules(terms, bits, should, is, at),
            "%s on rank %d in %s memory: element %d is %s (expected: %s%s)"
                .formatted(
                    of,
                    rank,
                    place,
                    (start + at) / element,
                    Numbers.text(type, is, at),
                    bits == Bits.NEAR ? "about " : "",
                    Numbers.text(type, should, at)));
      }
    }
  }

  private boolean isAsExpected(
      Part part, List<byte[]> terms, Bits bits, byte[] should, byte[] is, int at) {
    if (Oracle.isSame(of.type(), should, is, at)
        || (part.terms() == 1 && Numbers.areBothNan(of.type(), should, is, at))) {
      return true;
    }
    return switch (bits) {
      case SAME -> false;
      case EQUAL -> Numbers.areEqual(of.type(), should, is, at);
      case NEAR -> Numbers.areNear(of.type(), op(), terms, at, is, at, false);
    };
  }

  /// Which rules a wrong element breaks, judged by what it is wrong about.
  private String rules(List<byte[]> terms, Bits bits, byte[] should, byte[] is, int at) {
    DataType type = of.type();
    ReduceOp op = op();
    String rule = CollectiveCase.rule(of.kind());
    boolean floats = type.kind() == Kind.FLOAT || type.kind() == Kind.COMPLEX;
    boolean folds = op == ReduceOp.SUM || op == ReduceOp.PRODUCT || op == ReduceOp.AVERAGE;
    if (floats && folds && of.values() == Values.ORDINARY) {
      if (bits == Bits.SAME && Numbers.areNear(type, op, terms, at, is, at, false)) {
        return rule + " B3"; // right but for the order
      }
      if (type.bytes() < 4 && Numbers.areNear(type, op, terms, at, is, at, true)) {
        return rule + " T3"; // right but for the rounding
      }
    }
    if (floats && Numbers.areBothNan(type, should, is, at)) {
      return rule + " T12";
    }
    return rule
        + switch (op) {
          case ReduceOp.UserDefined _ -> " T13";
          case ReduceOp.Predefined known ->
              switch (known) {
                case SUM -> type.isInteger() ? " T2" : type.bytes() == 1 ? " T11" : "";
                case PRODUCT ->
                    type.isInteger() ? " T2" : type.kind() == Kind.COMPLEX ? " T10" : "";
                case AVERAGE -> type.isInteger() ? " T4" : " T5";
                case MIN, MAX -> floats ? " T6" : "";
                case BIT_AND, BIT_OR, BIT_XOR -> " T7";
                case LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR -> " T8";
                case MIN_LOC, MAX_LOC -> " T9";
              };
        };
  }

  @Override
  public void close() {
    for (AutoCloseable each : toClose) {
      try {
        each.close();
      } catch (Exception e) {
        throw new RuleViolation("D11", "memory of %s can't be closed".formatted(of), e);
      }
    }
    toClose.clear();
  }
}
