package org.comm4j.tck;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.Partition;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.UnsupportedException;
import org.jspecify.annotations.Nullable;

/// Functions of a reduction's result. What a call must give is the function, in an arithmetic of
/// the kit's own, of what the same call gives without it.
final class EpilogueChecks {
  private static final List<DataType> FLOATS =
      List.of(
          DataType.FLOAT64,
          DataType.FLOAT32,
          DataType.FLOAT16,
          DataType.BFLOAT16,
          DataType.FLOAT8_E4M3,
          DataType.FLOAT8_E5M2);
  private static final int GUARD = 3; // elements before and behind an output

  private EpilogueChecks() {}

  private enum Form {
    ALL_REDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_V
  }

  /// One rank's call: the same input, type and count on all ranks.
  ///
  /// @param count of the whole result, of an all-reduce; of a rank's part otherwise
  private record Case(
      LiveRank r, Form form, ReduceOp op, DataType from, DataType to, int count, long seed) {
    /// The parts of a V-form: of different sizes, the last rank's first.
    Partition parts() {
      long[] counts = new long[r.size()];
      long[] displacements = new long[r.size()];
      long at = 2;
      for (int rank = r.size() - 1; rank >= 0; rank--) {
        counts[rank] = count + rank % 3L;
        displacements[rank] = at;
        at += counts[rank];
      }
      return Partition.of(counts, displacements);
    }

    int inputCount() {
      return switch (form) {
        case ALL_REDUCE -> count;
        case REDUCE_SCATTER -> count * r.size();
        case REDUCE_SCATTER_V -> (int) parts().extent();
      };
    }

    int outputCount() {
      return form == Form.REDUCE_SCATTER_V ? (int) parts().count(r.rank()) : count;
    }

    long first() {
      return switch (form) {
        case ALL_REDUCE -> 0;
        case REDUCE_SCATTER -> (long) r.rank() * count;
        case REDUCE_SCATTER_V -> parts().displacement(r.rank());
      };
    }

    /// This rank's part, as an output in place.
    CommData part(CommData all) {
      return all.slice(first(), outputCount());
    }

    byte[] part(byte[] all) {
      int at = (int) from.bytes(first());
      return Arrays.copyOfRange(all, at, at + (int) from.bytes(outputCount()));
    }

    /// All elements, with other ones in this rank's part.
    byte[] with(byte[] all, byte[] part) {
      byte[] changed = all.clone();
      System.arraycopy(part, 0, changed, (int) from.bytes(first()), part.length);
      return changed;
    }

    byte[] input() {
      return Values.ORDINARY.make(from, inputCount(), op, seed + r.rank());
    }

    Collective call(CommData input, CommData output, @Nullable Epilogue epilogue) {
      return switch (form) {
        case ALL_REDUCE -> new Collective.AllReduce(input, output, op, epilogue);
        case REDUCE_SCATTER -> new Collective.ReduceScatter(input, output, op, epilogue);
        case REDUCE_SCATTER_V ->
            new Collective.ReduceScatterV(input, parts(), output, op, epilogue);
      };
    }

    /// What must come out.
    byte[] expected(byte[] result, double scale, byte @Nullable [] bias, byte @Nullable [] added) {
      return expected(result, scale, bias, added, false);
    }

    /// @param isExpressed whether [CommunicatorContract#EXPRESSION] is at the end
    byte[] expected(
        byte[] result,
        double scale,
        byte @Nullable [] bias,
        byte @Nullable [] added,
        boolean isExpressed) {
      byte[] expected = new byte[outputCount() * to.bytes()];
      ByteBuffer target = Oracle.buffer(expected);
      ByteBuffer results = Oracle.buffer(result);
      ByteBuffer biases = bias == null ? null : Oracle.buffer(bias);
      ByteBuffer residuals = added == null ? null : Oracle.buffer(added);
      long first = first();
      for (int i = 0; i < expected.length / to.bytes(); i++) {
        double value = Oracle.readFloat(from, results, i * from.bytes());
        value = rounded(value * rounded(scale));
        if (biases != null) {
          int at = (int) ((first + i) % (biases.capacity() / to.bytes()));
          value = rounded(value + Oracle.readFloat(to, biases, at * to.bytes()));
        }
        if (residuals != null) {
          value = rounded(value + Oracle.readFloat(to, residuals, i * to.bytes()));
        }
        if (isExpressed) {
          value = expressed(value, first + i);
        }
        Oracle.write(target, i * to.bytes(), to.bytes(), Oracle.encode(to, value));
      }
      return expected;
    }

    private double expressed(double x, long i) {
      if (x > 0) {
        return rounded(x * 0.5);
      }
      return i % 3 == 0 ? -x : rounded(x / 4);
    }

    /// Of two floats a double's sum and product, rounded to float, are those of floats.
    private double rounded(double value) {
      return from == DataType.FLOAT64 || to == DataType.FLOAT64 ? value : (float) value;
    }

    void check(String rule, String what, byte[] actual, byte[] expected) {
      int at = Arrays.mismatch(expected, actual);
      if (at >= 0) {
        int element = at / to.bytes();
        throw new RuleViolation(
            rule,
            "%s by %s of %s × %d to %s on rank %d, %s: element %d is %s (expected: %s)"
                .formatted(
                    form,
                    op.name(),
                    from,
                    inputCount(),
                    to,
                    r.rank(),
                    what,
                    element,
                    Numbers.text(to, actual, element * to.bytes()),
                    Numbers.text(to, expected, element * to.bytes())));
      }
    }
  }

  /// Memory of a call: arrays, or what the communicator allocates, which may be a device's.
  private static final class Memory implements AutoCloseable {
    private final @Nullable Communicator allocator;
    private final List<CommBuffer> buffers = new ArrayList<>();

    /// @param allocator null for arrays
    Memory(@Nullable Communicator allocator) {
      this.allocator = allocator;
    }

    boolean isAllocated() {
      return allocator != null;
    }

    CommData with(DataType type, byte[] bytes) {
      if (allocator == null) {
        return CommData.of(type, MemorySegment.ofArray(bytes.clone()));
      }
      CommBuffer buffer = allocator.allocate(type, type.countIn(bytes.length));
      buffers.add(buffer);
      buffer.write(0, CommData.of(type, MemorySegment.ofArray(bytes)));
      return buffer.data();
    }

    byte[] bytes(CommData data) {
      byte[] bytes = new byte[(int) data.bytes()];
      if (data instanceof HostData host) {
        MemorySegment.copy(host.segment(), JAVA_BYTE, 0, bytes, 0, bytes.length);
        return bytes;
      }
      CommBuffer buffer =
          buffers.stream().filter(each -> each.data().equals(data)).findFirst().orElseThrow();
      buffer.read(0, CommData.of(data.type(), MemorySegment.ofArray(bytes)));
      return bytes;
    }

    @Override
    public void close() {
      buffers.forEach(CommBuffer::close);
    }
  }

  private static void inEachMemory(LiveRank r, Consumer<Memory> check) {
    try (Memory arrays = new Memory(null);
        Memory allocated = new Memory(r.comm())) {
      check.accept(arrays);
      check.accept(allocated);
    }
  }

  private static byte[] numbers(DataType type, int count, long seed) {
    return Values.ORDINARY.make(type, count, ReduceOp.SUM, seed);
  }

  private static byte[] result(Case of, Memory memory, CommData input) {
    CommData plain = memory.with(of.from(), new byte[of.outputCount() * of.from().bytes()]);
    of.r().comm().run(of.call(input, plain, null));
    return memory.bytes(plain);
  }

  @Rule({"E1", "E3"})
  @Needs(capabilities = Capability.EPILOGUE)
  static void epilogue_everyTypeAndForm_isTheReductionAndThenTheFunction(LiveRank r) {
    for (DataType type : FLOATS) {
      for (Form form : Form.values()) {
        boolean isThorough = type == DataType.FLOAT32;
        for (int count : isThorough ? new int[] {0, 1, 213} : new int[] {213}) {
          inEachMemory(
              r,
              memory -> {
                ReduceOp op = memory.isAllocated() ? ReduceOp.AVERAGE : ReduceOp.SUM;
                var of = new Case(r, form, op, type, type, count, r.seed() + count);
                functions(of, isThorough, memory);
              });
        }
      }
    }
  }

  /// So much that backends cut it into pieces.
  @Rule("E1")
  @Needs(capabilities = Capability.EPILOGUE)
  static void epilogue_muchData_goesOnWithEachPiece(LiveRank r) {
    for (Form form : Form.values()) {
      int count = form == Form.ALL_REDUCE ? 20_011 : 5_003;
      DataType type = DataType.FLOAT64;
      var of = new Case(r, form, ReduceOp.SUM, type, type, count, r.seed());
      inEachMemory(r, memory -> functions(of, false, memory));
    }
  }

  /// Also checks that nothing but the output's elements changes.
  ///
  /// @param areAll whether all functions are tried, not only some with everything
  private static void functions(Case of, boolean areAll, Memory memory) {
    DataType type = of.to();
    byte[] input = of.input();
    byte[] biases = numbers(type, 5, of.seed() + 77);
    byte[] longBiases = numbers(type, 3 * of.inputCount() + 1, of.seed() + 78);
    byte[] residuals = numbers(type, of.outputCount(), of.seed() + 79 + of.r().rank());
    CommData in = memory.with(type, input);
    CommData bias = memory.with(type, biases);
    CommData longBias = memory.with(type, longBiases);
    CommData residual = memory.with(type, residuals);
    byte[] result = result(of, memory, in);
    byte[] around = numbers(type, of.outputCount() + 2 * GUARD, of.seed() + 80);
    CommData whole = memory.with(type, around);
    CommData output = whole.slice(GUARD, of.outputCount());
    record Way(double scale, byte @Nullable [] bias, byte @Nullable [] residual, Epilogue it) {}
    Epilogue third = Epilogue.scale(1.0 / 3);
    List<Way> ways =
        List.of(
            new Way(-0.7, biases, residuals, new Epilogue(-0.7, bias, residual)),
            new Way(1, longBiases, residuals, new Epilogue(1, longBias, residual)),
            new Way(1, null, null, Epilogue.cast()),
            new Way(2.5, null, null, Epilogue.scale(2.5)),
            new Way(1.0 / 3, biases, null, third.plusBias(bias)),
            new Way(1.0 / 3, null, residuals, third.plusResidual(residual)));
    for (Way way : areAll ? ways : ways.subList(0, 2)) {
      of.r().comm().run(of.call(in, output, way.it()));
      byte[] after = memory.bytes(whole);
      int from = GUARD * type.bytes();
      int to = after.length - from;
      of.check(
          "E1",
          way.it().toString(),
          Arrays.copyOfRange(after, from, to),
          of.expected(result, way.scale(), way.bias(), way.residual()));
      Expect.that(
          "D5",
          Arrays.equals(after, 0, from, around, 0, from)
              && Arrays.equals(after, to, after.length, around, to, after.length),
          "%s of %s wrote beside its output",
          way.it(),
          of.form());
    }
    Expect.that("D4", Arrays.equals(memory.bytes(in), input), "an epilogue changed the input");
    Expect.that("E3", Arrays.equals(memory.bytes(bias), biases), "a bias was changed");
    Expect.that("E3", Arrays.equals(memory.bytes(residual), residuals), "a residual was changed");
  }

  @Rule("E3")
  @Needs(capabilities = Capability.EPILOGUE)
  static void residual_exactlyTheOutput_isAddedTo(LiveRank r) {
    for (DataType type : FLOATS) {
      for (Form form : Form.values()) {
        var of = new Case(r, form, ReduceOp.SUM, type, type, 333, r.seed());
        inEachMemory(r, memory -> addedTo(of, memory));
      }
    }
  }

  private static void addedTo(Case of, Memory memory) {
    CommData input = memory.with(of.to(), of.input());
    byte[] before = numbers(of.to(), of.outputCount(), of.seed() + 5 + of.r().rank());
    byte[] result = result(of, memory, input);
    CommData output = memory.with(of.to(), before);
    of.r().comm().run(of.call(input, output, Epilogue.scale(0.3).plusResidual(output)));
    of.check(
        "E3",
        "the residual is the output",
        memory.bytes(output),
        of.expected(result, 0.3, null, before));
  }

  /// In place a library may reduce in another order than else, so these are numbers whose sums are
  /// exact, and a bias that leaves no zeros whose sign could differ.
  @Rule({"E1", "E3", "O18"})
  @Needs(capabilities = Capability.EPILOGUE)
  static void epilogue_inPlace_isTheSame(LiveRank r) {
    for (DataType type : List.of(DataType.FLOAT32, DataType.BFLOAT16)) {
      for (Form form : Form.values()) {
        for (int count : new int[] {1, 64, 9001}) {
          var of = new Case(r, form, ReduceOp.SUM, type, type, count, r.seed());
          inEachMemory(r, memory -> inPlace(of, memory));
        }
      }
    }
  }

  private static void inPlace(Case of, Memory memory) {
    DataType type = of.from();
    byte[] own = whole(type, of.inputCount(), of.seed() + of.r().rank());
    byte[] before = of.part(own);
    byte[] result = of.part(sum(of));
    byte[] biases = numbers(type, 7, of.seed());
    Epilogue biased = Epilogue.scale(0.5).plusBias(memory.with(type, biases));
    CommData data = memory.with(type, own);
    of.r().comm().run(of.call(data, of.part(data), biased));
    byte[] expected = of.with(own, of.expected(result, 0.5, biases, null));
    of.check("E1 O18", "in place", memory.bytes(data), expected);
    CommData again = memory.with(type, own);
    CommData part = of.part(again);
    of.r().comm().run(of.call(again, part, biased.plusResidual(part)));
    expected = of.with(own, of.expected(result, 0.5, biases, before));
    of.check("E3 O18", "in place with itself", memory.bytes(again), expected);
  }

  private static byte[] sum(Case of) {
    List<byte[]> inputs = new ArrayList<>();
    for (int rank = 0; rank < of.r().size(); rank++) {
      inputs.add(whole(of.from(), of.inputCount(), of.seed() + rank));
    }
    return Oracle.fold(ReduceOp.SUM, of.from(), inputs);
  }

  /// A type of the same size takes the same memory.
  @Rule({"E2", "O18"})
  @Needs(capabilities = Capability.EPILOGUE)
  static void output_ofAnotherTypeInPlace_isRoundedOnce(LiveRank r) {
    for (Form form : Form.values()) {
      var of = new Case(r, form, ReduceOp.SUM, DataType.FLOAT16, DataType.BFLOAT16, 5001, r.seed());
      inEachMemory(r, memory -> castInPlace(of, memory));
    }
  }

  private static void castInPlace(Case of, Memory memory) {
    byte[] own = whole(of.from(), of.inputCount(), of.seed() + of.r().rank());
    CommData input = memory.with(of.from(), own);
    CommData output = of.part(as(of.to(), input));
    of.r().comm().run(of.call(input, output, Epilogue.scale(3)));
    byte[] expected = of.with(own, of.expected(of.part(sum(of)), 3, null, null));
    of.check("E2 O18", "in place", memory.bytes(input), expected);
  }

  /// The same memory, of another type.
  private static CommData as(DataType type, CommData data) {
    return switch (data) {
      case HostData host -> CommData.of(type, host.segment());
      case DeviceData device ->
          new DeviceData(type, device.address(), type.countIn(device.bytes()), device.device());
    };
  }

  private static byte[] whole(DataType type, int count, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    byte[] bytes = new byte[count * type.bytes()];
    for (int at = 0; at < bytes.length; at += type.bytes()) {
      long bits = Oracle.encode(type, random.nextInt(-8, 9));
      Oracle.write(Oracle.buffer(bytes), at, type.bytes(), bits);
    }
    return bytes;
  }

  @Rule("E2")
  @Needs(capabilities = Capability.EPILOGUE)
  static void output_ofAnotherType_isRoundedOnce(LiveRank r) {
    for (DataType from : FLOATS) {
      for (DataType to : FLOATS) {
        Form form = Form.values()[(from.id() + to.id()) % Form.values().length];
        var of = new Case(r, form, ReduceOp.AVERAGE, from, to, 307, r.seed() + to.id());
        inEachMemory(r, memory -> casts(of, memory));
      }
    }
  }

  private static void casts(Case of, Memory memory) {
    DataType to = of.to();
    CommData input = memory.with(of.from(), of.input());
    byte[] result = result(of, memory, input);
    byte[] before = numbers(to, of.outputCount(), of.seed() + 3);
    byte[] biases = numbers(to, 11, of.seed() + 4);
    CommData output = memory.with(to, before);
    of.r().comm().run(of.call(input, output, Epilogue.cast()));
    of.check("E2", "a cast", memory.bytes(output), of.expected(result, 1, null, null));
    CommData sums = memory.with(to, before);
    CommData bias = memory.with(to, biases);
    of.r().comm().run(of.call(input, sums, new Epilogue(1.7, bias, sums)));
    of.check("E2", "a cast of all", memory.bytes(sums), of.expected(result, 1.7, biases, before));
  }

  /// So much that backends cut it into pieces, and not all ranks get the same type.
  @Rule({"E2", "E4"})
  @Needs(capabilities = Capability.EPILOGUE)
  static void output_ofMuchDataOfAnotherType_goesOnWithEachPiece(LiveRank r) {
    for (Form form : Form.values()) {
      int count = form == Form.ALL_REDUCE ? 40_011 : 10_003;
      DataType to = r.rank() % 2 == 0 ? DataType.FLOAT64 : DataType.FLOAT8_E5M2;
      var of = new Case(r, form, ReduceOp.SUM, DataType.FLOAT16, to, count, r.seed());
      inEachMemory(r, memory -> casts(of, memory));
    }
  }

  @Rule("E4")
  @Needs(capabilities = Capability.EPILOGUE)
  static void ranks_withDifferentOnes_getEachItsOwn(LiveRank r) {
    for (Form form : Form.values()) {
      for (int count : new int[] {1, 2, 4001, 20_000}) {
        for (int turn : new int[] {0, 1, 2}) {
          inEachMemory(r, memory -> differentOnes(r, form, count, turn, memory));
        }
      }
    }
  }

  private static void differentOnes(LiveRank r, Form form, int count, int turn, Memory memory) {
    int mine = (r.rank() + turn) % 3;
    DataType from = count % 2 == 0 ? DataType.FLOAT32 : DataType.FLOAT16;
    DataType to = mine == 2 ? DataType.FLOAT64 : from;
    var of = new Case(r, form, ReduceOp.SUM, from, to, count, r.seed() + count);
    CommData input = memory.with(from, whole(from, of.inputCount(), of.seed() + 7L * r.rank()));
    byte[] result = result(of, memory, input);
    byte[] before = numbers(to, of.outputCount(), of.seed() + r.rank());
    CommData output = memory.with(to, before);
    double scale = 1 + r.rank();
    @Nullable Epilogue own =
        switch (mine) {
          case 0 -> null;
          case 1 -> Epilogue.scale(scale);
          default -> Epilogue.scale(scale).plusResidual(output);
        };
    r.comm().run(of.call(input, output, own));
    byte[] expected =
        mine == 0 ? result : of.expected(result, scale, null, mine == 2 ? before : null);
    of.check("E4", "its own function", memory.bytes(output), expected);
  }

  /// Of numbers whose sums are exact, since a library may reduce in another order where a call does
  /// not wait.
  @Rule({"E1", "O22", "O23"})
  @Needs(capabilities = Capability.EPILOGUE)
  static void epilogue_startedAndPrepared_isTheSame(LiveRank r) {
    var of =
        new Case(
            r,
            Form.REDUCE_SCATTER,
            ReduceOp.SUM,
            DataType.FLOAT32,
            DataType.FLOAT32,
            700,
            r.seed());
    inEachMemory(r, memory -> startedAndPrepared(of, memory));
  }

  private static void startedAndPrepared(Case of, Memory memory) {
    byte[] numbers = whole(of.from(), of.inputCount(), of.seed() + of.r().rank());
    CommData input = memory.with(of.from(), numbers);
    byte[] result = result(of, memory, input);
    List<Request> started = new ArrayList<>();
    List<CommData> outputs = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      CommData output = memory.with(of.to(), new byte[700 * Float.BYTES]);
      outputs.add(output);
      started.add(of.r().comm().start(of.call(input, output, Epilogue.scale(i))));
    }
    Request.waitAll(started);
    for (int i = 0; i < outputs.size(); i++) {
      byte[] expected = of.expected(result, i, null, null);
      of.check("O22 O23", "started", memory.bytes(outputs.get(i)), expected);
    }
    byte[] sums = new byte[700 * Float.BYTES];
    CommData output = memory.with(of.to(), sums);
    var prepared =
        of.r().comm().prepare(of.call(input, output, Epilogue.scale(0.1).plusResidual(output)));
    for (int i = 0; i < 3; i++) {
      prepared.run();
      sums = of.expected(result, 0.1, null, sums);
      of.check("O22", "prepared, run " + i, memory.bytes(output), sums);
    }
  }

  @Rule({"E1", "O26"})
  @Needs(capabilities = {Capability.EPILOGUE, Capability.HOST_MEMORY})
  static void epilogue_oneLineMethods_doWhatTheirRecordsDo(LiveRank r) {
    int size = r.size();
    float[] sum = new float[2];
    r.comm()
        .allReduce(
            CommData.of(1f, 2f),
            CommData.of(sum),
            ReduceOp.SUM,
            Epilogue.scale(0.5).plusBias(CommData.of(100f)));
    Expect.equal("O26", "allReduce", sum[1], 100f + size);
    float[] part = {7};
    r.comm()
        .reduceScatter(
            CommData.of(new float[size]),
            CommData.of(part),
            ReduceOp.AVERAGE,
            Epilogue.scale(3).plusResidual(CommData.of(part)));
    Expect.equal("O26", "reduceScatter", part[0], 7f);
  }

  /// The types of input and output with which an expression is tried.
  private enum Expressed {
    FLOATS(DataType.FLOAT32, DataType.FLOAT32),
    DOUBLES(DataType.FLOAT64, DataType.FLOAT64),
    BRAINS(DataType.BFLOAT16, DataType.BFLOAT16),
    WIDENED(DataType.BFLOAT16, DataType.FLOAT32),
    NARROWED(DataType.FLOAT64, DataType.BFLOAT16);

    private final DataType from;
    private final DataType to;

    Expressed(DataType from, DataType to) {
      this.from = from;
      this.to = to;
    }
  }

  /// Every backend does one of both; who was told of the expression can't refuse it in memory of
  /// its own.
  @Rule({"E6", "G8"})
  @Needs(capabilities = Capability.EPILOGUE)
  static void expression_isTheEnd_orRefused(LiveRank r) {
    for (Expressed types : Expressed.values()) {
      for (Form form : Form.values()) {
        for (int count : new int[] {1, 213, 10_003}) {
          ReduceOp op = count == 1 ? ReduceOp.AVERAGE : ReduceOp.SUM;
          var of = new Case(r, form, op, types.from, types.to, count, r.seed() + count);
          inEachMemory(r, memory -> expression(of, memory));
        }
      }
    }
  }

  private static void expression(Case of, Memory memory) {
    byte[] biases = numbers(of.to(), 7, of.seed() + 1);
    byte[] before = numbers(of.to(), of.outputCount(), of.seed() + 2 + of.r().rank());
    CommData input = memory.with(of.from(), of.input());
    CommData bias = memory.with(of.to(), biases);
    CommData output = memory.with(of.to(), before);
    byte[] result = result(of, memory, input);
    Epilogue epilogue = new Epilogue(-0.7, bias, output, CommunicatorContract.EXPRESSION);
    Communicator comm = of.r().comm();
    try {
      comm.run(of.call(input, output, epilogue));
    } catch (UnsupportedException e) {
      Expect.says("E6", e, CommunicatorContract.EXPRESSION);
      Expect.that(
          "E6",
          !(of.r().can(Capability.EXPRESSIONS) && isTold(of.r().config()) && memory.isAllocated()),
          "%s has EXPRESSIONS, was told of that of %s, and refused it (expected: used)",
          comm.backend(),
          epilogue);
      Expect.that(
          "E6", Arrays.equals(memory.bytes(output), before), "a refused call wrote its output");
      LiveRank.works("E6", comm);
      return;
    }
    Expect.that(
        "E6",
        of.r().can(Capability.EXPRESSIONS),
        "%s took the expression of %s and has not EXPRESSIONS (expected: refused)",
        comm.backend(),
        epilogue);
    of.check(
        "E6",
        epilogue.toString(),
        memory.bytes(output),
        of.expected(result, -0.7, biases, before, true));
  }

  /// Backends are told by options.
  private static boolean isTold(CommConfig config) {
    return config.options().values().stream()
        .anyMatch(value -> value.contains(CommunicatorContract.EXPRESSION));
  }

  @Rule({"E5", "A1", "A2", "A3"})
  @Needs(capabilities = {Capability.EPILOGUE, Capability.HOST_MEMORY})
  static void epilogue_wrongArgument_isRefusedHereAlone(LiveRank r) {
    CommData four = CommData.of(new float[4]);
    CommData eight = CommData.of(new float[8]);
    CommData doubles = CommData.of(new double[4]);
    CommData part = eight.slice(0, 4);
    Epilogue half = Epilogue.scale(0.5);
    refused(r, "MAX", () -> new Collective.AllReduce(four, four, ReduceOp.MAX, half));
    CommData ints = CommData.of(new int[4]);
    refused(r, "INT32", () -> new Collective.AllReduce(ints, ints, ReduceOp.SUM, half));
    refused(r, "INT32 × 4", () -> new Collective.AllReduce(four, ints, ReduceOp.SUM, half));
    refused(r, "FLOAT64 × 4", () -> new Collective.AllReduce(four, doubles, ReduceOp.SUM));
    refused(r, "FLOAT32 × 0", () -> half.plusBias(four.slice(0, 0)));
    refused(r, "FLOAT64 × 4", () -> sum(four, part, half.plusBias(doubles)));
    refused(r, "FLOAT64 × 4", () -> sum(four, part, half.plusResidual(doubles)));
    refused(r, "FLOAT32 × 8", () -> sum(four, CommData.of(new float[4]), half.plusResidual(eight)));
    refused(r, "overlap", () -> sum(four, part, half.plusBias(eight.slice(3, 1))));
    refused(r, "overlap", () -> sum(four, part, half.plusResidual(eight.slice(1, 4))));
    try (Arena arena = Arena.ofConfined()) {
      CommData confined = CommData.of(DataType.FLOAT32, arena.allocate(16, 4));
      for (Epilogue each : List.of(half.plusBias(confined), half.plusResidual(confined))) {
        refused(r, "confined", () -> r.comm().start(sum(four, part, each)));
        r.comm().run(sum(four, part, each));
      }
    }
    LiveRank.works("A3", r.comm());
  }

  private static Collective sum(CommData input, CommData output, Epilogue epilogue) {
    return new Collective.AllReduce(input, output, ReduceOp.SUM, epilogue);
  }

  private static void refused(LiveRank r, String value, Expect.Action action) {
    var thrown = Expect.thrown("E5", IllegalArgumentException.class, "a wrong epilogue", action);
    Expect.says("A2", thrown, value, "expected");
    Expect.that("A3", r.comm().failure().isEmpty(), "a wrong argument broke the communicator");
  }

  @Rule({"E3", "D11"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.EPILOGUE, Capability.POINT_TO_POINT})
  static void buffer_ofAnEpilogueInFlight_isRefusedToClose(LiveRank r) {
    Communicator comm = r.comm();
    for (boolean isBias : new boolean[] {true, false}) {
      try (CommBuffer data = comm.allocate(DataType.FLOAT32, 8);
          CommBuffer added = comm.allocate(DataType.FLOAT32, 8)) {
        Epilogue epilogue =
            isBias
                ? Epilogue.cast().plusBias(added.data())
                : Epilogue.cast().plusResidual(added.data());
        Collective call =
            new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM, epilogue);
        if (r.rank() == 0) {
          Request request = comm.start(call);
          var refused =
              Expect.thrown("D11", IllegalStateException.class, "close() in use", added::close);
          Expect.says("A2", refused, "flight");
          for (int peer = 1; peer < r.size(); peer++) {
            comm.send(CommData.of(1), peer, 0);
          }
          request.await();
        } else {
          comm.receive(CommData.of(new int[1]), 0, 0);
          comm.run(call);
        }
      }
    }
  }
}
