package org.comm4j.tck;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/// The rules of `docs/contract.md` as tests of a backend. Its own tests extend this class and say
/// how to make a group whose ranks are threads:
///
///     class MyBackendTest extends CommunicatorContract {
///       @Override
///       protected LocalGroup open(int size, CommConfig config) {
///         return ThreadGroups.open(new MyProvider(), size, config);
///       }
///     }
///
/// Each rule's checks run on a group of their own; those of collectives share one for each size,
/// since they leave it as it was. What the backend declares it can't do or keep ([org.comm4j.api.Capabilities]) is
/// skipped with that reason. Failures print a seed (`-Dcomm4j.seed=…` repeats it,
/// `-Dcomm4j.check=…` runs only checks whose name matches). Where ranks must be processes,
/// [LiveVerification] checks the same.
public abstract class CommunicatorContract {
  /// The expression that rule E6 is tried with, in the language that C, CUDA and Java have in
  /// common. A backend that must be told of it beforehand and is not may refuse it. It is used of
  /// FLOAT32, FLOAT64 and BFLOAT16 alike for input and output, from BFLOAT16 to FLOAT32, and from
  /// FLOAT64 to BFLOAT16.
  protected static final String EXPRESSION = "x > 0 ? x * 0.5f : i % 3 == 0 ? -x : x / 4";

  private static final int SIZE_IN_ORDER = 3;

  private static final int GROUPS = 9; // of those that are to leave nothing

  /// What the JVM itself may keep of some groups, for example for code that ran the first time.
  private static final long MOST_LEFT_BYTES = 1 << 20;

  private static final Set<Capability> TO_SHRINK =
      Set.of(Capability.FAILURE_DETECTION, Capability.SHRINK);

  private final long seed = Long.getLong("comm4j.seed", 4242);
  private final String only = System.getProperty("comm4j.check", ".*");
  private @Nullable Kept kept;

  /// A group for checks that leave it as it was, while they come one after the other.
  ///
  /// @param last the check that it ran last
  private record Kept(LocalGroup group, int size, CommConfig config, LiveCheck last) {}

  /// For subclasses.
  protected CommunicatorContract() {}

  /// Makes a new group; called from one thread.
  ///
  /// @param size how many ranks, at least 1
  /// @param config to be used as it is
  /// @return the group; the contract closes it
  /// @throws Exception if it can't; the test fails
  protected abstract LocalGroup open(int size, CommConfig config) throws Exception;

  /// {@return the configuration that tests start from} Options of the backend go here.
  protected CommConfig config() {
    return CommConfig.builder().timeout(Duration.ofSeconds(15)).build();
  }

  /// {@return how many ranks most tests have}
  protected int size() {
    return 4;
  }

  /// {@return which checks are run: those whose rules and name match this regular expression} All,
  /// unless a backend runs the whole contract in another class and here what is different.
  protected String wanted() {
    return ".*";
  }

  /// {@return how many ranks the collectives are tried with too}
  protected List<Integer> otherSizes() {
    return List.of(1, 2, 3, 5);
  }

  /// {@return the bound of one test}
  protected Duration bound() {
    return Duration.ofSeconds(Boolean.getBoolean("comm4j.full") ? 600 : 60);
  }

  /// {@return which checks}
  List<LiveCheck> checks() {
    return LiveCheck.ofCommunicators();
  }

  /// {@return a test for each check}
  @TestFactory
  Stream<DynamicTest> rules() {
    return checks().stream()
        .filter(this::isWanted)
        .map(check -> test(check, size()))
        .onClose(this::closeKept);
  }

  /// {@return the checks of collectives for other sizes of group}
  @TestFactory
  Stream<DynamicTest> sizes() {
    return otherSizes().stream()
        .flatMap(size ->
            checks().stream()
                .filter(CommunicatorContract::isOfCollectives)
                .filter(this::isWanted)
                .filter(check -> size == SIZE_IN_ORDER || !isAboutOrder(check))
                .map(check -> test(check, size)))
        .onClose(this::closeKept);
  }

  private static boolean isOfCollectives(LiveCheck check) {
    Class<?> checks = check.method().getDeclaringClass();
    return checks == CollectiveChecks.class || checks == EpilogueChecks.class;
  }

  /// These repeat all reductions in order. That plans keep it is proved for every size; here a size
  /// beside the usual one shows that transports do.
  private static boolean isAboutOrder(LiveCheck check) {
    return check.needs().setting() == Needs.Setting.ORDERED;
  }

  /// Groups that were used and closed are gone: their threads, their descriptors, their memory,
  /// whatever became of them.
  @Rule({"L6", "L8"})
  @Test
  void closedGroups_leaveNothing() throws Exception {
    for (Fate fate : Fate.values()) {
      useAndClose(fate);
    }
    Set<Thread> threads = Thread.getAllStackTraces().keySet();
    long descriptors = descriptors();
    long bytes = usedMemory();
    for (int i = 0; i < GROUPS; i++) {
      useAndClose(Fate.values()[i % Fate.values().length]);
    }
    Expect.eventually(
        "L6",
        "no thread but those before",
        () -> threads.containsAll(Thread.getAllStackTraces().keySet()));
    Expect.eventually("L6", "no descriptor more than before", () -> descriptors() <= descriptors);
    long grown;
    long start = System.nanoTime();
    do { // what is unmapped by another thread may be so later
      grown = usedMemory() - bytes;
    } while (grown >= MOST_LEFT_BYTES && System.nanoTime() - start < patience().toNanos());
    Expect.that(
        "L8",
        grown < MOST_LEFT_BYTES,
        "%d groups have left %d bytes (expected: fewer than %d)",
        GROUPS,
        grown,
        MOST_LEFT_BYTES);
  }

  /// How long memory of closed groups is awaited.
  Duration patience() {
    return Expect.SOON;
  }

  /// What becomes of a group before it is closed.
  private enum Fate {
    HEALTHY,
    ABORTED,
    SHRUNK
  }

  private void useAndClose(Fate fate) throws Exception {
    LocalGroup group = opened(size(), config());
    CyclicBarrier used = new CyclicBarrier(group.size());
    List<Callable<?>> bodies = new ArrayList<>();
    for (Communicator comm : group.communicators()) {
      bodies.add(() -> {
        try (Communicator copy = comm.duplicate()) {
          copy.start(new Collective.Barrier()).toCompletableFuture().join();
          LiveRank.works("L6", copy);
          leaveOpen(copy);
          used.await(Expect.SOON.toSeconds(), TimeUnit.SECONDS); // no call is in progress
          befall(group, comm, copy, fate);
        }
        return comm;
      });
    }
    try (AutoCloseable _ = () -> RankThreads.close(group)) {
      Bounded.run("using a group", bound(), bodies);
    }
  }

  /// A buffer, and a receive that nothing has matched.
  private static void leaveOpen(Communicator comm) {
    comm.allocate(DataType.INT64, 1000);
    if (comm.capabilities().supports(Capability.POINT_TO_POINT)) {
      comm.start(new PointToPoint.Receive(CommData.of(new int[1]), comm.rank(), 1));
    }
  }

  private static void befall(LocalGroup group, Communicator comm, Communicator copy, Fate fate) {
    int last = comm.size() - 1;
    switch (fate) {
      case HEALTHY -> {}
      case ABORTED -> copy.abort("to be closed");
      case SHRUNK -> {
        if (last == 0 || !comm.capabilities().supported().containsAll(TO_SHRINK)) {
          return;
        }
        if (comm.rank() == last) {
          group.fail(last, new IllegalStateException("to be closed"));
        } else {
          comm.shrink().communicator().close();
        }
      }
    }
  }

  private LocalGroup opened(int size, CommConfig config) throws Exception {
    return Bounded.call("opening a group of " + size, bound(), () -> open(size, config));
  }

  /// On the heap, and what is mapped.
  private static long usedMemory() {
    long mapped = // first: what it loads is no group's
        ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
            .mapToLong(BufferPoolMXBean::getMemoryUsed)
            .sum();
    return Allocations.heldBytes() + mapped;
  }

  /// How many files this process has open; 0 where nothing says so.
  private static long descriptors() {
    Path own = Path.of("/proc/self/fd");
    if (!Files.isDirectory(own)) {
      return 0;
    }
    try (Stream<Path> files = Files.list(own)) {
      return files.count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Little data and much, on the host and, where the backend has them, on devices.
  @Rule("X9")
  @Test
  void operations_startedOnAllRanksByOneThread_end() throws Exception {
    onOneThread("operations of one thread", size(), CommunicatorContract::startByOneThread);
  }

  private static void startByOneThread(LocalGroup group) {
    for (int count : new int[] {1, 1_000, 300_000}) {
      sumByOneThread(group, count);
    }
    wrongByOneThread(group);
    sumByOneThread(group, 1);
  }

  /// Does something with a new group.
  private void onOneThread(String what, int size, Consumer<LocalGroup> action) throws Exception {
    LocalGroup group = opened(size, config());
    try (AutoCloseable _ = () -> RankThreads.close(group)) {
      Bounded.call(
          what,
          bound(),
          () -> {
            action.accept(group);
            return group;
          });
    }
  }

  /// In what communicators allocate, in place and not, with data of the host behind.
  private static void sumByOneThread(LocalGroup group, int count) {
    int size = group.size();
    List<CommBuffer> inputs = new ArrayList<>();
    List<CommBuffer> outputs = new ArrayList<>();
    for (Communicator comm : group.communicators()) {
      inputs.add(comm.allocate(DataType.INT32, count));
      outputs.add(comm.allocate(DataType.INT32, count));
      int[] own = new int[count];
      Arrays.setAll(own, i -> i + comm.rank());
      inputs.getLast().write(0, CommData.of(own));
    }
    int[][] heard = new int[size][1];
    heard[0][0] = count;
    List<Request> apart = group.start(rank -> sum(inputs.get(rank), outputs.get(rank)));
    List<Request> heardOf =
        group.start(rank -> new Collective.Broadcast(CommData.of(heard[rank]), 0));
    Request.waitAll(apart);
    Request.waitAll(group.start(rank -> sum(inputs.get(rank), inputs.get(rank))));
    Request.waitAll(heardOf);
    int[] expected = new int[count];
    Arrays.setAll(expected, i -> size * i + size * (size - 1) / 2);
    for (int rank = 0; rank < size; rank++) {
      for (List<CommBuffer> buffers : List.of(inputs, outputs)) {
        int[] result = new int[count];
        buffers.get(rank).read(0, CommData.of(result));
        buffers.get(rank).close();
        Expect.that("X9", Arrays.equals(result, expected), "rank %d: a sum of %d", rank, count);
      }
      Expect.equal("X9", "what was broadcast to rank " + rank, heard[rank][0], count);
    }
  }

  private static Operation sum(CommBuffer input, CommBuffer output) {
    return new Collective.AllReduce(input.data(), output.data(), ReduceOp.SUM);
  }

  private static void wrongByOneThread(LocalGroup group) {
    int last = group.size() - 1;
    var refused =
        Expect.thrown(
            "X9",
            IllegalArgumentException.class,
            "a wrong root on the last rank",
            () ->
                group.start(rank ->
                    new Collective.Broadcast(
                        CommData.of(new int[1]), rank == last ? group.size() : 0)));
    Expect.says("A2", refused, String.valueOf(group.size()), "expected");
  }

  /// A communicator that nobody closes and nobody holds says so once, and is closed. Whether it
  /// says so again is seen when another one has.
  @Rule("L7")
  @Test
  void unclosed_collected_warnsOnce() throws Exception {
    onOneThread("dropping communicators", 1, group -> dropTwo(group.communicator(0)));
  }

  private static void dropTwo(Communicator comm) {
    try (var log = new LogLines("org.comm4j.api")) {
      List<String> names = new ArrayList<>();
      for (int dropped = 0; dropped < 2; dropped++) {
        String name = dropOne(comm);
        names.add(name);
        Expect.eventually(
            "L7",
            "a warning that names " + name,
            () -> {
              System.gc();
              return warnings(log, name) > 0;
            });
      }
      Expect.equal(
          "L7",
          "how many warnings name each of " + names,
          names.stream().map(name -> warnings(log, name)).toList(),
          List.of(1L, 1L));
      LiveRank.works("L7", comm);
    }
  }

  private static long warnings(LogLines log, String name) {
    return log.lines().stream()
        .filter(line -> line.contains("dropped without close()"))
        .filter(line -> line.contains("'" + name + "'"))
        .count();
  }

  private static String dropOne(Communicator comm) {
    return comm.duplicate().name();
  }

  /// The same of a whole group, by each of its ranks.
  @Rule("L7")
  @Test
  void unclosedGroup_collected_everyRankWarns() throws Exception {
    try (var log = new LogLines("org.comm4j.api")) {
      String name = dropGroup();
      Expect.eventually(
          "L7",
          "a warning of each of %d ranks of %s".formatted(size(), name),
          () -> {
            System.gc();
            return warnings(log, name) >= size();
          });
    }
  }

  private String dropGroup() throws Exception {
    LocalGroup group = opened(size(), config());
    Request.waitAll(group.start(_ -> new Collective.Barrier()));
    return group.communicator(0).name();
  }

  private boolean isWanted(LiveCheck check) {
    return check.toString().matches(only) && check.toString().matches(wanted());
  }

  private DynamicTest test(LiveCheck check, int size) {
    return DynamicTest.dynamicTest(
        check + " on " + size + " ranks", () -> run(check, Math.max(size, least(check))));
  }

  private int least(LiveCheck check) {
    return size() == 1 ? 1 : check.needs().ranks();
  }

  /// Runs one check.
  ///
  /// @throws RuleViolation if a rule is broken
  void run(LiveCheck check, int size) throws Exception {
    CommConfig config = check.needs().setting().apply(config());
    LocalGroup group = group(check, size, config);
    var reason =
        Bounded.call("asking a group of " + size, bound(), () -> notRun(check, group, config));
    if (reason.isPresent()) {
      if (isOfCollectives(check)) {
        kept = new Kept(group, size, config, check);
      } else {
        RankThreads.close(group);
      }
      Assumptions.abort(check + ": " + reason.get());
    }
    try {
      if (isOfCollectives(check)) {
        RankThreads.runOpen(check, group, config, seed, bound());
        kept = new Kept(group, size, config, check);
      } else {
        RankThreads.run(check, group, config, seed, bound());
      }
    } catch (AssertionError e) {
      e.addSuppressed(new AssertionError(check + " on " + size + " ranks, seed " + seed));
      throw e;
    }
  }

  private static Optional<String> notRun(LiveCheck check, LocalGroup group, CommConfig config) {
    Communicator first = group.communicator(0);
    int hosts = first.topology().hosts().size();
    return check.notRun(first.capabilities(), group.size(), hosts, config, true);
  }

  /// The one that the check before has left, if it will do, else a new one.
  private LocalGroup group(LiveCheck check, int size, CommConfig config) throws Exception {
    Kept last = kept;
    if (last != null
        && isOfCollectives(check)
        && last.size() == size
        && last.config().equals(config)) {
      kept = null;
      return last.group();
    }
    closeKept();
    return opened(size, config);
  }

  private void closeKept() {
    Kept last = kept;
    kept = null;
    if (last == null) {
      return;
    }
    try {
      RankThreads.close(last.group());
    } catch (AssertionError e) {
      e.addSuppressed(
          new AssertionError("the group of " + last.last() + " on " + last.size() + " ranks"));
      throw e;
    }
  }
}
