package org.comm4j.backend.cuda;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.ServiceLoader;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import jcuda.driver.JCudaDriver;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.core.transport.HostTransports;
import org.comm4j.tck.ChildJvm;
import org.junit.jupiter.api.Assumptions;
import org.junit.platform.commons.support.ReflectionSupport;
import org.opentest4j.TestAbortedException;

/// Two, three and four processes that share a GPU and reach each other's memory by handles;
/// `gpu-check` runs it. Their kernels reduce and copy, bit for bit what core's arithmetic gives.
/// Then one of four processes is killed inside an all-reduce, and the others must come out of it:
/// in the kernels of this class, and then with communicators, in [GpuSurvivors].
public final class GpuProcesses {
  private static final Duration TIMEOUT = Duration.ofMinutes(1);
  private static final Duration KERNEL_TIMEOUT = Duration.ofSeconds(20);
  private static final ChildJvm JVMS = new ChildJvm(needed());
  private static final Duration BOUND = // of all of it, less than gpu-check has for it
      TestDevice.isReal() ? Duration.ofSeconds(75) : Duration.ofMinutes(4);
  private static final int MOST_PROCESSES = 4;
  private static final int KILLED = 128 + 9;

  private static final List<Integer> COUNTS = List.of(1, 37, 1000);
  private static final int MOST_BYTES = 16 << 10; // of one rank's data
  private static final int BLOCKS = 2;
  private static final int THREADS = 4;

  private final UUID process = UUID.randomUUID();
  private final Session session;
  private final TestDevice test = TestDevice.get();
  private final Window layout;
  private final CudaIpcMemory memory;
  private final CudaDevice device;
  private final CudaDevice.Stream stream;
  private final CudaDevice.HostMemory control;
  private final CudaDevice.HostMemory host;
  private final Parameters parameters;
  private final long input;
  private int cases;

  private GpuProcesses(Session session) {
    this.session = session;
    // behind the scratch that kernels use there is room for the data, which others read too
    this.layout = new Window(session.size(), MOST_BYTES, 2 * MOST_BYTES);
    this.memory =
        CudaIpcMemory.open(session, "check", CudaDriver.load(), 0, layout, process, TIMEOUT);
    this.device = memory.device();
    this.stream = device.createStream();
    this.control = device.allocateHost(Control.BYTES);
    this.host = device.allocateHost(MOST_BYTES * session.size());
    this.parameters = memory.parameters(control.segment().address(), KERNEL_TIMEOUT.toNanos());
    this.input = memory.remoteData(session.rank()) + MOST_BYTES;
    parameters.data(input, host.segment().address(), true);
  }

  /// Starts the processes, or is one of them.
  ///
  /// @param arguments none, or a rank, how many there are, the session's name and its folder, and
  ///   whether with communicators
  public static void main(String... arguments) throws IOException, InterruptedException {
    if (arguments.length == 0) {
      launch();
      return;
    }
    CommConfig config =
        CommConfig.builder()
            .rank(Integer.parseInt(arguments[0]))
            .worldSize(Integer.parseInt(arguments[1]))
            .session(arguments[2])
            .option(DefaultSessionFactory.DIRECTORY, arguments[3])
            .build();
    try (Session session = new DefaultSessionFactory().join(config, List.of())) {
      if (Boolean.parseBoolean(arguments[4])) {
        Path own = Files.createDirectory(Path.of(arguments[3], "rank" + arguments[0]));
        new GpuSurvivors(session, config).run(own);
      } else {
        new GpuProcesses(session).run();
      }
    }
  }

  // --- the process that starts the others ---

  /// A class of all that is to be on the class path.
  private static Class<?>[] needed() {
    Stream<Class<?>> compiled =
        Stream.of(
            CudaDriver.class,
            JCudaDriver.class,
            Assumptions.class,
            TestAbortedException.class,
            ReflectionSupport.class);
    Stream<Class<?>> found =
        ServiceLoader.load(HostTransports.class).stream().map(ServiceLoader.Provider::type);
    return Stream.concat(compiled, found).toArray(Class<?>[]::new);
  }

  private static void launch() throws IOException, InterruptedException {
    Path folder = Files.createTempDirectory("comm4j-processes-");
    long endNs = System.nanoTime() + BOUND.toNanos();
    try {
      for (int processes = 2; processes <= MOST_PROCESSES; processes++) {
        launch(processes, folder, false, endNs);
      }
      launch(MOST_PROCESSES, folder, true, endNs);
    } finally {
      try (Stream<Path> files = Files.walk(folder)) { // a session's too, where all have crashed
        for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(file);
        }
      }
    }
  }

  private static void launch(int processes, Path folder, boolean withCommunicators, long endNs)
      throws IOException, InterruptedException {
    String name = "gpu-check-" + UUID.randomUUID();
    List<Process> started = new ArrayList<>();
    try {
      for (int rank = 0; rank < processes; rank++) {
        List<String> options =
            TestDevice.isReal()
                ? List.of("-Dcomm4j.gpu=true")
                : List.of( // the JVMs share few cores, and compiling well is most of their work
                    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                    "-D%s=%s".formatted(ModelDriver.LIBRARY, ModelDriver.get().file()));
        List<String> command =
            JVMS.command(
                options,
                GpuProcesses.class,
                Integer.toString(rank),
                Integer.toString(processes),
                name,
                folder.toString(),
                Boolean.toString(withCommunicators));
        started.add(
            new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(output(folder, rank).toFile())
                .start());
      }
      for (int rank = 0; rank < processes; rank++) {
        int expected = rank == MOST_PROCESSES - 1 ? KILLED : 0;
        boolean ended = started.get(rank).waitFor(endNs - System.nanoTime(), TimeUnit.NANOSECONDS);
        if (!ended || started.get(rank).exitValue() != expected) {
          throw new AssertionError(
              "rank %d of %d %s (expected: exit code %d)"
                  .formatted(
                      rank,
                      processes,
                      ended ? "ended with " + started.get(rank).exitValue() : "does not end",
                      expected));
        }
      }
    } finally {
      started.forEach(Process::destroyForcibly);
      for (int rank = 0; rank < started.size(); rank++) {
        System.out.print(Files.readString(output(folder, rank)));
      }
    }
  }

  /// What the test's own JVM writes is the channel to Maven.
  private static Path output(Path folder, int rank) {
    return folder.resolve("output" + rank);
  }

  // --- one of the others ---

  private void run() {
    for (int count : COUNTS) {
      for (Way way : Way.values()) {
        check(way, ReduceOp.SUM, DataType.FLOAT32, count);
        check(way, ReduceOp.SUM, DataType.BFLOAT16, count);
        check(way, ReduceOp.AVERAGE, DataType.INT8, count);
        check(way, ReduceOp.MAX, DataType.FLOAT64, count);
        check(way, ReduceOp.LOGICAL_AND, DataType.BOOL, count);
        check(way, ReduceOp.PRODUCT, DataType.COMPLEX64, count);
      }
      check(Way.ONE_STAGE, ReduceOp.MIN_LOC, DataType.INT32_PAIR, count);
      checkAllGather(count);
    }
    checkBlocks();
    if (session.rank() == 0) {
      System.out.println("%d processes: %d cases are well".formatted(session.size(), cases));
    }
    if (session.size() == MOST_PROCESSES) {
      checkKill();
    }
    device.destroy(stream);
    device.freeHost(control);
    device.freeHost(host);
    memory.close();
  }

  private void check(Way way, ReduceOp op, DataType type, int count) {
    List<MemorySegment> inputs = inputs(type.bytes(count));
    way.set(begin(inputs), count, session.size());
    launch(way.kernel(op, type).orElseThrow());
    device.await(stream);
    compare(
        "%s of %d %s in %s".formatted(op.name(), count, type, way),
        LeftFold.of(op, type, inputs, 0, count));
  }

  private void checkAllGather(int bytes) {
    List<MemorySegment> inputs = inputs(bytes);
    begin(inputs);
    byte[] expected = new byte[bytes * session.size()];
    for (int rank = 0; rank < session.size(); rank++) {
      parameters.fetch(rank, bytes, 0, (long) rank * bytes);
      MemorySegment.copy(inputs.get(rank), ValueLayout.JAVA_BYTE, 0, expected, rank * bytes, bytes);
    }
    launch(KernelName.FETCH);
    device.await(stream);
    compare("all-gather of %d bytes".formatted(bytes), expected);
  }

  /// Each lends a part of an allocation of its own, and reads everybody's.
  private void checkBlocks() {
    int bytes = 1000;
    long allocation = device.allocate(MOST_BYTES);
    int me = session.rank();
    host.segment().asSlice(0, bytes).fill((byte) (me + 1));
    device.copy(host.segment().address(), allocation + offset(me), bytes, stream);
    device.await(stream);
    Gpu gpu = Gpu.open(CudaDriver.load(), 0, process, TIMEOUT);
    var own = new CudaIpcBlocks.Block(allocation + offset(me), allocation, gpu::close);
    try (CudaIpcBlocks blocks =
        CudaIpcBlocks.open(session, "blocks", CudaDriver.load(), process, gpu, own, TIMEOUT)) {
      for (int rank = 0; rank < session.size(); rank++) {
        cases++;
        device.copy(blocks.address(rank), host.segment().address(), bytes, stream);
        device.await(stream);
        byte[] expected = new byte[bytes];
        Arrays.fill(expected, (byte) (rank + 1));
        compare("what rank %d lends".formatted(rank), expected);
      }
    }
    session.barrier("read", TIMEOUT);
    device.free(allocation);
  }

  private static int offset(int rank) {
    return 48 * (rank + 1);
  }

  /// Everybody knows everybody's input.
  private List<MemorySegment> inputs(long bytes) {
    var random = new Random(++cases);
    List<MemorySegment> inputs = new ArrayList<>();
    for (int rank = 0; rank < session.size(); rank++) {
      byte[] input = new byte[Math.toIntExact(bytes)];
      random.nextBytes(input);
      inputs.add(MemorySegment.ofArray(input));
    }
    return inputs;
  }

  private Parameters begin(List<MemorySegment> inputs) {
    MemorySegment mine = inputs.get(session.rank());
    host.segment().asSlice(0, mine.byteSize()).copyFrom(mine);
    device.copy(host.segment().address(), input, mine.byteSize(), stream);
    return parameters.call(memory.nextEpoch(), cases);
  }

  private void launch(KernelName kernel) {
    device.launch(test.function(kernel), BLOCKS, THREADS, stream, parameters);
  }

  private void compare(String name, byte[] expected) {
    Control.Outcome outcome = new Control(control.segment()).outcome();
    byte[] found = host.segment().asSlice(0, expected.length).toArray(ValueLayout.JAVA_BYTE);
    if (outcome != Control.Outcome.DONE || !Arrays.equals(found, expected)) {
      throw new AssertionError(
          "%s, rank %d of %d: %s, differs from core's at byte %d"
              .formatted(
                  name, session.rank(), session.size(), outcome, Arrays.mismatch(found, expected)));
    }
  }

  /// The last rank is killed while its kernel waits for the one before it, which comes only then.
  private void checkKill() {
    int victim = session.size() - 1;
    int last = victim - 1;
    var words = new Control(control.segment());
    var told = new AtomicBoolean(); // once: there is more news when the words are freed
    session.onNews(() -> {
      if (session.news().isGone(victim) && told.compareAndSet(false, true)) {
        words.abort();
      }
    });
    Way.TWO_STAGES.set(begin(inputs(400)), 100, session.size());
    if (session.rank() == last) {
      for (int rank = 0; rank < session.size(); rank++) {
        if (rank != last) {
          session.get("launched/" + rank, TIMEOUT);
        }
      }
      ProcessHandle process = ProcessHandle.of(session.member(victim).pid()).orElseThrow();
      process.destroyForcibly();
      process.onExit().join();
    }
    long start = System.nanoTime();
    launch(KernelName.reduce(ReduceOp.SUM, DataType.FLOAT32).orElseThrow());
    if (session.rank() != last) {
      session.put("launched/" + session.rank(), new byte[0]);
    }
    device.await(stream);
    Control.Outcome outcome = words.outcome();
    long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
    System.out.println(
        "rank %d of %d: when rank %d was killed its kernel ended, %s, after %d ms"
            .formatted(session.rank(), session.size(), victim, outcome, millis));
    switch (outcome) {
      case ABORTED, LATE, LEFT -> {} // LEFT: another one was faster, and has left
      case DONE, MISMATCH -> throw new AssertionError("expected: ABORTED, LATE or LEFT");
    }
    checkDeviceIsUsable();
  }

  private void checkDeviceIsUsable() {
    try (var alone = new KernelGroup(1, KERNEL_TIMEOUT.toNanos())) {
      alone.parameters(0).call(1, 0);
      alone.launch(0, KernelName.MEET, BLOCKS, THREADS);
      if (alone.control(0).outcome() != Control.Outcome.DONE) {
        throw new AssertionError("a kernel has left: " + alone.control(0).outcome());
      }
    }
  }
}
