package org.comm4j.backend.local;

import static java.util.stream.Collectors.toUnmodifiableSet;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.tck.Allocations;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Whatever is opened, called and closed, and however often: nothing stays behind.
class LeakTest {
  private static final CommConfig CONFIG = CommConfig.builder().build();
  private static final long CALLS = 1_000_000;
  private static final int COMMUNICATORS = 10_000;
  private static final int GROUPS = 200;
  private static final int RANKS = 4;
  private static final long LONG_NS = TimeUnit.SECONDS.toNanos(20);
  private static final long POLL_NS = TimeUnit.MILLISECONDS.toNanos(1);

  static List<BackendProvider> providers() {
    return List.of(new LocalProvider(), new ShmProvider());
  }

  /// What a process holds, and its user in /dev/shm.
  private record Holdings(long heapBytes, int threads, long descriptors, Set<Path> sessions) {
    static Holdings now() throws IOException {
      return new Holdings(Allocations.heldBytes(), threadsNow(), descriptorsNow(), sessionsNow());
    }

    private static int threadsNow() {
      return Thread.getAllStackTraces().size();
    }

    private static long descriptorsNow() throws IOException {
      return entries(Path.of("/proc/self/fd")).size();
    }

    private static Set<Path> sessionsNow() throws IOException {
      Path base = ShmDirectory.base(Path.of("/dev/shm"));
      return Files.isDirectory(base) ? entries(base) : Set.of();
    }

    private static Set<Path> entries(Path directory) throws IOException {
      try (Stream<Path> entries = Files.list(directory)) {
        return entries.collect(toUnmodifiableSet());
      }
    }

    /// Threads may end, and descriptors be closed, a moment after their group.
    void assertNotAbove(Holdings before) throws IOException {
      assertThat(heapBytes).as("heap").isLessThan(before.heapBytes + (8L << 20));
      await("no more threads", () -> threadsNow() <= before.threads);
      await("no more descriptors", () -> descriptorsNow() <= before.descriptors);
      assertThat(leftSince(before)).as("sessions in /dev/shm").isEmpty();
    }

    /// What stays there: sessions of other processes are there while their ranks meet.
    private Set<Path> leftSince(Holdings before) throws IOException {
      Set<Path> left = new HashSet<>(sessions);
      left.removeAll(before.sessions);
      long endNs = System.nanoTime() + LONG_NS;
      while (!left.isEmpty() && System.nanoTime() - endNs < 0) {
        LockSupport.parkNanos(POLL_NS);
        left.retainAll(sessionsNow());
      }
      return left;
    }
  }

  @ParameterizedTest
  @MethodSource("providers")
  void allReduce_manyTimes_leavesNothing(BackendProvider provider) throws Exception {
    call(provider, 20_000);
    Holdings before = Holdings.now();

    call(provider, CALLS);

    Holdings.now().assertNotAbove(before);
  }

  private static void call(BackendProvider provider, long times) throws Exception {
    run(
        provider,
        2,
        communicator -> {
          HostData data = CommData.of(new double[1]);
          for (long i = 0; i < times; i++) {
            communicator.allReduce(data, ReduceOp.MAX);
          }
        });
  }

  @ParameterizedTest
  @MethodSource("providers")
  void duplicate_tenThousandTimes_leavesNothing(BackendProvider provider) throws Exception {
    duplicate(provider, 500);
    Holdings before = Holdings.now();

    duplicate(provider, COMMUNICATORS);

    Holdings.now().assertNotAbove(before);
  }

  private static void duplicate(BackendProvider provider, int times) throws Exception {
    run(
        provider,
        2,
        communicator -> {
          for (int i = 0; i < times; i++) {
            try (Communicator copy = communicator.duplicate()) {
              copy.barrier();
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource("providers")
  void group_openedAndClosed_leavesNothing(BackendProvider provider) throws Exception {
    open(provider, 20);
    Holdings before = Holdings.now();

    open(provider, GROUPS);

    Holdings.now().assertNotAbove(before);
  }

  /// A program that fails closes its communicators while another of its threads reads into a
  /// buffer.
  @ParameterizedTest
  @MethodSource("providers")
  void group_closedWhileABufferIsRead_leavesNothingAfterwards(BackendProvider provider)
      throws Exception {
    open(provider, 20);
    Pipe pipe = Pipe.open();
    Set<Path> before = Holdings.entries(Path.of("/proc/self/fd"));
    long filesBefore = filesMapped();
    Thread reading;
    String window;
    try (LocalGroup group = ThreadGroups.open(provider, 2, CONFIG)) {
      CommBuffer buffer = group.communicators().getFirst().allocate(DataType.INT8, 1 << 20);
      ByteBuffer bytes = buffer.hostData().segment().asByteBuffer();
      window = mappingOf(buffer.hostData().segment().address());
      reading = Thread.ofPlatform().start(() -> read(pipe, bytes));
      await("reads", () -> isInRead(reading));
    }
    assertThat(reading.isAlive()).as("it still reads").isTrue();

    pipe.sink().write(ByteBuffer.wrap(new byte[] {1}));
    reading.join();

    await("the window is unmapped", () -> !isMapped(window));
    await("all are, where they are files", () -> filesMapped() <= filesBefore);
    await("files are closed", () -> before.containsAll(Holdings.entries(Path.of("/proc/self/fd"))));
    pipe.sink().close();
    pipe.source().close();
  }

  private static void read(Pipe pipe, ByteBuffer into) {
    try {
      assertThat(pipe.source().read(into)).isEqualTo(1);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static boolean isInRead(Thread thread) {
    return Stream.of(thread.getStackTrace())
        .anyMatch(frame -> frame.getMethodName().equals("read0"));
  }

  private static long filesMapped() throws IOException {
    return mappings().stream().filter(each -> each.contains("/comm4j-")).count();
  }

  /// As the kernel lists it: its first address, its end, and more.
  private static String mappingOf(long address) throws IOException {
    return mappings().stream()
        .filter(each -> start(each) <= address && address < end(each))
        .findFirst()
        .orElseThrow();
  }

  /// Whether anything is at all of its addresses: what comes there later is smaller.
  private static boolean isMapped(String window) throws IOException {
    return mappings().stream()
        .anyMatch(each -> start(each) <= start(window) && end(window) <= end(each));
  }

  private static List<String> mappings() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.toList();
    }
  }

  private static long start(String mapping) {
    return address(mapping, 0);
  }

  private static long end(String mapping) {
    return address(mapping, 1);
  }

  private static long address(String mapping, int which) {
    return Long.parseUnsignedLong(mapping.split("[- ]", 3)[which], 16);
  }

  private interface Condition {
    boolean holds() throws IOException;
  }

  private static void await(String what, Condition condition) throws IOException {
    long endNs = System.nanoTime() + LONG_NS;
    while (!condition.holds()) {
      assertThat(System.nanoTime() - endNs).as(what).isNegative();
      LockSupport.parkNanos(POLL_NS);
    }
  }

  /// What docs/tuning.md says a rank keeps on the heap, without what it was called with.
  @ParameterizedTest
  @MethodSource("providers")
  void rank_afterManyKindsOfCalls_keepsLittleHeap(BackendProvider provider) throws Exception {
    assertKeepsLittleHeap(
        provider,
        communicator -> {
          for (int count = 1; count < 400; count++) {
            callEach(communicator, 97 * count);
          }
        });
  }

  /// As buckets of gradients, of which each takes dozens of rounds.
  @ParameterizedTest
  @MethodSource("providers")
  void rank_afterManyLargeCalls_keepsLittleHeap(BackendProvider provider) throws Exception {
    assertKeepsLittleHeap(
        provider,
        communicator -> {
          HostData largest = CommData.of(new byte[64 * (192 << 10)]);
          for (int pieces = 1; pieces <= 64; pieces++) {
            communicator.allReduce(largest.slice(0, pieces * (192L << 10)), ReduceOp.MAX);
          }
        });
  }

  private static void assertKeepsLittleHeap(BackendProvider provider, Consumer<Communicator> calls)
      throws Exception {
    open(provider, 20);
    Holdings before = Holdings.now();
    AtomicLong heldBytes = new AtomicLong();

    run(
        provider,
        RANKS,
        communicator -> {
          calls.accept(communicator);
          communicator.barrier();
          if (communicator.rank() == 0) {
            heldBytes.set(Allocations.heldBytes() - before.heapBytes);
          }
          communicator.barrier();
        });

    assertThat(heldBytes.get() / RANKS).as("bytes of heap a rank").isLessThan(1 << 20);
  }

  private static void callEach(Communicator communicator, int count) {
    int next = (communicator.rank() + 1) % communicator.size();
    HostData data = CommData.of(new float[count]);
    HostData all = CommData.of(new float[count * communicator.size()]);
    communicator.allReduce(data, ReduceOp.SUM);
    communicator.broadcast(data, count % communicator.size());
    communicator.allGather(data, all);
    communicator.reduceScatter(all, data, ReduceOp.SUM);
    communicator.scan(data, data, ReduceOp.SUM);
    HostData message =
        data.slice(0, Math.min(count, 1000)); // a send of more may wait for its receive
    communicator.send(message, next, 1);
    communicator.barrier();
    communicator.receive(message, Communicator.ANY_SOURCE, 1);
  }

  private static void open(BackendProvider provider, int times) throws Exception {
    for (int i = 0; i < times; i++) {
      run(provider, 3, Communicator::barrier);
    }
  }

  private static void run(BackendProvider provider, int size, Consumer<Communicator> body)
      throws Exception {
    try (LocalGroup group = ThreadGroups.open(provider, size, CONFIG);
        var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      List<Callable<Object>> bodies =
          group.communicators().stream()
              .map(each -> Executors.callable(() -> body.accept(each)))
              .toList();
      for (Future<Object> each : threads.invokeAll(bodies)) {
        each.get();
      }
    }
  }
}
