package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Phaser;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicators;
import org.comm4j.api.DataType;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Pending;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.CallSignature;
import org.comm4j.core.session.DefaultSessionFactory;
import org.jspecify.annotations.Nullable;

/// What an [MpiRank] does to show how errors look and that the JVM lives on.
///
/// - `abort` lets rank 0 break a communicator while the others wait in the library, after which
///   rank 1 ends long before them.
/// - `close` lets rank 0 close while a thread of its is about to begin a barrier, and another one
///   while it splits it.
/// - `close-both` has two threads give up a job's last two communicators, time and again.
/// - `close-buffer` closes one while a receive into it begins.
/// - `close-receiver` lets rank 1 close while a long message comes.
/// - `closed-sender` lets rank 0 close, as far as rank 1 can see, during a send that this receives,
///   and tells what arrays that has not back.
/// - `differ` has each of two ranks take the other one for a root.
/// - `exit` ends rank 0's JVM with code 7 while a communicator is open.
/// - `half-made <copy or split>` lets rank 0 break a communicator when all have agreed to make
///   another one.
/// - `half-open` lets rank 1 leave while they open, when rank 0 has made its communicator.
/// - `hook` closes a communicator while the JVM ends.
/// - `late` lets rank 1 not come to a barrier.
/// - `late-once` is `late`, after which all open another communicator.
/// - `left-host` lets rank 3 leave, which shares a host with rank 2 as these are told, and this use
///   a region and make one.
/// - `left-sender` lets rank 1 send many messages while rank 0 computes for longer than it may
///   wait, and again before it leaves.
/// - `load <file> <interface>` loads a library that is none.
/// - `no-memory` lets rank 1 have none for a communicator that rank 0 has already.
/// - `pins` lends arrays of bytes, and tells where their elements stand.
/// - `room` makes regions where the leader has little room for them.
/// - `short` lets rank 2 broadcast more than the others expect.
/// - `signals` tells which of the JVM's signals others handle, with a communicator and after it.
/// - `sums` has the library's sums of floats taken for different ones.
/// - `unreceived` leaves a message to a communicator that is closed, and looks for it in others.
/// - `two <file> <file>` opens a communicator by one library and then by the other.
/// - `watched` breaks one in which a call has waited for long.
/// - `wrong-rank` sends to a rank that is not there, past the checks of the API, copies what is no
///   communicator to the library, and opens another one as if its world were lost.
final class RankInTrouble {
  private static final int SIGNALS = 32;
  private static final int ACTION_BYTES = 512;
  private static final int MESSAGES = 21;
  private static final int ROUNDS = 1_000;
  private static final int COPIES = 100;
  private static final long LONG_NS = 600_000_000; // more than a call may wait, or a message take
  private static final long HOOKS_NS = 30_000_000_000L; // by which all of them have begun
  private static final float LARGE = 1e8f; // to which 1 can't be added

  private RankInTrouble() {}

  static void run(CommConfig config, String... args) throws IOException {
    switch (args[0]) {
      case "abort" -> abort(config);
      case "close" -> close(config);
      case "close-both" -> closeBoth(config);
      case "close-buffer" -> closeBuffer(config);
      case "close-receiver" -> closeReceiver(config);
      case "closed-sender" -> closedSender(config);
      case "differ" -> differ(config);
      case "exit" -> exit(config);
      case "half-made" -> halfMade(config, args[1].equals("copy"));
      case "half-open" -> halfOpen(config);
      case "hook" -> hook(config);
      case "late" -> late(config);
      case "late-once" -> lateOnce(config);
      case "left-host" -> leftHost(config);
      case "left-sender" -> leftSender(config);
      case "load" -> load(Path.of(args[1]), Abi.valueOf(args[2]));
      case "no-memory" -> noMemory(config);
      case "pins" -> pins();
      case "room" -> room(config);
      case "short" -> tooShort(config);
      case "signals" -> signals(config);
      case "sums" -> sums(config);
      case "two" -> two(config, args[1], args[2]);
      case "unreceived" -> unreceived(config);
      case "watched" -> watched(config);
      case "wrong-rank" -> wrongRank(config);
      default -> MpiRank.run(config, args);
    }
  }

  private static void abort(CommConfig config) {
    int rank;
    try (var communicator = Communicators.open(config);
        var copy = communicator.duplicate()) {
      rank = communicator.rank();
      if (rank == 0) {
        copy.abort("to see how that ends");
      }
      try {
        copy.start(new Collective.Barrier()).await(); // which may run on a thread of ours
      } catch (CommException e) {
        System.out.println("failed: " + e.getMessage());
      }
      communicator.barrier();
    }
    end(1, rank);
  }

  /// It has said what it wants, but does not make it, and waits until the others are about to.
  private static void halfMade(CommConfig config, boolean isCopy) {
    MpiCommunicator world = open(config);
    MpiCommunicator parent = (MpiCommunicator) world.duplicate();
    Session session = world.group().job().session();
    var purpose = isCopy ? CallSignature.Purpose.DUPLICATE : CallSignature.Purpose.SPLIT;
    int rank = parent.rank();
    try {
      if (rank == 0) {
        var _ = parent.gather(purpose, world.group().job().propose(), 0, 0, 0);
        for (int peer = 1; peer < parent.size(); peer++) {
          var _ = session.get("makes it/" + peer, config.joinTimeout());
        }
        parent.abort(new AbortedException(0, "to see how that ends", null));
      } else {
        MpiCommunicator.Splitter splitter =
            (label, color, members, patience) -> {
              session.put("makes it/" + rank, new byte[0]);
              return parent.splitByColor(label, color, members, patience);
            };
        var made = parent.split(purpose, "made", 0, isCopy ? 0 : -rank, splitter);
        System.out.println("made " + Objects.requireNonNull(made).name());
      }
    } catch (AbortedException e) {
      System.out.println("failed: " + e.getMessage());
    }
    parent.close();
    world.run(new Collective.Barrier());
    world.close();
    end(1, rank);
  }

  /// @param first ends long before the others
  private static void end(int first, int rank) {
    if (rank != first) {
      LockSupport.parkNanos(MpiRank.LATE_NS); // it saves what it has
    }
    System.out.println("rank " + rank + " has done all");
  }

  private static void exit(CommConfig config) {
    var communicator = Communicators.open(config);
    communicator.barrier();
    try {
      if (communicator.rank() != 0) { // else the launcher may tell of the one that it has ended
        long world = Functions.constants().commWorld;
        Errors.check(MpiCollectives.barrier(world), "MPI_Barrier"); // which no watchdog ends
      }
    } finally {
      System.exit(7);
    }
  }

  /// By a hook of the program's own, after that which finalises the library has begun.
  private static void hook(CommConfig config) {
    Library.closingNs = Duration.ofMinutes(1).toNanos(); // however late the hook has its turn
    var communicator = Communicators.open(config);
    Runnable close =
        () -> {
          long endNs = System.nanoTime() + HOOKS_NS;
          while (!isFinaliserWaiting() && System.nanoTime() - endNs < 0) {
            Thread.onSpinWait();
          }
          System.out.println("closed while it is waited for: " + isFinaliserWaiting());
          communicator.close();
        };
    Runtime.getRuntime().addShutdownHook(new Thread(close));
  }

  private static boolean isFinaliserWaiting() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("comm4j-mpi-finalize"))
        .anyMatch(thread -> thread.getState() == Thread.State.TIMED_WAITING);
  }

  /// Rank 1 does what [World#open] does, but for the last step.
  private static void halfOpen(CommConfig config) {
    MpiLibrary library = MpiLibraries.here().choose(config).orElseThrow();
    var session = new DefaultSessionFactory().join(config, List.of(MpiProvider.NAME));
    if (session.rank() == 1) {
      World.initialise(library, config, () -> {});
      var _ = Wait.agree(session, config);
      long world = Comms.duplicate(Functions.constants().commWorld, () -> {});
      long messages = Comms.duplicate(world, () -> {});
      long host = Comms.sharing(world);
      System.out.println("has made all: " + (messages != host));
      session.close();
      return;
    }
    try {
      var communicator = World.open(library, session, config);
      System.out.println("opened " + communicator.name());
    } catch (PeerFailedException e) {
      System.out.println("failed: " + e.getMessage());
    }
    System.out.println("threads left: " + threads());
    session.close();
  }

  /// Those of the backend that live on when they have had time to end.
  private static List<String> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("comm4j-mpi"))
        .filter(thread -> {
          try {
            return !thread.join(Duration.ofSeconds(5));
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
        })
        .map(Thread::getName)
        .toList();
  }

  private static void late(CommConfig config) {
    MpiCommunicator communicator = hasty(open(config), Duration.ofMillis(200));
    while (communicator.rank() == 1) {
      LockSupport.park();
    }
    communicator.run(new Collective.Barrier());
  }

  private static void lateOnce(CommConfig config) {
    MpiCommunicator world = open(config);
    Session session = world.group().job().session();
    MpiCommunicator communicator = hasty(world, Duration.ofMillis(200));
    int rank = world.rank();
    if (rank == 0) {
      try {
        communicator.run(new Collective.Barrier());
      } catch (CollectiveTimeoutException e) {
        System.out.println("failed: " + e.getMessage());
      }
    } else {
      awaitFailure(communicator);
    }
    communicator.close();
    world.close();
    session.close();
    Communicators.open(config).close();
    end(0, rank);
  }

  private static void leftHost(CommConfig config) {
    MpiLibrary library = MpiLibraries.here().choose(config).orElseThrow();
    var session = new DefaultSessionFactory().join(config, List.of(MpiProvider.NAME));
    var communicator = (MpiCommunicator) World.open(library, onTwoHosts(session), config);
    var copy = (MpiCommunicator) communicator.duplicate();
    var region = communicator.sharedMemory().createRegion(DataType.INT8, 8);
    session.barrier("regions", config.joinTimeout()); // the other host's ranks have theirs too
    switch (communicator.rank()) {
      case 2 -> {
        tryOut(region::fence);
        tryOut(() -> copy.sharedMemory().createRegion(DataType.INT8, 8));
      }
      case 3 -> {}
      default -> {
        awaitFailure(communicator);
        awaitFailure(copy);
      }
    }
    copy.close();
    communicator.close();
    session.close();
  }

  /// The library finds few of the messages at a time, and the last one is that which is awaited.
  private static void leftSender(CommConfig config) {
    var session = new DefaultSessionFactory().join(config, List.of(MpiProvider.NAME));
    MpiLibrary library = MpiLibraries.here().choose(config).orElseThrow();
    var world = (MpiCommunicator) World.open(library, session, config);
    Duration timeout = world.rank() == 0 ? Duration.ofMillis(500) : config.timeout();
    MpiCommunicator communicator = hasty(world, timeout);
    if (communicator.rank() == 1) {
      sendMany(communicator);
      session.put("sent", new byte[0]);
      var _ = session.get("received", config.joinTimeout());
      sendMany(communicator);
    } else {
      Pending receive = receiveLast(communicator);
      var _ = session.get("sent", config.joinTimeout());
      compute();
      receive.await(Long.MAX_VALUE);
      System.out.println("has come in time");
      receive = receiveLast(communicator);
      session.put("received", new byte[0]);
      while (session.news().failures().isEmpty()) {
        Thread.onSpinWait();
      }
      System.out.println("failed: " + communicator.failure()); // and so it knows who has left
      compute();
      receive.await(Long.MAX_VALUE);
      System.out.println("has come before its sender left");
    }
    communicator.close();
    world.close();
    session.close();
  }

  private static void sendMany(MpiCommunicator communicator) {
    for (int tag = 0; tag < MESSAGES; tag++) {
      communicator.run(new PointToPoint.Send(CommData.of(tag), 0, tag));
    }
  }

  private static Pending receiveLast(MpiCommunicator communicator) {
    return communicator.submit(new PointToPoint.Receive(CommData.of(new int[1]), 1, MESSAGES - 1));
  }

  private static void compute() {
    long startNs = System.nanoTime();
    while (System.nanoTime() - startNs < LONG_NS) {
      Thread.onSpinWait();
    }
  }

  /// A session in which each two ranks have a host of their own.
  private static Session onTwoHosts(Session session) {
    return (Session)
        Proxy.newProxyInstance(
            Session.class.getClassLoader(),
            new Class<?>[] {Session.class},
            (_, method, arguments) -> {
              try {
                Object answer = method.invoke(session, arguments);
                return answer instanceof Session.Member member ? moved(member) : answer;
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  private static Session.Member moved(Session.Member member) {
    String host = Integer.toString(member.rank() / 2);
    return new Session.Member(
        member.rank(),
        new HostIdentity(host, host),
        member.pid(),
        member.processors(),
        member.backends());
  }

  private static void room(CommConfig config) {
    MpiCommunicator communicator = open(config);
    var free = new ArrayDeque<>(List.of(0L, 1L << 20)); // as if windows were freed meanwhile
    var memory =
        new MpiSharedMemory(
            communicator, () -> communicator.rank() == 0 ? free.removeFirst() : Long.MAX_VALUE);
    var region = memory.createRegion(DataType.INT8, 100);
    System.out.println("a region of " + region.count());
    region.close();
    free.addAll(List.of(99L, 99L));
    try {
      memory.createRegion(DataType.INT8, 100).close();
    } catch (TransportFailedException e) {
      System.out.println("failed: " + e.getMessage());
    }
    System.out.println("broken: " + communicator.failure());
    memory.close();
    communicator.close();
  }

  private static void noMemory(CommConfig config) {
    MpiCommunicator world = open(config);
    MpiCommunicator parent = (MpiCommunicator) world.duplicate();
    try {
      MpiCommunicator child =
          Objects.requireNonNull(
              parent.split(
                  CallSignature.Purpose.SPLIT,
                  "copy",
                  0,
                  0,
                  (_, _, _, patience) -> {
                    long made = Comms.duplicate(parent.group().collectives(), patience);
                    if (parent.rank() == 1) {
                      var _ = Comms.duplicate(made, patience); // as the other rank does
                      throw new OutOfMemoryError("to see how that ends");
                    }
                    return made;
                  }));
      try {
        child.run(new Collective.Barrier());
      } finally {
        child.close();
      }
    } catch (OutOfMemoryError | CommException e) {
      System.out.println("failed: " + e);
    }
    awaitFailure(parent);
    parent.close();
    world.run(new Collective.Barrier());
    world.close();
  }

  private static void tooShort(CommConfig config) {
    MpiCommunicator world = open(config);
    MpiCommunicator communicator = (MpiCommunicator) world.duplicate();
    CommData data = CommData.of(new int[communicator.rank() == 2 ? 100 : 10]);
    try {
      communicator.run(new Collective.Broadcast(data, 2));
      System.out.println("no failure");
    } catch (CommException e) {
      System.out.println("failed: " + e.getMessage());
    }
    communicator.close();
    world.close();
  }

  /// Rank 1 is the first to give up, but begins only when rank 0 has said that it waits.
  private static void differ(CommConfig config) {
    MpiCommunicator world = open(config);
    Duration timeout = world.rank() == 0 ? Duration.ofSeconds(8) : Duration.ofMillis(500);
    MpiCommunicator communicator = hasty(world, timeout);
    if (world.rank() == 1) {
      var _ = world.group().job().session().get("mpi/1/0/0", config.joinTimeout());
    }
    try {
      communicator.run(new Collective.Broadcast(CommData.of(new int[10]), 1 - communicator.rank()));
    } catch (CollectiveTimeoutException e) {
      System.out.println("failed: ranks %s, %s".formatted(e.missing(), e.getMessage()));
    }
    communicator.close();
    world.close();
  }

  private static void tryOut(Runnable call) {
    try {
      call.run();
      System.out.println("no failure");
    } catch (PeerFailedException e) {
      print(e);
    }
  }

  private static void awaitFailure(MpiCommunicator communicator) {
    CommException failure = communicator.failure();
    while (failure == null) {
      Thread.yield();
      failure = communicator.failure();
    }
    if (failure instanceof PeerFailedException e) {
      print(e);
    } else {
      System.out.println("failed: " + failure.getMessage());
    }
  }

  private static void print(PeerFailedException e) {
    System.out.println("failed: ranks %s, %s".formatted(e.ranks(), e.getMessage()));
  }

  private static void load(Path file, Abi abi) {
    var maker = abi == Abi.OPEN_MPI ? MpiLibrary.Maker.OPEN_MPI : MpiLibrary.Maker.MPICH;
    var library = new MpiLibrary(file, abi, maker, "No MPI", "3.1", Set.of());
    for (int i = 0; i < 2; i++) {
      try {
        Library.initialise(library, ThreadLevel.MULTIPLE, () -> {});
      } catch (CommException e) {
        System.out.println("failed: " + e.getMessage());
      }
    }
  }

  private static void pins() {
    var pins = new ArrayPins();
    for (int elementBytes : new int[] {1, 4, 8}) {
      MemorySegment here = pins.here(MemorySegment.ofArray(new byte[1 << 20]), elementBytes);
      System.out.println(
          "elements of %d bytes: %s"
              .formatted(
                  elementBytes,
                  here == null ? "copied" : "lent at a " + here.address() % elementBytes));
      pins.release();
    }
    System.out.println("has not back: " + (ArrayPins.lent() - ArrayPins.takenBack()));
  }

  private static void two(CommConfig config, String first, String second) throws IOException {
    for (String file : List.of(first, second)) {
      try {
        MpiRank.run(config.toBuilder().option(MpiLibraries.OPTION, file).build(), "open");
      } catch (CommException _) {
        // it was printed
      }
    }
  }

  // --- signals ---

  private static void signals(CommConfig config) throws IOException {
    List<String> before = handlers();
    Functions.load(MpiLibraries.here().choose(config).orElseThrow(), ThreadLevel.of(config));
    System.out.println("handled otherwise when loaded: " + changed(before));
    try (var communicator = Communicators.open(config)) {
      communicator.barrier();
      System.out.println("handled otherwise while open: " + changed(before));
      System.out.println("null pointers found: " + nulls());
    }
    System.out.println("handled otherwise when closed: " + changed(before));
  }

  private static List<Integer> changed(List<String> before) {
    List<String> now = handlers();
    return IntStream.range(1, SIGNALS)
        .filter(i -> before.get(i).length() > 1) // the JVM handles it; 0 and 1 are no handlers
        .filter(i -> !now.get(i).equals(before.get(i)))
        .boxed()
        .toList();
  }

  /// The handler of each signal: the first word of the kernel's answer.
  static List<String> handlers() {
    Linker linker = Linker.nativeLinker();
    MethodHandle sigaction =
        linker.downcallHandle(
            linker.defaultLookup().findOrThrow("sigaction"),
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, ADDRESS));
    List<String> handlers = new ArrayList<>();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment action = arena.allocate(ACTION_BYTES, 16);
      for (int signal = 0; signal < SIGNALS; signal++) {
        int code = (int) sigaction.invokeExact(signal, MemorySegment.NULL, action);
        handlers.add(code == 0 ? Long.toHexString(action.get(JAVA_LONG, 0)) : "0");
      }
      return handlers;
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  /// By SIGSEGV, once it is compiled.
  private static int nulls() {
    int found = 0;
    for (int i = 0; i < 20_000; i++) {
      try {
        found += lengthOf(i % 2 == 0 ? null : new int[0]);
      } catch (NullPointerException _) {
        found++;
      }
    }
    return found;
  }

  @SuppressWarnings("NullAway") // that is what it is for
  private static int lengthOf(int @Nullable [] array) {
    return array.length;
  }

  // --- on the communicator itself ---

  private static MpiCommunicator open(CommConfig config) {
    MpiLibrary library = MpiLibraries.here().choose(config).orElseThrow();
    var session = new DefaultSessionFactory().join(config, List.of(MpiProvider.NAME));
    return (MpiCommunicator) World.open(library, session, config);
  }

  /// A communicator of the same ranks, which all make it, in a job of its own: its calls may wait
  /// for a shorter time than what goes before them.
  private static MpiCommunicator hasty(MpiCommunicator communicator, Duration timeout) {
    MpiGroup group = communicator.group();
    MpiJob job = group.job();
    CommConfig config = job.config().toBuilder().timeout(timeout).build();
    long comm = Comms.duplicate(group.collectives(), () -> {});
    long messages = Comms.duplicate(comm, () -> {});
    Library.jobStarted(timeout.toNanos());
    var own = new MpiJob(job.session(), config, job.waitsInLibrary());
    return new MpiCommunicator(new MpiGroup(own, group.name(), 1, group.members(), comm, messages));
  }

  private static void wrongRank(CommConfig config) {
    MpiCommunicator communicator = open(config);
    MemorySegment memory = Arena.ofAuto().allocate(JAVA_INT);
    try {
      communicator.run(new PointToPoint.Send(CommData.of(DataType.INT32, memory), 7, 3));
    } catch (BackendException e) {
      System.out.println("failed: code %d, %s".formatted(e.code(), e.getMessage()));
      System.out.println("kept: " + CallMemory.isLost(memory));
      System.out.println("broken: " + communicator.failure());
    }
    copyNone(communicator.group().job());
    communicator.close();
    Library.loseWorld();
    try {
      World.initialise(Functions.library(), config, () -> {});
    } catch (BackendUnavailableException e) {
      System.out.println("refused: " + e.getMessage());
    }
  }

  /// After another one could not be retired.
  private static void copyNone(MpiJob job) {
    long none = Functions.constants().commNull;
    if (Functions.library().abi() == Abi.MPICH) { // Open MPI does not look at requests
      var closing = new Requests(1);
      var _ = closing.next();
      Library.retired().add(none, none, closing);
    }
    var communicator = new MpiCommunicator(new MpiGroup(job, "none", 1, new int[1], none, none));
    try {
      var copy = communicator.duplicate();
      System.out.println("a copy of none: " + copy.name());
    } catch (BackendException e) {
      System.out.println("failed: " + e.getMessage());
      System.out.println("broken: " + communicator.failure());
    }
    communicator.close();
  }

  private static void watched(CommConfig config) {
    MpiCommunicator communicator = open(config);
    MpiGroup group = communicator.group();
    Watchdog watchdog = group.job().watchdog();
    var post = new Watchdog.Post();
    post.enter("barrier", null, 0);
    watchdog.look(group, post, 0);
    long longNs = Duration.ofSeconds(10).toNanos();
    watchdog.look(group, post, longNs);
    communicator.abort(new AbortedException(0, "enough of this", null));
    watchdog.look(group, post, longNs + Duration.ofMillis(500).toNanos());
    System.out.println("broken, but not ended yet");
    communicator.close();
    watchdog.look(group, post, 2 * longNs);
  }

  /// The API closes for one thread while another one has passed its checks.
  private static void close(CommConfig config) {
    MpiCommunicator communicator = open(config);
    MpiCommunicator copy = (MpiCommunicator) communicator.duplicate();
    if (copy.rank() == 0) {
      copy.leaveCall(new AbortedException(0, "closed", null));
    }
    try {
      copy.sync(); // as the API's barrier does
      copy.run(new Collective.Barrier());
    } catch (CommException | ClosedException e) {
      System.out.println("failed: " + e);
    }
    copy.close();
    closeInSplit((MpiCommunicator) communicator.duplicate());
    communicator.run(new Collective.Barrier());
    communicator.close();
    try {
      var _ = communicator.gather(CallSignature.Purpose.REGION, 0);
    } catch (ClosedException e) {
      System.out.println("closed: " + e.getMessage());
    }
  }

  private static void closeInSplit(MpiCommunicator communicator) {
    if (communicator.rank() == 0) {
      Thread splitting =
          Thread.ofPlatform()
              .start(() -> {
                try {
                  var _ = communicator.split(0, 0);
                } catch (ClosedException _) {
                  // as it should be
                }
              });
      while (communicator.group().isIdle()) {
        Thread.onSpinWait();
      }
      communicator.close();
      join(splitting);
    } else {
      awaitFailure(communicator);
      communicator.close();
    }
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /// The short message comes behind the long one, which so has matched its receive when that has
  /// come. Then nobody moves it along.
  private static void closeReceiver(CommConfig config) {
    MpiCommunicator communicator = open(config);
    MpiCommunicator copy = (MpiCommunicator) communicator.duplicate();
    CommData large = CommData.of(new byte[64 << 20]);
    CommData small = CommData.of(new byte[1]);
    if (copy.rank() == 0) {
      var _ = copy.submit(new PointToPoint.Send(large, 1, 1));
      copy.run(new PointToPoint.Send(small, 1, 2));
      awaitFailure(copy);
    } else {
      var _ = copy.submit(new PointToPoint.Receive(large, 0, 1));
      copy.run(new PointToPoint.Receive(small, 0, 2));
    }
    copy.close();
    communicator.close();
  }

  private static void closeBoth(CommConfig config) {
    MpiCommunicator world = open(config);
    MpiGroup group = world.group();
    var turns = new Phaser(2);
    for (int round = 0; round < ROUNDS; round++) {
      Library.jobStarted(config.timeout().toNanos());
      var job = new MpiJob(group.job().session(), config, false);
      var first = new MpiGroup(job, "first", 1, new int[1], 0, 0);
      var second = new MpiGroup(job, "second", 2, new int[1], 0, 0);
      var removing =
          CompletableFuture.runAsync(() -> {
            turns.arriveAndAwaitAdvance();
            job.remove(first);
          });
      turns.arriveAndAwaitAdvance();
      job.remove(second);
      removing.join();
    }
    world.close();
  }

  /// MPICH gives a communicator the lowest number that is free.
  private static void unreceived(CommConfig config) {
    MpiCommunicator communicator = open(config);
    MpiCommunicator first = (MpiCommunicator) communicator.duplicate();
    if (first.rank() == 0) {
      first.run(new PointToPoint.Send(CommData.of(new int[] {7}), 1, 3));
    }
    first.close();
    List<MpiCommunicator> others = new ArrayList<>();
    for (int i = 0; i < COPIES; i++) {
      communicator.run(new Collective.Barrier());
      var other = (MpiCommunicator) communicator.duplicate();
      others.add(other);
      Probe found =
          Probe.of(
              other.group().messages(),
              Functions.constants().anySource,
              Functions.constants().anyTag);
      if (found != null) {
        System.out.println("found: " + found);
      }
    }
    others.forEach(MpiCommunicator::close);
    communicator.close();
  }

  /// The thread that closes has looked at the first communicator, where nothing was in flight, and
  /// waits for the lock of the second.
  private static void closeBuffer(CommConfig config) {
    MpiCommunicator communicator = open(config);
    MpiCommunicator copy = (MpiCommunicator) communicator.duplicate();
    var buffer = communicator.allocate(DataType.INT32, 1);
    var end = new CompletableFuture<String>();
    Thread closing =
        Thread.ofPlatform()
            .unstarted(() -> {
              try {
                buffer.close();
                end.complete("nothing");
              } catch (IllegalStateException e) {
                end.complete(e.getMessage());
              }
            });
    Pending receive;
    copy.group().lock();
    try {
      closing.start();
      while (closing.getState() != Thread.State.WAITING) {
        Thread.onSpinWait();
      }
      receive = communicator.submit(new PointToPoint.Receive(buffer.data(), 0, 1));
    } finally {
      copy.group().unlock();
    }
    System.out.println("close threw: " + end.join());
    communicator.run(new PointToPoint.Send(CommData.of(7), 0, 1));
    receive.await(Long.MAX_VALUE);
    buffer.close();
    copy.close();
    communicator.close();
  }

  /// What a rank says that closes during a send, said by one that stays.
  private static void closedSender(CommConfig config) {
    MpiCommunicator communicator = open(config);
    long comm = communicator.group().collectives();
    CommData data = CommData.of(new int[20_000]);
    if (communicator.rank() == 0) {
      long none = Functions.constants().byteType;
      Errors.check(Mpi.send(MemorySegment.NULL, 0, none, 1, Tags.CLOSED, comm), "MPI_Send");
      communicator.run(new PointToPoint.Send(data, 1, 3));
    } else {
      while (Probe.of(comm, 0, Tags.CLOSED) == null) {
        Thread.onSpinWait();
      }
      try {
        communicator.run(new PointToPoint.Receive(data, 0, 3));
      } catch (AbortedException e) {
        System.out.println("failed: " + e.getMessage());
      }
      System.out.println("lent: " + ArrayPins.lent());
      System.out.println("has not back: " + (ArrayPins.lent() - ArrayPins.takenBack()));
    }
    communicator.close();
  }

  /// Each rank adds numbers whose sum depends on the order.
  private static void sums(CommConfig config) {
    MpiCommunicator communicator = open(config);
    MpiGroup group = communicator.group();
    SameBits probe = new SameBits(group, () -> {});
    System.out.println("found the same: " + group.keepsBits());
    System.out.println("the same numbers: " + probe.isSame(5));
    System.out.println("other numbers: " + probe.isSame(5 + communicator.rank() / 3));
    System.out.println("in the order of the ranks: " + areLeftFolds(communicator, 5));
    MpiCommunicator other = (MpiCommunicator) communicator.duplicate();
    other.group().keepsBits(false);
    MpiCommunicator copy = (MpiCommunicator) other.duplicate();
    for (int count : new int[] {5, 100_000}) {
      System.out.println("folded in the order of the ranks: " + areLeftFolds(other, count));
      System.out.println("and by a copy: " + areLeftFolds(copy, count));
    }
    System.out.println("shown: " + copy.topology().libraries().get("mpi sums of floats"));
    var turned =
        (MpiCommunicator) communicator.split(0, -communicator.rank()).orElseThrow(); // is probed
    System.out.println("found the same by others: " + turned.group().keepsBits());
    List.of(turned, copy, other, communicator).forEach(MpiCommunicator::close);
  }

  private static boolean areLeftFolds(MpiCommunicator communicator, int count) {
    int size = communicator.size();
    float[] data = numbers(communicator.rank(), size, count);
    float[] fold = numbers(0, size, count);
    for (int rank = 1; rank < size; rank++) {
      float[] next = numbers(rank, size, count);
      for (int i = 0; i < count; i++) {
        fold[i] += next[i];
      }
    }
    CommData view = CommData.of(data);
    communicator.run(new Collective.AllReduce(view, view, ReduceOp.SUM));
    return Arrays.equals(data, fold);
  }

  private static float[] numbers(int rank, int size, int count) {
    float[] numbers = new float[count];
    for (int i = 0; i < count; i++) {
      int which = (rank + i) % size;
      numbers[i] = which == 0 ? LARGE : which == 2 ? -LARGE : 1;
    }
    return numbers;
  }
}
