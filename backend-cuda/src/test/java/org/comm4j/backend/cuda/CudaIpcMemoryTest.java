package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.InMemorySessions;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Workers that are threads, some of which act as processes of their own to the model of the
/// driver.
@Timeout(120)
class CudaIpcMemoryTest {
  private static final Duration TIMEOUT = Duration.ofMinutes(1);
  private static final KernelName KERNEL =
      KernelName.reduce(ReduceOp.SUM, DataType.INT32).orElseThrow();
  private static final int NOT_SUPPORTED = 801;
  private static final int OUT_OF_MEMORY = 2;

  private ModelDriver model;
  private int held;

  @BeforeEach
  void reset() {
    TestDevice.get().function(KERNEL); // stays
    model = ModelDriver.get().reset();
    held = model.held();
  }

  @AfterEach
  void nothingIsLeft() {
    if (model != null) { // else it was skipped
      assertHeld(held);
    }
  }

  /// Closing waits for the driver for a moment only, so it may end later.
  private void assertHeld(int expected) {
    assertThat(model.heldSoon(expected)).isEqualTo(expected);
  }

  @Test
  void processes_reachEachOthersMemory() {
    try (var group = new Group(1, 2, 3)) {
      List<CudaIpcMemory> memories = group.open();

      group.onAll(worker -> {
        CudaIpcMemory mine = memories.get(worker);
        assertThat(mine.workers()).isEqualTo(3);
        assertThat(mine.workerId()).isEqualTo(worker);
        for (int other = 0; other < 3; other++) {
          assertThat(mine.remoteData(other) == memories.get(other).remoteData(other))
              .isEqualTo(other == worker);
        }
        return group.sumOfScratch(mine);
      });
      group.onAll(worker -> close(memories.get(worker)));
    }
  }

  @Test
  void threadsAndProcesses_reachEachOthersMemory() {
    try (var group = new Group(1, 1, 2)) {
      List<CudaIpcMemory> memories = group.open();

      assertThat(memories.get(0).remoteData(1)).isEqualTo(memories.get(1).remoteData(1));
      assertThat(memories.get(2).remoteData(1)).isNotEqualTo(memories.get(1).remoteData(1));
      group.onAll(worker -> group.sumOfScratch(memories.get(worker)));
      group.onAll(worker -> close(memories.get(worker)));
    }
  }

  @Test
  void signals_areWhereTheKernelsLook() {
    try (var group = new Group(1, 2)) {
      List<CudaIpcMemory> memories = group.open();
      CudaIpcMemory mine = memories.getFirst();

      for (int worker = 0; worker < 2; worker++) {
        assertThat(mine.barrierOut(worker) - mine.barrierIn(worker)).isEqualTo(2 * 512 * 16 * 32);
        assertThat(mine.remoteData(worker) - mine.barrierIn(worker)).isEqualTo(layout(2).scratch());
      }
      assertThat(mine.nextEpoch()).isEqualTo(1);
      assertThat(mine.nextEpoch()).isEqualTo(2);
      group.onAll(worker -> close(memories.get(worker)));
    }
  }

  /// Else peers would read what is there by then.
  @Test
  void leave_kernelThatBeginsLater_doesNotCome() {
    try (var group = new Group(1, 2)) {
      List<CudaIpcMemory> memories = group.open();
      group.on(0, () -> group.leave(memories.get(0)));

      assertThat(group.on(0, () -> group.outcomeOfMeeting(memories.get(0), false)))
          .isEqualTo(Control.Outcome.DONE); // at once, as its call is over
      assertThat(entry(memories.get(1), 0).get(ValueLayout.JAVA_LONG, 0)).isZero();
      group.onAll(worker -> close(memories.get(worker)));
    }
  }

  @Test
  void leave_peerThatHasReadItsMemory_leavesToo() {
    try (var group = new Group(1, 2)) {
      List<CudaIpcMemory> memories = group.open();
      MemorySegment entry = entry(memories.get(1), 0); // as if it had come before
      entry.set(ValueLayout.JAVA_LONG, 8, memories.get(0).remoteData(0));
      entry.set(ValueLayout.JAVA_LONG, 0, 1);
      group.on(0, () -> group.leave(memories.get(0)));

      assertThat(group.on(1, () -> group.outcomeOfMeeting(memories.get(1), true)))
          .isEqualTo(Control.Outcome.LEFT);
      group.onAll(worker -> close(memories.get(worker)));
    }
  }

  /// Its device may have failed with it; and of who is only silent, kernels may run on.
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void leave_otherIsGone_isNotWrittenToWhereItHasEnded(boolean isSilent) {
    try (var group = new Group(1, 2, 3)) {
      List<CudaIpcMemory> memories = group.open();
      group.evidence = isSilent ? Session.Failure.SILENT + "5.0 s" : "killed";
      group.sessions.fail(1, new AssertionError("gone"));
      group.on(0, () -> group.leave(memories.get(0)));

      assertThat(left(memories.get(0), 1)).isEqualTo(isSilent ? 1 : 0);
      assertThat(left(memories.get(0), 2)).isEqualTo(1);
      group.evidence = "killed"; // so that its windows go back
      group.onAll(worker -> close(memories.get(worker)));
    }
  }

  /// What another worker finds when this one has left.
  private static long left(CudaIpcMemory memory, int other) {
    long at = memory.barrierIn(other) + Window.left(memory.workerId());
    return MemorySegment.ofAddress(at).reinterpret(8).get(ValueLayout.JAVA_LONG, 0);
  }

  /// Where a worker finds that another one has come to the first call.
  private static MemorySegment entry(CudaIpcMemory memory, int other) {
    long at = memory.barrierIn(memory.workerId()) + 512 * 16 * 32 + 32L * other;
    return MemorySegment.ofAddress(at).reinterpret(32);
  }

  @Test
  void close_oneAfterTheOther_freesAWindowWhenNobodyHasItOpen() {
    try (var group = new Group(1, 2)) {
      List<CudaIpcMemory> memories = group.open();
      int open = model.held();

      group.on(0, () -> close(memories.get(0)));
      assertHeld(open - 1); // its import is closed, its window stays
      group.on(0, () -> close(memories.get(0)));
      group.on(1, () -> close(memories.get(1)));
      assertHeld(held);
    }
  }

  @Test
  void close_driverRefuses_closesTheRest() {
    try (var group = new Group(1, 2, 3)) {
      List<CudaIpcMemory> memories = group.open();
      int open = model.held();

      model.fail("cuIpcCloseMemHandle", OUT_OF_MEMORY);
      group.on(0, () -> close(memories.get(0)));
      assertHeld(open - 1); // one import of two is closed
      group.on(1, () -> close(memories.get(1)));
      group.on(2, () -> close(memories.get(2)));
      assertHeld(held + 1); // the other one is left
      held = model.held();
    }
  }

  @Test
  void close_otherIsDead_freesTheWindow() {
    try (var group = new Group(1, 2)) {
      List<CudaIpcMemory> memories = group.open();
      int open = model.held();

      group.sessions.fail(1, new AssertionError("killed"));
      group.on(0, () -> close(memories.get(0)));
      assertHeld(open - 4); // import, window, stream and context
      group.on(1, () -> close(memories.get(1))); // a thread must, a process's end would do it
    }
  }

  /// The device may not be done yet with what its kernels write; and the driver, which would wait
  /// for the program's kernels, is not asked to free it.
  @Test
  void close_otherIsDeadWhileTheProgramIsOnTheDevice_setsTheWindowAsideAtOnce() throws Exception {
    try (var group = new Group(1, 2);
        Gpu gpu = Gpu.open(group.driver, 0, new UUID(group.job, 1), TIMEOUT);
        CudaDevice device = group.driver.open(0)) {
      CudaDevice.Stream ofProgram = device.createStream();
      CudaDevice.Event never = device.createEvent();
      List<CudaIpcMemory> memories = group.open();
      long window = memories.get(0).barrierIn(0);
      int open = model.held();
      group.on(0, () -> close(memories.get(0)));
      assertHeld(open - 1); // its import is closed, its window stays
      try {
        model.holdEvents(true);
        device.record(never, ofProgram);
        group.sessions.fail(1, new AssertionError("killed"));
        CudaIpcBlocks.sweep();
        long next =
            CompletableFuture.supplyAsync(
                    () -> afterwards(gpu, window), task -> Thread.ofPlatform().daemon().start(task))
                .get(10, TimeUnit.SECONDS);
        assertThat(next).isNotEqualTo(window);
      } finally {
        model.holdEvents(false);
        device.await(ofProgram);
        device.destroy(never);
        device.destroy(ofProgram);
        group.on(1, () -> close(memories.get(1)));
      }
    }
  }

  /// The block that the pool gives as a window next, when it has one back.
  private static long afterwards(Gpu gpu, long window) {
    while (gpu.find(window).isPresent()) {
      Thread.onSpinWait();
    }
    long next = gpu.memory().take(layout(2).bytes());
    gpu.memory().giveBack(layout(2).bytes(), next);
    return next;
  }

  /// It may have been stopped, or have lost its connection, and its kernels run on.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "silent for 5.0 s (rank 1, process 4711 on here)",
        "its control connection closed (rank 1, process 4711 on here)"
      })
  void close_otherIsGoneAndItsProcessIsThere_keepsTheWindow(String evidence) {
    try (var group = new Group(1, 2)) {
      List<CudaIpcMemory> memories = group.open();
      int open = model.held();

      group.areThere = true;
      group.evidence = evidence;
      group.sessions.fail(1, new AssertionError("not heard of"));
      group.on(0, () -> close(memories.get(0)));
      assertHeld(open - 1); // its import is closed, its window stays
      group.on(1, () -> close(memories.get(1)));
      assertHeld(held + 3); // window, stream and context of the first
      held = model.held();
    }
  }

  /// Its kernels may run on, also where it is dead to the others.
  @Test
  void close_otherOfThisProcessIsDead_keepsTheWindowUntilItHasClosed() {
    try (var group = new Group(1, 1)) {
      List<CudaIpcMemory> memories = group.open();
      int open = model.held();

      group.sessions.fail(1, new AssertionError("killed"));
      group.on(0, () -> close(memories.get(0)));
      assertHeld(open);
      group.on(1, () -> close(memories.get(1)));
      assertHeld(held);
    }
  }

  @Test
  void close_otherHasLeftWithoutClosing_keepsTheWindow() {
    try (var group = new Group(1, 2)) {
      group.areThere = true;
      List<CudaIpcMemory> memories = group.open();
      int open = model.held();

      group.sessions.session(1).close();
      group.on(0, () -> close(memories.get(0)));
      assertHeld(open - 1); // its import is closed, its window stays
      group.on(1, () -> close(memories.get(1)));
      assertHeld(held + 3); // window, stream and context of the first
      held = model.held();
    }
  }

  @Test
  void open_handlesNotPermitted_failsOnAll() {
    model.fail("cuIpcGetMemHandle", NOT_SUPPORTED);
    assertUnavailable(new Group(1, 2), "cuIpcGetMemHandle returned 801");
  }

  @Test
  void open_noRoomForAWindow_failsOnAll() {
    model.fail("cuMemAlloc", OUT_OF_MEMORY);
    assertUnavailable(new Group(1, 2, 3), "cuMemAlloc returned 2");
  }

  @Test
  void open_windowCantBeCleared_failsOnAll() {
    model.fail("cuMemsetD8Async", NOT_SUPPORTED);
    assertUnavailable(new Group(1, 2), "cuMemsetD8Async returned 801");
  }

  @Test
  void open_handleCantBeOpened_failsOnAll() {
    model.fail("cuIpcOpenMemHandle", OUT_OF_MEMORY);
    assertUnavailable(
        new Group(1, 2, 3), "it can't reach worker ", "cuIpcOpenMemHandle returned 2");
  }

  @Test
  void open_devicesDontReachEachOther_failsOnAll() {
    model.reset(2, 8, 0, 12_000, false);
    var group = new Group(1, 1);
    group.ordinals[1] = 1;
    assertUnavailable(group, "cuCtxEnablePeerAccess returned 217");
  }

  @Test
  void open_oneProcessWithoutHandles_isFine() {
    model.fail("cuIpcGetMemHandle", NOT_SUPPORTED);
    try (var group = new Group(1, 1)) {
      List<CudaIpcMemory> memories = group.open();
      group.onAll(worker -> group.sumOfScratch(memories.get(worker)));
      group.onAll(worker -> close(memories.get(worker)));
    }
  }

  private static void assertUnavailable(Group group, String... reasons) {
    try (group) {
      List<Exception> failures = group.onAll(worker -> group.failureOfOpen(worker));
      for (Exception failure : failures) {
        assertThat(failure)
            .isInstanceOf(BackendUnavailableException.class)
            .hasMessage(failures.getFirst().getMessage())
            .hasMessageContainingAll(reasons);
      }
    }
  }

  private static Window layout(int workers) {
    return new Window(workers, 64, 256);
  }

  private static boolean close(CudaIpcMemory memory) {
    memory.close();
    return true;
  }

  /// Workers, each on a thread that acts as a process.
  private static final class Group implements AutoCloseable {
    private final int[] processes;
    private final long job = UUID.randomUUID().getMostSignificantBits(); // of which they are
    private final int[] ordinals;
    private final InMemorySessions sessions;
    private final List<ExecutorService> threads = new ArrayList<>();
    private final CudaDriver driver = CudaDriver.load();
    private final long ended = endedProcess();
    private volatile @Nullable String evidence; // of all failures; null for what it is
    private volatile boolean areThere; // the processes of those that are gone

    Group(int... processes) {
      this.processes = processes;
      this.ordinals = new int[processes.length];
      this.sessions = InMemorySessions.group(processes.length);
      for (int process : processes) {
        ExecutorService thread = Executors.newSingleThreadExecutor();
        threads.add(thread);
        get(thread.submit(() -> ModelDriver.get().actAsProcess(process)));
      }
    }

    private static long endedProcess() {
      try {
        Process process = new ProcessBuilder("true").start();
        process.waitFor();
        return process.pid();
      } catch (IOException | InterruptedException e) {
        throw new AssertionError(e);
      }
    }

    interface Action<T> {
      T apply(int worker) throws Exception;
    }

    <T> List<T> onAll(Action<T> action) {
      List<Future<T>> running = new ArrayList<>();
      for (int worker = 0; worker < processes.length; worker++) {
        int mine = worker;
        running.add(threads.get(worker).submit(() -> action.apply(mine)));
      }
      return running.stream().map(Group::get).toList();
    }

    <T> T on(int worker, Callable<T> action) {
      return get(threads.get(worker).submit(action));
    }

    private static <T> T get(Future<T> future) {
      try {
        return future.get();
      } catch (InterruptedException | ExecutionException e) {
        throw new AssertionError(e);
      }
    }

    List<CudaIpcMemory> open() {
      return onAll(this::open);
    }

    /// A worker's session, which has the group's evidence.
    private Session session(int worker) {
      Session session = sessions.session(worker);
      return (Session)
          Proxy.newProxyInstance(
              Session.class.getClassLoader(),
              new Class<?>[] {Session.class},
              (_, method, arguments) -> {
                Object result;
                try {
                  result = method.invoke(session, arguments);
                } catch (InvocationTargetException e) {
                  throw e.getCause();
                }
                return switch (result) {
                  case Session.News news -> told(news);
                  case Session.Member member when member.rank() != worker -> ofProcess(member);
                  case null, default -> result;
                };
              });
    }

    private Session.News told(Session.News news) {
      String as = evidence;
      List<Session.Failure> failures =
          news.failures().stream()
              .map(each -> as == null ? each : new Session.Failure(each.rank(), as, each.cause()))
              .toList();
      return new Session.News(failures, news.aborts(), news.evicted());
    }

    private Session.Member ofProcess(Session.Member member) {
      long pid = areThere ? ProcessHandle.current().parent().orElseThrow().pid() : ended;
      return new Session.Member(
          member.rank(), member.host(), pid, member.processors(), member.backends());
    }

    private CudaIpcMemory open(int worker) {
      return CudaIpcMemory.open(
          session(worker),
          "test",
          driver,
          ordinals[worker],
          layout(processes.length),
          new UUID(job, processes[worker]),
          TIMEOUT);
    }

    Exception failureOfOpen(int worker) {
      try {
        open(worker).close();
        throw new AssertionError("it was opened");
      } catch (BackendUnavailableException e) {
        return e;
      }
    }

    boolean leave(CudaIpcMemory memory) {
      CudaDevice.HostMemory control = memory.device().allocateHost(Control.BYTES);
      new Control(control.segment()).abort();
      memory.leave(control.segment().address());
      ModelGroups.await("its copies go on", memory::hasLeft); // it waits for a moment only
      memory.device().freeHost(control);
      return true;
    }

    /// Meets the others in the first call, and perhaps reads their memory.
    Control.Outcome outcomeOfMeeting(CudaIpcMemory memory, boolean isReading) {
      CudaDevice device = memory.device();
      CudaDevice.Stream stream = device.createStream();
      CudaDevice.HostMemory control = device.allocateHost(Control.BYTES);
      long scratch = memory.remoteData(memory.workerId());
      Parameters parameters =
          memory
              .parameters(control.segment().address(), TIMEOUT.toNanos())
              .call(1, 0)
              .data(scratch, scratch + 64, false)
              .oneStage(0, isReading ? 5 : 0, memory.workers());
      device.launch(TestDevice.get().function(KERNEL), 1, 2, stream, parameters);
      device.await(stream);
      Control.Outcome outcome = new Control(control.segment()).outcome();
      device.destroy(stream);
      device.freeHost(control);
      return outcome;
    }

    /// Sums up what each worker has put into its window: its id plus one, five times.
    int sumOfScratch(CudaIpcMemory memory) {
      CudaDevice device = memory.device();
      CudaDevice.Stream stream = device.createStream();
      CudaDevice.HostMemory control = device.allocateHost(Control.BYTES);
      CudaDevice.HostMemory data = device.allocateHost(40);
      for (int i = 0; i < 5; i++) {
        data.segment().setAtIndex(ValueLayout.JAVA_INT, i, memory.workerId() + 1);
      }
      long input = memory.remoteData(memory.workerId());
      device.copy(data.segment().address(), input, 20, stream);
      Parameters parameters =
          memory
              .parameters(control.segment().address(), TIMEOUT.toNanos())
              .call(memory.nextEpoch(), 0)
              .data(input, data.segment().address() + 20, true)
              .oneStage(0, 5, memory.workers());
      device.launch(TestDevice.get().function(KERNEL), 1, 2, stream, parameters);
      device.await(stream);

      int expected = memory.workers() * (memory.workers() + 1) / 2;
      assertThat(data.segment().asSlice(20).toArray(ValueLayout.JAVA_INT)).containsOnly(expected);
      device.destroy(stream);
      device.freeHost(control);
      device.freeHost(data);
      return expected;
    }

    @Override
    public void close() {
      threads.forEach(ExecutorService::close);
      try {
        ModelGroups.awaitBlocksClosed();
      } finally {
        sessions.close();
      }
    }
  }
}
