package org.comm4j.backend.mpi;

import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.comm4j.api.BackendException;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.JoinException;
import org.comm4j.api.Partition;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.UnsupportedException;
import org.comm4j.api.spi.Pending;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.tck.LiveReport;
import org.comm4j.tck.LiveVerification;

/// A rank of an [MpiTestJob], in a process of its own.
///
///     MpiRank contract <file> <seed> <checks> | open | arrays <collector> | large | local | regions | regions-apart | leave | loop <folder> | guest | guest-single | impatient | meet-late <folder> <initialised before> | slow-end | survive | <what RankInTrouble does>
///
/// `contract` checks those rules of the contract that match the expression; rank 0 writes the rows to the file, fields separated
/// by tabs. `open` says who it is. `arrays` communicates arrays while this collector moves objects. `large` communicates more than an int can count. `local` says who it is too, and looks at its host. `regions` opens many and closes them while others stay open. `regions-apart` does so on communicators that it closes, and on those of launches before. `leave` lets rank 2 leave after its part of a sum to which rank 1 comes late, and the others go on to a barrier. `loop` writes its pid to the folder and communicates until it is
/// ended. `guest` has initialised MPI itself, and finalises it; `guest-single` without threads.
/// `slow-end` lets rank 1 come out of the barrier late that all go through before they finalise.
/// `meet-late` lets rank 0 wait for rank 1, which does not come before rank 0 has given up, after
/// which both meet twice.
/// `impatient` takes a receive back and does not wait for the library's answer. `survive` kills rank
/// 1; the others go on with the library's fault tolerance alone.
final class MpiRank {
  static final String ARRAYS = "arrays";

  private static final int REGION_BYTES = 16 << 20;
  private static final byte[] ONES = new byte[REGION_BYTES];
  private static final int WARM_UP = 100;
  private static final long SLOW_NS = 50_000_000;
  private static final Duration HASTY = Duration.ofMillis(500);
  private static final long NOTICED_NS = 2_000_000_000L;
  static final long LATE_NS = 3_500_000_000L; // longer than what can't end may go on

  static {
    Arrays.fill(ONES, (byte) 1);
  }

  private MpiRank() {}

  public static void main(String[] args) throws IOException {
    CommConfig config = CommConfig.fromEnvironment(System.getenv());
    switch (args[0]) {
      case "guest", "guest-single" -> guest(config, args[0].equals("guest"));
      case "impatient" -> impatient(config);
      case "meet-late" -> meetLate(config, Path.of(args[1]), Boolean.parseBoolean(args[2]));
      case "regions-apart" -> regionsApart(config);
      case "slow-end" -> slowEnd(config);
      case "survive" -> survive(config);
      default -> RankInTrouble.run(config, args);
    }
  }

  /// Does what needs a communicator of all ranks.
  static void run(CommConfig config, String... args) throws IOException {
    try (Communicator communicator = Communicators.open(config)) {
      switch (args[0]) {
        case "contract" -> {
          System.setProperty("comm4j.check", args[3]);
          contract(communicator, config, Path.of(args[1]), Long.parseLong(args[2]));
        }
        case "open" -> open(communicator);
        case ARRAYS -> MovingArrays.run(communicator);
        case "large" -> large(communicator);
        case "local" -> local(communicator);
        case "regions" -> regions(communicator);
        case "leave" -> leave(communicator);
        case "loop" -> loop(communicator, Path.of(args[1]));
        default -> throw new IllegalArgumentException(args[0]);
      }
    } catch (CommException e) {
      System.out.println("failed: " + e);
      throw e;
    }
  }

  private static void contract(Communicator communicator, CommConfig config, Path file, long seed)
      throws IOException {
    var log = new PrintWriter(System.out, true, StandardCharsets.UTF_8);
    LiveReport report = LiveVerification.run(communicator, config, seed, log);
    if (communicator.rank() == 0) {
      List<String> rows =
          report.rows().stream()
              .map(row -> "%s\t%s\t%s".formatted(row.rule(), row.status(), row.detail()))
              .toList();
      Files.write(file, rows);
    }
  }

  private static void open(Communicator communicator) {
    long sum = communicator.allReduce(1L, ReduceOp.SUM);
    System.out.println("counts of %d bits".formatted(Functions.hasLargeCounts() ? 64 : 32));
    System.out.println(
        "rank %d of %d on %s, sum %d"
            .formatted(communicator.rank(), communicator.size(), communicator.backend(), sum));
    try (CommBuffer buffer = communicator.allocate(DataType.FLOAT32, 10_000)) {
      long address = ((HostData) buffer.data()).segment().address();
      System.out.println("a buffer at byte %d of a page".formatted(address % 4096));
    }
  }

  /// A program that uses MPI beside comm4j.
  private static void guest(CommConfig config, boolean withThreads) throws IOException {
    Functions.load(MpiLibraries.here().choose(config).orElseThrow(), ThreadLevel.of(config));
    Constants constants = Functions.constants();
    try (Arena arena = Arena.ofConfined();
        Signals _ = Signals.keep()) {
      MemorySegment provided = arena.allocate(ValueLayout.JAVA_INT);
      int level = withThreads ? constants.threadMultiple : constants.threadSerialized;
      Errors.check(
          Mpi.initThread(MemorySegment.NULL, MemorySegment.NULL, level, provided),
          "MPI_Init_thread");
    }
    try {
      run(config, "open");
      run(config, "open"); // it is still there
    } catch (CommException _) {
      // it was printed
    }
    Errors.check(Mpi.finish(), "MPI_Finalize");
    System.out.println("finalised by its own program");
    try {
      run(config, "open");
    } catch (CommException _) {
      // it was printed
    }
  }

  private static void impatient(CommConfig config) {
    MpiLibrary library = MpiLibraries.here().choose(config).orElseThrow();
    try (var sessions = InMemorySessions.group(1)) {
      var communicator = (MpiCommunicator) World.open(library, sessions.session(0), config);
      communicator.group().giveBack(new Requests(1, 0, 0));
      Pending receive =
          communicator.submit(new PointToPoint.Receive(CommData.of(new int[1]), 0, 1));
      System.out.println("taken back: " + receive.cancel());
      try {
        receive.await(Long.MAX_VALUE);
      } catch (CancellationException e) {
        System.out.println("awaited: " + e.getMessage());
      }
      communicator.submit(new PointToPoint.Send(CommData.of(7), 0, 1));
      int[] next = new int[1];
      communicator.run(new PointToPoint.Receive(CommData.of(next), 0, 1));
      System.out.println("the next one got " + next[0]);
      contradicted(communicator);
      communicator.close();
    }
  }

  /// Takes a receive back that was to be taken back already, for a message of another type.
  private static void contradicted(MpiCommunicator communicator) {
    communicator.submit(new PointToPoint.Send(CommData.of(8.0), 0, 2));
    MpiGroup group = communicator.group();
    group.giveBack(new Requests(1, 0, 0));
    MessageCall receive =
        (MessageCall) communicator.submit(new PointToPoint.Receive(CommData.of(new int[1]), 0, 2));
    group.lock();
    try {
      System.out.println("contradicted at once: " + receive.contradiction());
      System.out.println("taken back then: " + receive.cancel());
    } finally {
      group.unlock();
    }
    try {
      receive.await(Long.MAX_VALUE);
    } catch (CancellationException e) {
      System.out.println("awaited then: " + e.getMessage());
    }
    double[] other = new double[1];
    communicator.run(new PointToPoint.Receive(CommData.of(other), 0, 2));
    System.out.println("the other one got " + other[0]);
  }

  private static void local(Communicator communicator) {
    open(communicator);
    try (Communicator host = communicator.splitLocal()) {
      System.out.println(
          "%d ranks on this host, sum %d".formatted(host.size(), host.allReduce(1L, ReduceOp.SUM)));
    }
    boolean isShared = communicator.capabilities().supports(Capability.SHARED_MEMORY);
    System.out.println("shared memory: " + isShared);
    try (var region = communicator.sharedMemory().createRegion(DataType.INT8, 8)) {
      System.out.println("a region of " + region.type());
    } catch (UnsupportedException e) {
      System.out.println("unsupported: " + e.getMessage());
    }
    System.out.println("goes on, sum " + communicator.allReduce(1L, ReduceOp.SUM));
  }

  /// Prints how many of these regions the process still has in its memory.
  private static void regions(Communicator communicator) throws IOException {
    SharedMemoryProvider shared = communicator.sharedMemory();
    List<SharedRegion<HostData>> open = new ArrayList<>();
    for (int i = 0; i < 70; i++) {
      open.add(shared.createRegion(DataType.INT8, 1));
    }
    long before = residentBytes();
    long bytes = 16L << 20;
    for (int round = 0; round < 10; round++) {
      try (var region = shared.createRegion(DataType.INT8, bytes)) {
        if (shared.isLeader()) {
          region.populate(data -> data.segment().fill((byte) 1));
        }
        region.fence();
      }
    }
    try (var last = shared.createRegion(DataType.INT8, 1)) {
      last.fence(); // all have given the others back
      System.out.println(
          "regions left: " + Math.round((residentBytes() - before) / (double) bytes));
    }
    open.forEach(SharedRegion::close);
  }

  /// Prints how many regions of closed communicators the process still has in its memory.
  private static void regionsApart(CommConfig config) throws IOException {
    try (Communicator communicator = Communicators.open(config)) {
      long before = residentBytes();
      for (int round = 0; round < 6; round++) {
        Communicator apart = communicator.duplicate();
        SharedRegion<HostData> region = region(apart.sharedMemory());
        if (round % 2 == 0) {
          region.close();
          apart.close();
        } else { // a region outlives its communicator
          apart.close();
          region.close();
        }
      }
      communicator.duplicate().close(); // all have given the others back
      print("of closed communicators", before);
    }
    long before;
    try (Communicator communicator = Communicators.open(config)) {
      before = residentBytes();
      region(communicator.sharedMemory()).close();
    }
    try (Communicator communicator = Communicators.open(config)) {
      communicator.barrier();
      print("of the launch before", before);
      SharedRegion<HostData> open;
      try (Communicator apart = communicator.duplicate()) {
        before = residentBytes();
        open = region(apart.sharedMemory());
      }
      for (int round = 0; round < 3; round++) {
        region(communicator.sharedMemory()).close();
      }
      if (communicator.rank() == 0) {
        open.close();
      }
      communicator.splitLocal().close();
      print("that not all have closed", before);
      open.close();
    }
  }

  private static SharedRegion<HostData> region(SharedMemoryProvider shared) {
    SharedRegion<HostData> region = shared.createRegion(DataType.INT8, REGION_BYTES);
    if (shared.isLeader()) {
      region.populate(data -> data.segment().fill((byte) 1));
    }
    region.fence();
    if (region.data().segment().mismatch(MemorySegment.ofArray(ONES)) != -1) {
      throw new AssertionError("not what the leader has written");
    }
    return region;
  }

  private static void print(String which, long before) throws IOException {
    System.out.println(
        "regions left %s: %d"
            .formatted(which, Math.round((residentBytes() - before) / (double) REGION_BYTES)));
  }

  /// What the process has of files, and of memory that it shares.
  private static long residentBytes() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(line -> line.startsWith("RssFile:") || line.startsWith("RssShmem:"))
        .mapToLong(line -> 1024 * Long.parseLong(line.replaceAll("[^0-9]", "")))
        .sum();
  }

  private static void large(Communicator communicator) {
    long count = (1L << 31) + 7;
    long[] places = {0, count / 2, Integer.MAX_VALUE, Integer.MAX_VALUE + 1L, count - 1};
    try (CommBuffer buffer = communicator.allocate(DataType.INT8, count)) {
      MemorySegment memory = ((HostData) buffer.data()).segment();
      for (int i = 0; i < places.length; i++) {
        memory.set(ValueLayout.JAVA_BYTE, places[i], (byte) (10 * i + communicator.rank()));
      }
      communicator.allReduce(buffer.data(), ReduceOp.MAX);
      print("reduced", memory, places);
      if (communicator.rank() == 1) {
        memory.fill((byte) 1);
      }
      communicator.broadcast(buffer.data(), 1);
      print("broadcast", memory, places);
      Partition parts = Partition.of(count - 5, 5);
      int rank = communicator.rank();
      CommData own = buffer.data().slice(parts.displacement(rank), parts.count(rank));
      ((HostData) own).segment().fill((byte) (2 + rank));
      communicator.run(new Collective.AllGatherV(own, buffer.data(), parts));
      print("gathered", memory, places);
    }
  }

  private static void print(String what, MemorySegment memory, long... places) {
    String values =
        LongStream.of(places)
            .mapToObj(place -> Byte.toString(memory.get(ValueLayout.JAVA_BYTE, place)))
            .collect(Collectors.joining(" "));
    System.out.println(what + ": " + values);
  }

  private static void meetLate(CommConfig config, Path folder, boolean isInitialised)
      throws IOException {
    MpiLibrary library = MpiLibraries.here().choose(config).orElseThrow();
    if (isInitialised) {
      Library.initialise(library, ThreadLevel.of(config), () -> {});
    }
    Path over = folder.resolve("over");
    if (config.rank().orElseThrow() == 0) {
      Thread.currentThread().interrupt();
      try {
        World.meet(library, config);
      } catch (InterruptedCallException e) {
        System.out.println("interrupted: " + Thread.interrupted());
      }
      try {
        World.meet(library, config.toBuilder().joinTimeout(HASTY).build());
      } catch (JoinException e) {
        System.out.println("failed: " + e.reason() + " " + e.getMessage());
      }
      Files.createFile(over);
    }
    while (!Files.exists(over)) {
      LockSupport.parkNanos(1_000_000);
    }
    System.out.println("met as " + World.meet(library, config).session().orElseThrow());
    boolean isNamed = config.rank().orElseThrow() == 0;
    CommConfig again = isNamed ? config : config.toBuilder().session("another").build();
    System.out.println("met again as " + World.meet(library, again).session().orElseThrow());
  }

  /// What [Library] does when the JVM ends, but that rank 1 goes on to move messages along for some
  /// time, as in a barrier that the others have left while it had no processor.
  private static void slowEnd(CommConfig config) throws IOException {
    Library.quietNs = 2_000_000_000; // of rank 0, however late rank 1 is
    run(config, "open");
    if (config.rank().orElseThrow() != 1) {
      return;
    }
    long world = Functions.constants().commWorld;
    Requests come = new Requests(1);
    Errors.check(MpiCollectives.startBarrier(world, come.next()), "MPI_Ibarrier");
    while (!come.test()) {
      LockSupport.parkNanos(1_000_000);
    }
    Errors.check(MpiCollectives.barrier(world), "MPI_Barrier");
    long endNs = System.nanoTime() + SLOW_NS;
    while (System.nanoTime() - endNs < 0) {
      var _ = Probe.of(world, 0, 1);
    }
    Errors.check(Mpi.finish(), "MPI_Finalize");
    System.out.println("finalised, though late");
  }

  private static void survive(CommConfig config) throws IOException {
    Thread.ofPlatform()
        .daemon()
        .start(() -> { // who waits for the dead in the library
          LockSupport.parkNanos(10 * NOTICED_NS);
          Runtime.getRuntime().halt(1);
        });
    Library.initialise(
        MpiLibraries.here().choose(config).orElseThrow(), ThreadLevel.MULTIPLE, () -> {});
    long world = Functions.constants().commWorld;
    Requests request = new Requests(1);
    Errors.check(MpiCollectives.barrier(world), "MPI_Barrier");
    if (config.rank().orElseThrow() == 1) {
      new ProcessBuilder("kill", "-KILL", Long.toString(ProcessHandle.current().pid())).start();
      LockSupport.park();
    }
    try {
      Errors.check(MpiCollectives.startBarrier(world, request.next()), "MPI_Ibarrier");
      System.out.println(endsWithin(request, NOTICED_NS) ? "the barrier ended" : "nobody noticed");
    } catch (BackendException e) {
      System.out.println("noticed: " + e.getMessage());
    }
    MethodHandle revoke = Functions.find("MPIX_Comm_revoke", "H");
    MethodHandle shrink = Functions.find("MPIX_Comm_shrink", "Hp");
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment made = arena.allocate(ValueLayout.JAVA_LONG);
      Errors.check((int) revoke.invokeExact(world), "MPIX_Comm_revoke");
      System.out.println("revoked");
      Errors.check((int) shrink.invokeExact(world, made), "MPIX_Comm_shrink");
      System.out.println("shrunk");
      request.clear();
      Errors.check(MpiCollectives.startBarrier(Handles.get(made), request.next()), "MPI_Ibarrier");
      System.out.println(endsWithin(request, NOTICED_NS) ? "survived" : "no barrier of survivors");
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
    Runtime.getRuntime().halt(0); // finalising would wait for the dead
  }

  private static boolean endsWithin(Requests requests, long ns) {
    long endNs = System.nanoTime() + ns;
    while (!requests.test()) {
      if (System.nanoTime() - endNs >= 0) {
        return false;
      }
      Thread.yield();
    }
    return true;
  }

  private static void leave(Communicator communicator) {
    double[] sum = {communicator.rank()};
    if (communicator.rank() == 1) {
      LockSupport.parkNanos(LATE_NS); // it computes
    }
    communicator.reduce(sum, ReduceOp.SUM, 0);
    if (communicator.rank() == 2) {
      throw new IllegalStateException("thrown by the program");
    }
    if (communicator.rank() == 0) {
      System.out.println("the sum without the one that has left: " + sum[0]);
    }
    communicator.barrier();
    System.out.println("a barrier without one");
  }

  private static void loop(Communicator communicator, Path folder) throws IOException {
    float[] data = new float[1000];
    for (int i = 0; ; i++) {
      communicator.allReduce(data, ReduceOp.SUM);
      if (i == WARM_UP) {
        Path part = folder.resolve("part-" + communicator.rank());
        Files.writeString(part, Long.toString(ProcessHandle.current().pid()));
        Path whole = folder.resolve("pid-" + communicator.rank());
        Files.move(part, whole, StandardCopyOption.ATOMIC_MOVE);
      }
    }
  }
}
