package org.comm4j.tck;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.ConcurrentUseException;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.jspecify.annotations.Nullable;

/// Data: types, views, and memory that communicators allocate.
final class DataChecks {
  private static final int IN_FLIGHT = 1 << 18; // 2 MiB, more than goes unasked

  private static final int MOST_BEGINNINGS = 100;

  private static final String TOO_EARLY = "closed before the call had looked at it";

  private DataChecks() {}

  @Rule("D1")
  static void types_idsAndSizes_areStable(LiveRank r) {
    Map<Integer, String> expected = new LinkedHashMap<>();
    String[] values = {
      "0 FLOAT64 8",
      "1 FLOAT32 4",
      "2 FLOAT16 2",
      "3 BFLOAT16 2",
      "4 FLOAT8_E4M3 1",
      "5 FLOAT8_E5M2 1",
      "10 INT64 8",
      "11 INT32 4",
      "12 INT16 2",
      "13 INT8 1",
      "20 UINT64 8",
      "21 UINT32 4",
      "22 UINT16 2",
      "23 UINT8 1",
      "30 BOOL 1",
      "40 COMPLEX64 8",
      "41 COMPLEX128 16"
    };
    for (String value : values) {
      int id = Integer.parseInt(value.substring(0, value.indexOf(' ')));
      expected.put(id, value);
      if (id < 30) {
        String name = value.split(" ", -1)[1];
        expected.put(100 + id, (100 + id) + " " + name + "_PAIR 16");
      }
    }
    Expect.equal("D1", "how many types", DataType.values().length, expected.size());
    expected.forEach((id, text) -> {
      DataType type = DataType.ofId(id);
      Expect.equal("D1", "type", type.id() + " " + type + " " + type.bytes(), text);
      Expect.equal("D1", "its size", type.bytes(3), 3L * type.bytes());
    });
    for (int id : new int[] {-1, 6, 31, 99, 130, 140, 1000}) {
      Expect.thrown("D1", IllegalArgumentException.class, "id " + id, () -> DataType.ofId(id));
    }
    LiveRank.works("D1", r.comm());
  }

  @Rule({"D2", "D3", "D9"})
  static void views_madeOfAnything_areTheSameMemory(LiveRank r) {
    float[] array = {1, 2, 3, 4};
    HostData view = CommData.of(array);
    array[2] = 30;
    Expect.equal(
        "D2", "element 2", view.segment().getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, 2), 30f);
    HostData slice = view.slice(1, 2);
    Expect.equal("D2", "count", slice.count(), 2L);
    slice.segment().setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, 1, 31);
    Expect.equal("D2", "element 2", array[2], 31f);
    Expect.equal("D2", "an empty slice", view.slice(4, 0).count(), 0L);
    long[][] beyond = {{-1, 1}, {0, 5}, {4, 1}, {1, -1}, {Long.MAX_VALUE, 2}};
    for (long[] wrong : beyond) {
      var refused =
          Expect.thrown(
              "D2", IllegalArgumentException.class, "slice", () -> view.slice(wrong[0], wrong[1]));
      Expect.says("A2", refused, Long.toString(wrong[0]), "expected");
    }
    type(CommData.of(new double[1]), DataType.FLOAT64);
    type(CommData.of(new long[1]), DataType.INT64);
    type(CommData.of(new int[1]), DataType.INT32);
    type(CommData.of(new short[1]), DataType.INT16);
    type(CommData.of(new byte[1]), DataType.INT8);
    FloatBuffer buffer = FloatBuffer.wrap(array).position(1).limit(3);
    HostData ofBuffer = CommData.of(buffer);
    type(ofBuffer, DataType.FLOAT32);
    Expect.equal("D3", "count", ofBuffer.count(), 2L);
    Expect.equal("D3", "position", buffer.position(), 1);
    ByteOrder other =
        ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN
            ? ByteOrder.BIG_ENDIAN
            : ByteOrder.LITTLE_ENDIAN;
    Expect.thrown(
        "D3",
        IllegalArgumentException.class,
        "a buffer of the other byte order",
        () -> CommData.of(ByteBuffer.allocate(8).order(other).asFloatBuffer()));
    Expect.thrown(
        "D3",
        IllegalArgumentException.class,
        "7 bytes as FLOAT32",
        () -> CommData.of(DataType.FLOAT32, MemorySegment.ofArray(new byte[7])));
    for (long count : new long[] {-1, Long.MAX_VALUE, Long.MAX_VALUE / 2, 1L << 61}) {
      Expect.thrown(
          "D9",
          IllegalArgumentException.class,
          count + " FLOAT64",
          () -> DataType.FLOAT64.bytes(count));
    }
    Expect.thrown(
        "D9",
        IllegalArgumentException.class,
        "a partition beyond 64 bits",
        () ->
            org.comm4j.api.Partition.of(
                new long[] {Long.MAX_VALUE, 2}, new long[] {0, Long.MAX_VALUE}));
    LiveRank.works("D2", r.comm());
  }

  private static void type(CommData data, DataType type) {
    Expect.equal("D3", "type", data.type(), type);
  }

  @Rule({"D7", "D8", "A3"})
  static void memory_confinedOrClosed_isRefusedWhereItMustBe(LiveRank r) throws Exception {
    Communicator comm = r.comm();
    try (Arena arena = Arena.ofConfined()) {
      CommData mine = CommData.of(DataType.INT64, arena.allocate(8, 8));
      comm.allReduce(mine, ReduceOp.SUM);
      var refused =
          Expect.thrown(
              "D7",
              IllegalArgumentException.class,
              "an asynchronous call on confined memory",
              () -> comm.start(new Collective.AllReduce(mine, mine, ReduceOp.SUM)));
      Expect.says("A2", refused, "confined", "expected");
      var prepared = comm.prepare(new Collective.AllReduce(mine, mine, ReduceOp.SUM));
      Expect.fine("D7", "a prepared call that waits", prepared::run);
      Expect.thrown(
          "D7", IllegalArgumentException.class, "a prepared call that is started", prepared::start);
      // somebody else's
      var theirs = new Throwable[1];
      Thread other =
          Thread.ofPlatform()
              .start(() -> {
                try {
                  comm.allReduce(mine, ReduceOp.SUM);
                } catch (Throwable e) {
                  theirs[0] = e;
                }
              });
      other.join(Expect.SOON);
      Expect.that(
          "D8",
          theirs[0] instanceof IllegalArgumentException,
          "memory of another thread: %s",
          theirs[0]);
    }
    Arena closed = Arena.ofShared();
    CommData gone = CommData.of(DataType.INT64, closed.allocate(8, 8));
    closed.close();
    Expect.thrown(
        "D8",
        IllegalArgumentException.class,
        "a call on closed memory",
        () -> comm.allReduce(gone, ReduceOp.SUM));
    Expect.thrown(
        "D8",
        IllegalArgumentException.class,
        "an asynchronous call on closed memory",
        () -> comm.start(new Collective.Broadcast(gone, 0)));
    LiveRank.works("A3", comm);
  }

  /// Rank 1 closes what an operation in flight will need.
  @Rule({"D17", "G9", "F1"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void memory_closedInFlight_breaksTheCommunicator(LiveRank r) throws Exception {
    Operation peers = new PointToPoint.Send(elements(), 1, 1);
    for (boolean waits : new boolean[] {false, true}) {
      closedInFlight(r, waits, data -> new PointToPoint.Receive(data, 0, 1), peers, 0);
    }
    Operation receive = new PointToPoint.Receive(elements(), 1, 1);
    for (boolean waits : new boolean[] {false, true}) {
      closedInFlight(r, waits, data -> new PointToPoint.Send(data, 0, 1), receive, 0);
    }
    for (boolean waits : new boolean[] {false, true}) {
      closedInFlight(
          r,
          waits,
          data -> new Collective.Broadcast(data, 0),
          new Collective.Broadcast(elements(), 0),
          r.rank());
      closedInFlight(
          r,
          waits,
          data -> new Collective.AllReduce(elements(), data, ReduceOp.SUM),
          new Collective.AllReduce(elements(), elements(), ReduceOp.SUM),
          r.rank());
    }
  }

  /// The last rank closes one side of a message to itself, and then calls the other one.
  @Rule({"D17", "P11"})
  @Needs(capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void memory_closedOfAMessageToMyself_breaksTheCommunicator(LiveRank r) throws Exception {
    int owner = r.size() - 1;
    Function<CommData, Operation> send = data -> new PointToPoint.Send(data, owner, 1);
    Function<CommData, Operation> receive = data -> new PointToPoint.Receive(data, owner, 1);
    for (boolean sends : new boolean[] {false, true}) {
      Communicator comm = r.comm().duplicate();
      AbortedException reason;
      if (r.rank() == owner) {
        Expect.Action await = begunAndClosed(comm, false, sends ? send : receive);
        Operation other = (sends ? receive : send).apply(elements());
        reason = aborted(() -> comm.run(other));
        aborted(await);
      } else {
        reason = aborted(() -> Mismatches.callSoon(comm));
      }
      Expect.equal("D17", "whose memory it was", reason.rank(), owner);
      Expect.says("D17", reason, "rank " + owner, "was closed while");
      Mismatches.staysBroken(comm, reason);
      comm.close();
      LiveRank.works("G9", r.comm());
    }
  }

  private static CommData elements() {
    return CommData.of(new long[IN_FLIGHT]);
  }

  /// @param waits whether rank 1's call is a blocking one, and another thread closes the memory
  /// @param mine on rank 1
  /// @param theirs on all others, or on one
  /// @param caller this rank, or the only one that calls it
  private static void closedInFlight(
      LiveRank r, boolean waits, Function<CommData, Operation> mine, Operation theirs, int caller)
      throws Exception {
    for (int beginning = 1; ; beginning++) {
      Communicator comm = r.comm().duplicate();
      AbortedException reason =
          closedOnce(r, comm, waits, mine, r.rank() == caller ? theirs : null);
      Mismatches.staysBroken(comm, reason);
      comm.close();
      LiveRank.works("G9", r.comm());
      if (beginning == MOST_BEGINNINGS || !Expect.text(reason).contains(TOO_EARLY)) {
        Expect.equal("D17", "whose memory it was", reason.rank(), 1);
        Expect.says("D17", reason, "rank 1", "was closed while");
        return;
      }
    }
  }

  /// @param theirs what this rank calls, unless it is rank 1; null: nothing
  /// @return why the communicator is broken; with [#TOO_EARLY] where rank 1's memory was closed
  ///   before its call had looked at it, so that nothing is to be seen
  private static AbortedException closedOnce(
      LiveRank r,
      Communicator comm,
      boolean waits,
      Function<CommData, Operation> mine,
      @Nullable Operation theirs)
      throws Exception {
    if (r.rank() == 1) {
      Expect.Action await = begunAndClosed(comm, waits, mine);
      r.comm().barrier();
      return aborted(() -> {
        try {
          await.run();
        } catch (IllegalArgumentException e) {
          if (!waits) { // start() had looked at it
            throw e;
          }
          // another beginning could end before its memory is closed: the others are in theirs now
          comm.abort(TOO_EARLY + ": " + e.getMessage());
          comm.barrier();
        }
      });
    }
    r.comm().barrier();
    return aborted(() -> {
      if (theirs != null) {
        comm.run(theirs);
      }
      Mismatches.callSoon(comm);
    });
  }

  /// Begins a call and closes its memory.
  ///
  /// @return waits for the call, and throws what it throws
  private static Expect.Action begunAndClosed(
      Communicator comm, boolean waits, Function<CommData, Operation> mine) throws Exception {
    Arena arena = Arena.ofShared();
    MemorySegment memory = arena.allocate(DataType.INT64.bytes(IN_FLIGHT), 8);
    Operation operation = mine.apply(CommData.of(DataType.INT64, memory));
    Expect.Action await = waits ? runElsewhere(comm, operation) : comm.start(operation)::await;
    Expect.eventually("D17", "the memory is closed", () -> isClosed(arena));
    return await;
  }

  private static AbortedException aborted(Expect.Action call) {
    return Expect.thrown("D17", AbortedException.class, "a call whose memory was closed", call);
  }

  /// Makes a blocking call on another thread.
  ///
  /// @return waits for it, and throws what it throws
  private static Expect.Action runElsewhere(Communicator comm, Operation operation) {
    CompletableFuture<Void> end =
        ThreadChecks.async(
            Thread.ofPlatform(), () -> ThreadChecks.insist(() -> comm.run(operation)));
    Expect.eventually("D17", "the other thread is in its call", () -> isInUse(comm));
    return () -> {
      try {
        end.get(Expect.SOON.toSeconds(), TimeUnit.SECONDS);
      } catch (ExecutionException e) {
        throw e.getCause() instanceof Exception cause ? cause : e;
      }
    };
  }

  private static boolean isInUse(Communicator comm) {
    try {
      comm.topology();
      return false;
    } catch (ConcurrentUseException e) {
      return true;
    }
  }

  /// Closes it, unless some code outside of Java is in it right now.
  private static boolean isClosed(Arena arena) {
    try {
      arena.close();
      return true;
    } catch (IllegalStateException e) {
      return false;
    }
  }

  @Rule({"D10", "D6", "D16"})
  static void allocate_anyTypeAndCount_isZeroedAndLocal(LiveRank r) {
    Communicator comm = r.comm();
    for (DataType type :
        List.of(DataType.FLOAT64, DataType.BFLOAT16, DataType.INT8, DataType.INT32_PAIR)) {
      // ranks allocate different numbers of buffers, so it can't be a collective
      for (int count = 0; count <= 3 + r.rank(); count++) {
        try (CommBuffer buffer = comm.allocate(type, count)) {
          Expect.equal("D10", "type", buffer.data().type(), type);
          Expect.equal("D10", "count", buffer.data().count(), (long) count);
          byte[] bytes = new byte[count * type.bytes()];
          Arrays.fill(bytes, (byte) -1);
          HostData copy = CommData.of(type, MemorySegment.ofArray(bytes));
          buffer.read(0, copy);
          Expect.that(
              "D10",
              Arrays.equals(bytes, new byte[bytes.length]),
              "%s × %d is not zeroed",
              type,
              count);
          Arrays.fill(bytes, (byte) -1);
          buffer.write(0, copy); // the next one must be zeroed all the same
        }
      }
    }
    try (CommBuffer buffer = comm.allocate(DataType.INT64, 1000)) {
      long[] values = new long[1000];
      for (int round = 1; round <= 20; round++) {
        int factor = round;
        Arrays.setAll(values, i -> (long) factor * i);
        buffer.write(0, CommData.of(values));
        comm.allReduce(buffer.data(), ReduceOp.SUM);
        buffer.read(0, CommData.of(values));
        for (int i = 0; i < values.length; i++) {
          Expect.equal("D6", "element " + i, values[i], (long) round * i * r.size());
        }
      }
    }
  }

  /// Parts, and what does not fit.
  @Rule({"D16", "D12", "D8"})
  static void buffer_writtenAndRead_hasTheElements(LiveRank r) throws Exception {
    CommBuffer buffer = r.comm().allocate(DataType.INT32, 10);
    buffer.write(3, CommData.of(1, 2, 3));
    buffer.write(10, CommData.of(new int[0]));
    int[] all = new int[10];
    buffer.read(0, CommData.of(all));
    Expect.that(
        "D16",
        Arrays.equals(all, new int[] {0, 0, 0, 1, 2, 3, 0, 0, 0, 0}),
        "%s",
        Arrays.toString(all));
    int[] part = new int[2];
    buffer.read(4, CommData.of(part));
    Expect.that("D16", Arrays.equals(part, new int[] {2, 3}), "%s", Arrays.toString(part));
    for (Expect.Action wrong :
        List.<Expect.Action>of(
            () -> buffer.write(8, CommData.of(1, 2, 3)),
            () -> buffer.read(-1, CommData.of(1)),
            () -> buffer.read(11, CommData.of(new int[0])),
            () -> buffer.write(0, CommData.of(1L)),
            () -> buffer.read(0, CommData.of(1f)))) {
      Expect.thrown("D16", IllegalArgumentException.class, "a part that is none", wrong);
    }
    HostData readOnly = CommData.of(IntBuffer.wrap(part).asReadOnlyBuffer());
    Expect.says(
        "D16",
        Expect.thrown(
            "D16", IllegalArgumentException.class, "read()", () -> buffer.read(0, readOnly)),
        "target: " + readOnly,
        "read-only");
    copiesUsableMemory("source", DataType.INT32, source -> buffer.write(0, source));
    copiesUsableMemory("target", DataType.INT32, target -> buffer.read(0, target));
    buffer.close();
    Expect.thrown(
        "D12", IllegalStateException.class, "write()", () -> buffer.write(0, CommData.of(1)));
    Expect.thrown(
        "D12", IllegalStateException.class, "read()", () -> buffer.read(0, CommData.of(1)));
  }

  /// That what copies to or from memory of the host refuses what is closed or another thread's.
  ///
  /// @param name what the copy calls that memory
  /// @param type of which it wants some elements
  static void copiesUsableMemory(String name, DataType type, Consumer<HostData> copy)
      throws InterruptedException {
    Arena closed = Arena.ofShared();
    HostData gone = CommData.of(type, closed.allocate(8, 8));
    closed.close();
    isRefused(name, copy, gone, "closed");
    try (Arena arena = Arena.ofConfined()) {
      HostData mine = CommData.of(type, arena.allocate(8, 8));
      ThreadChecks.join(
          "D8",
          ThreadChecks.async(
              Thread.ofPlatform(), () -> isRefused(name, copy, mine, "another thread")));
    }
  }

  private static void isRefused(
      String name, Consumer<HostData> copy, HostData memory, String reason) {
    var refused =
        Expect.thrown(
            "D8",
            IllegalArgumentException.class,
            "a copy to or from such memory",
            () -> copy.accept(memory));
    Expect.says("D8", refused, name + ": " + memory, reason);
  }

  @Rule({"D11", "D12"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void buffer_closedInUse_isRefusedAndLaterGone(LiveRank r) {
    Communicator comm = r.comm();
    CommBuffer buffer = comm.allocate(DataType.INT32, 10);
    CommData view = buffer.data();
    Request receive = comm.start(new PointToPoint.Receive(view, r.rank(), 1));
    var refused =
        Expect.thrown("D11", IllegalStateException.class, "close() in use", buffer::close);
    Expect.says("A2", refused, "in flight");
    comm.send(CommData.of(new int[10]), r.rank(), 1);
    receive.await();
    Expect.fine("D11", "close()", buffer::close);
    Expect.fine("D11", "closing twice", buffer::close);
    Expect.thrown("D12", IllegalStateException.class, "data() after close()", buffer::data);
    Expect.thrown("D12", IllegalStateException.class, "hostData()", buffer::hostData);
    try (CommBuffer _ = comm.allocate(DataType.INT32, 10)) { // it may lie where that one was
      Expect.thrown(
          "D12",
          IllegalArgumentException.class,
          "a call on what was viewed",
          () -> comm.broadcast(view, 0));
    }
    if (view instanceof HostData host) {
      Expect.thrown(
          "D12",
          IllegalStateException.class,
          "reading what was viewed",
          () -> host.segment().get(ValueLayout.JAVA_BYTE, 0));
    }
    LiveRank.works("A3", comm);
  }

  @Rule("D12")
  @Needs(capabilities = Capability.SPLIT)
  static void buffer_communicatorClosed_isGone(LiveRank r) {
    for (boolean isWorld : new boolean[] {false, true}) {
      Communicator comm = isWorld ? r.comm() : r.comm().duplicate();
      CommBuffer buffer = comm.allocate(DataType.INT32, 10);
      CommData view = buffer.data();
      comm.barrier();
      comm.close();
      Expect.thrown(
          "D12", IllegalStateException.class, "data() after the communicator", buffer::data);
      if (view instanceof HostData host) {
        Expect.thrown(
            "D12",
            RuntimeException.class,
            "reading what was viewed",
            () -> host.segment().get(ValueLayout.JAVA_BYTE, 0));
      }
      Expect.fine("D11", "closing it late", buffer::close);
    }
  }

  @Rule({"D13", "A3"})
  static void allocate_noRoom_saysSo(LiveRank r) {
    Communicator comm = r.comm();
    for (long bytes : new long[] {1L << 60, Long.MAX_VALUE}) {
      var thrown =
          Expect.thrown(
              "D13",
              CommException.class,
              "allocating " + bytes + " bytes",
              () -> comm.allocate(DataType.INT8, bytes));
      Expect.says("D13", thrown, Long.toString(bytes));
      String message = String.valueOf(thrown.getMessage());
      Expect.that("D13", !message.contains("null"), "its message has no reason: %s", message);
      Expect.that("D13", comm.failure().isEmpty(), "it broke the communicator");
    }
    LiveRank.works("D13", comm);
  }

  @Rule("D14")
  static void allocate_closedOnes_areUsedAgain(LiveRank r) {
    Communicator comm = r.comm();
    int step = r.rank() == 0 ? 1 : 10; // one rank's memory shows it: to touch so much takes long
    for (int round = 0; round < 100; round += step) {
      long bytes = 8_000_000 + 40_000L * round; // together more than a window has
      try (CommBuffer buffer = comm.allocate(DataType.INT8, bytes)) {
        buffer.write(bytes - 1, CommData.of((byte) 1));
        if (round % 10 == 0) {
          comm.broadcast(buffer.data().slice(0, 100_000), round % r.size());
        }
      }
    }
    LiveRank.works("D14", comm);
  }

  /// The collective ends with the communicator, and for the others too.
  @Rule({"D14", "L3"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void allocate_communicatorsClosedWithCallsInFlight_roomIsUsedAgain(LiveRank r) {
    for (int round = 0; round < 4; round++) {
      boolean inCollective = round % 2 == 0;
      Communicator owner = r.comm().duplicate();
      CommBuffer buffer = owner.allocate(DataType.INT8, 3_000_000);
      owner.start(new PointToPoint.Receive(buffer.data(), r.rank(), 1));
      if (inCollective && r.rank() == 0) {
        CommBuffer all = owner.allocate(DataType.INT8, 1000L * r.size());
        owner.start(new Collective.AllGather(buffer.data().slice(0, 1000), all.data()));
      }
      r.comm().barrier();
      owner.close();
      r.comm().barrier();
    }
    LiveRank.works("D14", r.comm());
  }

  @Rule({"D15", "D14", "D12"})
  @Needs(ranks = 2, capabilities = Capability.SPLIT)
  static void buffer_communicatorClosedInUse_staysForTheOther(LiveRank r) {
    int count = 700_000;
    int[] all = new int[count * r.size()];
    CommBuffer output = r.comm().allocate(DataType.INT32, all.length);
    for (int round = 0; round < 5; round++) {
      Communicator owner = r.comm().duplicate();
      CommBuffer buffer = owner.allocate(DataType.INT32, count);
      CommData data = buffer.data();
      int[] mine = new int[count];
      Arrays.fill(mine, 10 * round + r.rank());
      buffer.write(0, CommData.of(mine));
      try (Communicator user = r.comm().duplicate()) {
        Request first = null;
        if (r.rank() == 0) {
          first = user.start(new Collective.AllGather(data, output.data()));
          owner.close();
          Expect.thrown("D12", IllegalStateException.class, "data() after it", buffer::data);
          r.comm().allocate(DataType.INT32, count).close(); // zeroed, not where the other one is
        }
        r.comm().barrier();
        if (first == null) {
          user.allGather(data, output.data());
          owner.close();
        } else {
          Expect.fine("D15", "a call that began before the close", first::await);
        }
      }
      output.read(0, CommData.of(all));
      int tens = 10 * round;
      int[] expected = new int[all.length];
      Arrays.setAll(expected, i -> tens + i / count);
      Expect.equal("D15", "the first wrong element", Arrays.mismatch(all, expected), -1);
    }
    LiveRank.works("D14", r.comm());
  }
}
