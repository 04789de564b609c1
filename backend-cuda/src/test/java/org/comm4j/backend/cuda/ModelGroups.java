package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.StreamSync;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.RankGroup;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.session.SessionGroup;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/// Tests of groups whose devices are the model of the driver. Nothing may be left of them.
abstract class ModelGroups {
  static final int OUT_OF_MEMORY = 2;
  static final int INVALID_VALUE = 1;
  static final int LAUNCH_FAILED = 719;
  static final int CAPTURING = 900;
  static final CommConfig CONFIG = CommConfig.builder().timeout(Duration.ofSeconds(30)).build();

  private static final int THREADS = 8; // of a block: each is one of the host

  @TempDir Path root;
  ModelDriver model;
  int held;

  @BeforeEach
  void reset() {
    model = ModelDriver.get().reset();
    held = model.held();
  }

  @AfterEach
  void nothingIsLeft() {
    if (model != null) { // else it was skipped
      assertThat(model.heldSoon(held)).isEqualTo(held);
    }
  }

  /// Memory of a device that the program has allocated itself, so that the driver is asked for it.
  record OfProgram(CudaDevice device, DeviceData data) implements AutoCloseable {
    static OfProgram allocate(DataType type, long count, int ordinal) {
      CudaDevice device = CudaDriver.load().open(ordinal);
      long address = device.allocate(type.bytes(count));
      return new OfProgram(device, new DeviceData(type, address, count, ordinal));
    }

    @Override
    public void close() {
      device.free(data.address());
      device.close();
    }
  }

  @FunctionalInterface
  interface Body {
    void run(Communicator comm) throws Exception;
  }

  static CommConfig options(Map<String, String> options) {
    CommConfig.Builder config = CONFIG.toBuilder();
    options.forEach(config::option);
    return config.build();
  }

  /// A provider for all ranks: it writes the files of its host, so none is made while another one
  /// reads them.
  CudaProvider provider(boolean isOneProcess) {
    return provider(isOneProcess, Patience.USUAL);
  }

  CudaProvider provider(boolean isOneProcess, Patience patience) {
    try {
      var host = new FakeHost(root).library("usr/lib64/libcuda.so.1").device("nvidia0");
      return new CudaProvider(
          host.files(),
          isOneProcess ? () -> CudaRank.PROCESS : UUID::randomUUID,
          THREADS,
          new ModelCompiler(),
          patience);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  LocalGroup open(int size, CommConfig config, boolean isOneProcess) {
    CudaProvider provider = provider(isOneProcess);
    if (isOneProcess) {
      return ThreadGroups.open(provider, size, config);
    }
    model.openOwn();
    return openProcesses(provider, size, config);
  }

  /// Ranks that each are of a process of its own.
  static LocalGroup openProcesses(CudaProvider provider, int size, CommConfig config) {
    return LocalGroup.of(
        new Staying(
            SessionGroup.open(
                InMemorySessions.group(size),
                session -> provider.open(session, config),
                ModelGroups::awaitBlocksClosed)));
  }

  /// Ranks whose sessions all last until the group is closed.
  private record Staying(RankGroup group) implements RankGroup {
    @Override
    public int size() {
      return group.size();
    }

    @Override
    public BackendCommunicator communicator(int rank) {
      return group.communicator(rank);
    }

    @Override
    public void fail(int rank, Throwable cause) {
      group.fail(rank, cause);
    }

    @Override
    public void leave(int rank) {}

    @Override
    public void close() {
      group.close();
    }
  }

  /// Closing waits for the driver for a moment only; who says that it has closed when its session
  /// is over says it to nobody, and what others lent it stays.
  static void awaitBlocksClosed() {
    await("workers have not closed their blocks", () -> !CudaIpcBlocks.areOpen());
  }

  /// Waits until something is so, and leaves the processors to who sees to that.
  ///
  /// @param problem if it is not within 30 s
  static void await(String problem, BooleanSupplier isSo) {
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (!isSo.getAsBoolean()) {
      assertThat(System.nanoTime() - endNs).as(problem).isNegative();
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
    }
  }

  void onRanks(int size, CommConfig config, Body body) {
    onRanks(size, config, true, body);
  }

  void onRanks(int size, CommConfig config, boolean isOneProcess, Body body) {
    try (LocalGroup group = open(size, config, isOneProcess)) {
      for (Future<Communicator> rank : start(group, body)) {
        assertThatCode(rank::get).doesNotThrowAnyException();
      }
    }
  }

  List<Throwable> failures(int size, CommConfig config, Body body) {
    try (LocalGroup group = open(size, config, true)) {
      return failures(group, body);
    }
  }

  static List<Throwable> failures(LocalGroup group, Body body) {
    List<Throwable> failures = new ArrayList<>();
    for (Future<Communicator> rank : start(group, body)) {
      assertThatThrownBy(rank::get)
          .isInstanceOfSatisfying(
              ExecutionException.class, failure -> failures.add(failure.getCause()));
    }
    return failures;
  }

  /// Returns when the device has ended all that was started, which the communicator is not asked.
  static void awaitOnDevice(Communicator comm) {
    StreamSync sync = comm.streamSync().orElseThrow();
    try (StreamSync.Event behind = sync.createEvent();
        CudaDevice device = CudaDriver.load().open(0)) {
      sync.recordOnCommunicator(behind);
      CudaDevice.Stream stream = device.createStream();
      sync.streamWait(stream.handle(), behind);
      device.await(stream);
      device.destroy(stream);
    }
  }

  @FunctionalInterface
  interface Element {
    int at(int index);
  }

  static void fill(CommBuffer buffer, Element element) {
    int[] values = new int[(int) buffer.data().count()];
    Arrays.setAll(values, element::at);
    buffer.write(0, CommData.of(values));
  }

  static void assertElements(CommBuffer buffer, Element element) {
    int[] values = new int[(int) buffer.data().count()];
    buffer.read(0, CommData.of(values));
    for (int i = 0; i < values.length; i++) {
      assertThat(values[i]).as("element %d", i).isEqualTo(element.at(i));
    }
  }

  /// Runs a body on each rank; a rank with an [IllegalStateException] is dead to the others.
  static List<Future<Communicator>> start(LocalGroup group, Body body) {
    List<Future<Communicator>> running = new ArrayList<>();
    try (ExecutorService threads = Executors.newCachedThreadPool()) {
      for (Communicator comm : group.communicators()) {
        running.add(
            threads.submit(() -> {
              try {
                body.run(comm);
                return comm;
              } catch (IllegalStateException e) {
                group.fail(comm.rank(), e);
                throw e;
              }
            }));
      }
    }
    return running;
  }

  static void assertSum(Communicator comm, CommBuffer buffer) {
    float[] values = new float[(int) buffer.data().count()];
    Arrays.fill(values, comm.rank() + 1);
    buffer.write(0, CommData.of(values));
    comm.allReduce(buffer.data(), ReduceOp.SUM);
    buffer.read(0, CommData.of(values));
    int size = comm.size();
    for (float value : values) {
      assertThat(value).isEqualTo(size * (size + 1) / 2f);
    }
  }
}
