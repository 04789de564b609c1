package org.comm4j.backend.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import org.comm4j.api.BackendException;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The driver's calls, through JCuda, against a driver whose devices are the host.
class CudaDriverTest {
  private static final Path PTX = Path.of("src/main/resources/org/comm4j/backend/cuda/ptx");
  private static final int OUT_OF_MEMORY = 2;
  private static final int INVALID_CONTEXT = 201;
  private static final int CAPTURING = 900;

  private ModelDriver model;
  private int held;

  @BeforeEach
  void reset() {
    model = ModelDriver.get().reset();
    held = model.held();
  }

  @AfterEach
  void nothingIsLeft() {
    if (model != null) { // else it was skipped
      assertThat(model.held()).isEqualTo(held);
    }
  }

  // --- what makes a driver unusable ---

  @Test
  void load_oldDriver_isUnavailable() {
    model.reset(1, 8, 0, 11_080, true);

    assertUnavailable("for CUDA 11.8 (expected: 12.0 or newer)", "install a newer driver");
  }

  @Test
  void load_noDevice_isUnavailable() {
    model.reset(0, 8, 0, 12_000, true);

    assertUnavailable("finds no GPU", "nvidia-smi -L");
  }

  @Test
  void load_driverFails_saysWhat() {
    model.fail("cuInit", INVALID_CONTEXT);

    assertUnavailable("cuInit returned 201, CUDA_ERROR_INVALID_CONTEXT", "nvidia-smi");
  }

  @Test
  void open_oldGpu_isUnavailable() {
    model.reset(1, 7, 0, 12_000, true);
    CudaDriver driver = CudaDriver.load();

    assertThatThrownBy(() -> driver.open(0))
        .isInstanceOf(BackendUnavailableException.class)
        .hasMessageContaining("device 0 (Model 0) has compute capability 7.0")
        .hasMessageContaining("expected: 7.5 or higher");
  }

  @ParameterizedTest
  @ValueSource(strings = {"cuDeviceGetName", "cuDeviceGetAttribute"})
  void open_aLaterCallFails_givesTheContextBack(String function) {
    CudaDriver driver = CudaDriver.load();
    model.fail(function, OUT_OF_MEMORY);

    assertThatThrownBy(() -> driver.open(0))
        .isInstanceOf(BackendException.class)
        .hasMessageStartingWith(function);
    assertThat(model.held()).isEqualTo(held);
  }

  private static void assertUnavailable(String reason, String remedy) {
    assertThatThrownBy(CudaDriver::load)
        .isInstanceOfSatisfying(
            BackendUnavailableException.class,
            e -> {
              assertThat(e.reason()).contains(reason);
              assertThat(e.remedy()).contains(remedy);
            });
  }

  // --- devices ---

  @Test
  void devices_areKnown_andReachEachOther() {
    CudaDriver driver = CudaDriver.load();
    assertThat(driver.devices()).isEqualTo(2);
    try (CudaDevice first = driver.open(0);
        CudaDevice second = driver.open(1)) {
      assertThat(first).hasToString("0 (Model 0)");
      assertThat(second.ordinal()).isEqualTo(1);
      assertThat(second.capability()).isEqualTo(80);
      assertThat(second.multiprocessors()).isEqualTo(4);
      assertThat(first.reachable()).containsExactly(first.uuid(), second.uuid());
      assertThat(second.reachable()).containsExactly(second.uuid(), first.uuid());
      first.reach(first);
      first.reach(second);
      first.reach(second);
    }
  }

  @Test
  void devices_withoutWayToEachOther_areNotReached() {
    model.reset(2, 9, 0, 12_000, false);
    CudaDriver driver = CudaDriver.load();
    try (CudaDevice first = driver.open(0);
        CudaDevice second = driver.open(1)) {
      assertThat(first.reachable()).containsExactly(first.uuid());
      assertThatThrownBy(() -> first.reach(second))
          .isInstanceOf(BackendException.class)
          .hasMessageContaining("cuCtxEnablePeerAccess returned 217");
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 0, 1})
  void calls_leaveTheThreadTheContextThatItHad(int its) {
    CudaDriver driver = CudaDriver.load();
    var context = new CUcontext(); // none
    var known = new CUdevice();
    if (its >= 0) {
      driver.check(() -> JCudaDriver.cuDeviceGet(known, its), "cuDeviceGet");
      driver.check(() -> JCudaDriver.cuDevicePrimaryCtxRetain(context, known), "retain");
    }
    driver.check(() -> JCudaDriver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    try (CudaDevice device = driver.open(0)) {
      device.free(device.allocate(8));
      assertThat(current(driver)).isEqualTo(context);

      model.fail("cuMemAlloc", OUT_OF_MEMORY);
      assertThatThrownBy(() -> device.allocate(8)).isInstanceOf(BackendException.class);
      assertThat(current(driver)).isEqualTo(context);
    } finally {
      driver.check(() -> JCudaDriver.cuCtxSetCurrent(new CUcontext()), "cuCtxSetCurrent");
      if (its >= 0) {
        driver.check(() -> JCudaDriver.cuDevicePrimaryCtxRelease(known), "release");
      }
    }
  }

  /// The program's thread is still refused what it may not call.
  @Test
  void calls_whileTheProgramCaptures_areTaken() {
    try (CudaDevice device = CudaDriver.load().open(0)) {
      model.capture(true);
      assertThat(JCudaDriver.cuMemAlloc(new CUdeviceptr(), 8)).isEqualTo(CAPTURING);
      device.free(device.allocate(8));
      assertThat(JCudaDriver.cuMemAlloc(new CUdeviceptr(), 8)).isEqualTo(CAPTURING);
    }
  }

  @Test
  void call_contextIsRefused_leavesTheThreadItsMode() {
    try (CudaDevice device = CudaDriver.load().open(0)) {
      model.fail("cuCtxPushCurrent", OUT_OF_MEMORY);
      assertThatThrownBy(() -> device.allocate(8)).isInstanceOf(BackendException.class);
      model.fail("cuCtxPushCurrent", 0);
      model.capture(true);
      assertThat(JCudaDriver.cuMemAlloc(new CUdeviceptr(), 8)).isEqualTo(CAPTURING);
    }
  }

  private static CUcontext current(CudaDriver driver) {
    var current = new CUcontext();
    driver.check(() -> JCudaDriver.cuCtxGetCurrent(current), "cuCtxGetCurrent");
    return current;
  }

  // --- memory ---

  @Test
  void memory_isCopiedAndCleared_inTheOrderOfTheStream() {
    try (CudaDevice device = CudaDriver.load().open(0)) {
      CudaDevice.Stream stream = device.createStream();
      long address = device.allocate(64);
      CudaDevice.HostMemory host = device.allocateHost(64);
      long hostAddress = host.segment().address();
      assertThat(host.segment().toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
      host.segment().fill((byte) 7);

      device.copy(hostAddress, address, 64, stream);
      device.clear(address + 16, 16, stream);
      device.copy(address, hostAddress + 1, 48, stream);
      device.await(stream);

      byte[] expected = new byte[64];
      Arrays.fill(expected, (byte) 7);
      Arrays.fill(expected, 17, 33, (byte) 0);
      assertThat(host.segment().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(expected);
      device.free(address);
      device.freeHost(host);
      device.destroy(stream);
    }
  }

  @Test
  void find_tellsWhereAnAddressIs() {
    CudaDriver driver = CudaDriver.load();
    try (CudaDevice first = driver.open(0);
        CudaDevice second = driver.open(1)) {
      long address = second.allocate(1000);
      CudaDevice.HostMemory host = first.allocateHost(8);

      assertThat(first.find(address + 999))
          .contains(new CudaDevice.Place(Optional.of(1), address, 1000, false));
      assertThat(first.find(host.segment().address()))
          .contains(new CudaDevice.Place(Optional.empty(), host.segment().address(), 0, false));
      assertThat(first.find(8)).isEmpty();
      second.free(address);
      assertThat(first.find(address)).isEmpty();
      first.freeHost(host);
    }
  }

  @Test
  void memory_ofAnotherProcess_isTheSameMemory() {
    try (CudaDevice device = CudaDriver.load().open(0)) {
      CudaDevice.Stream stream = device.createStream();
      CudaDevice.HostMemory host = device.allocateHost(8);
      long address = device.allocate(100);
      model.actAsProcess(1);
      byte[] handle = device.export(address + 50);
      assertThat(handle).hasSize(Libcuda.HANDLE_BYTES);
      assertThatThrownBy(() -> device.open(handle))
          .as("a process never opens its own")
          .isInstanceOf(BackendException.class)
          .hasMessageContaining("cuIpcOpenMemHandle returned 201");

      model.actAsProcess(2);
      long there = device.open(handle);
      host.segment().set(ValueLayout.JAVA_LONG, 0, 4711);
      device.copy(host.segment().address(), there + 8, 8, stream);
      device.copy(there, host.segment().address(), 8, stream);
      device.copy(address + 8, host.segment().address(), 8, stream);
      device.await(stream);

      assertThat(there).isNotEqualTo(address);
      assertThat(host.segment().get(ValueLayout.JAVA_LONG, 0)).isEqualTo(4711);
      device.closeImport(there);
      device.free(address);
      device.freeHost(host);
      device.destroy(stream);
    } finally {
      model.actAsProcess(0);
    }
  }

  // --- kernels, streams and events ---

  static Stream<Path> modules() throws IOException {
    return PtxTest.modules().stream();
  }

  private static byte[] text(String module) {
    try {
      return (Files.readString(PTX.resolve(module + ".ptx")) + "\0").getBytes(UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @ParameterizedTest
  @MethodSource("modules")
  void load_everyModule_isTaken(Path ptx) throws IOException {
    try (CudaDevice device = CudaDriver.load().open(0)) {
      String name = ptx.getFileName().toString().replace(".ptx", "");
      device.unload(device.load(text(name), KernelName.all().getOrDefault(name, Set.of())));
    }
  }

  /// One thread starts the kernels of all ranks: each on a stream of its own.
  @Test
  void launch_byOneThread_reducesForAllRanks() throws IOException {
    int ranks = 2;
    int count = 100;
    KernelName kernel = KernelName.reduce(ReduceOp.SUM, DataType.FLOAT32).orElseThrow();
    try (CudaDevice device = CudaDriver.load().open(0)) {
      CudaDevice.Module module = device.load(text(kernel.module()), Set.of(kernel));
      CudaDevice.Kernel function = module.kernel(kernel);
      var ranksMemory = new RankMemory[ranks];
      for (int rank = 0; rank < ranks; rank++) {
        ranksMemory[rank] = new RankMemory(device, new Window(ranks, 64, 1024), count);
      }
      CUevent ended = device.createEvent();

      for (int rank = 0; rank < ranks; rank++) {
        RankMemory mine = ranksMemory[rank];
        var parameters = mine.parameters(rank, ranksMemory).call(1, 0).twoStage(count, ranks);
        mine.data.segment().fill((byte) 0);
        for (int i = 0; i < count; i++) {
          mine.data.segment().setAtIndex(ValueLayout.JAVA_FLOAT, i, i + rank);
        }
        device.launch(function, 2, 2, mine.stream, parameters);
        parameters.call(99, 99); // a launch has taken a copy
        if (rank == 0) {
          device.record(ended, mine.stream);
          assertThat(device.isReached(ended)).as("rank 0 waits for rank 1").isFalse();
        }
      }
      device.awaitIn(ranksMemory[1].stream, ended);
      device.await(ranksMemory[1].stream);
      assertThat(device.isReached(ended)).isTrue();

      for (RankMemory each : ranksMemory) {
        device.await(each.stream);
        assertThat(new Control(each.control.segment()).outcome()).isEqualTo(Control.Outcome.DONE);
        for (int i = 0; i < count; i++) {
          assertThat(each.data.segment().getAtIndex(ValueLayout.JAVA_FLOAT, count + i))
              .isEqualTo(2 * i + 1);
        }
        each.free();
      }
      device.destroy(ended);
      device.unload(module);
    }
  }

  /// What a rank has; data and result in memory of the host, which devices reach.
  private static final class RankMemory {
    private final CudaDevice device;
    private final Window layout;
    private final CudaDevice.Stream stream;
    private final long window;
    private final CudaDevice.HostMemory control;
    private final CudaDevice.HostMemory data;

    RankMemory(CudaDevice device, Window layout, int count) {
      this.device = device;
      this.layout = layout;
      this.stream = device.createStream();
      this.window = device.allocate(layout.bytes());
      this.control = device.allocateHost(Control.BYTES);
      this.data = device.allocateHost(8 * count);
      device.clear(window, layout.bytes(), stream);
      device.await(stream);
    }

    Parameters parameters(int rank, RankMemory[] all) {
      var parameters = new Parameters(rank, layout, control.segment().address(), Long.MAX_VALUE);
      for (int peer = 0; peer < all.length; peer++) {
        parameters.peer(peer, all[peer].window, 0);
      }
      long input = data.segment().address();
      return parameters.data(input, input + data.segment().byteSize() / 2, true);
    }

    void free() {
      device.destroy(stream);
      device.free(window);
      device.freeHost(control);
      device.freeHost(data);
    }
  }

  // --- errors ---

  static Stream<String> functions() {
    return calls().keySet().stream();
  }

  /// Each function of the driver, and what calls it.
  private static Map<String, Consumer<CudaDevice>> calls() {
    Map<String, Consumer<CudaDevice>> calls = new LinkedHashMap<>();
    calls.put("cuCtxGetCurrent", device -> device.allocate(8));
    calls.put("cuCtxPushCurrent", device -> device.allocate(8));
    calls.put("cuMemAlloc", device -> device.allocate(8));
    calls.put("cuMemFree", device -> device.free(8));
    calls.put("cuMemHostAlloc", device -> device.allocateHost(8));
    calls.put("cuMemcpyAsync", device -> device.copy(8, 8, 8, new CUstream()));
    calls.put("cuMemsetD8Async", device -> device.clear(8, 8, new CUstream()));
    calls.put("cuPointerGetAttribute", device -> device.find(8));
    calls.put("cuIpcGetMemHandle", device -> device.export(8));
    calls.put("cuIpcOpenMemHandle", device -> device.open(new byte[Libcuda.HANDLE_BYTES]));
    calls.put("cuIpcCloseMemHandle", device -> device.closeImport(8));
    calls.put("cuStreamCreate", CudaDevice::createStream);
    calls.put("cuStreamDestroy", device -> device.destroy(new CUstream()));
    calls.put("cuStreamQuery", device -> device.isDone(new CUstream()));
    calls.put("cuStreamSynchronize", device -> device.await(new CUstream()));
    calls.put("cuStreamWaitEvent", device -> device.awaitIn(new CUstream(), new CUevent()));
    calls.put("cuEventCreate", CudaDevice::createEvent);
    calls.put("cuEventDestroy", device -> device.destroy(new CUevent()));
    calls.put("cuEventRecord", device -> device.record(new CUevent(), new CUstream()));
    calls.put("cuEventQuery", device -> device.isReached(new CUevent()));
    calls.put("cuModuleLoadData", device -> device.load("no PTX\0".getBytes(UTF_8), Set.of()));
    calls.put("cuModuleUnload", device -> device.unload(new CudaDevice.Module()));
    calls.put(
        "cuModuleGetFunction", device -> device.load(text("copies"), Set.of(KernelName.MEET)));
    calls.put("cuFuncLoad", device -> device.load(text("copies"), Set.of(KernelName.MEET)));
    return calls;
  }

  @ParameterizedTest
  @MethodSource("functions")
  void call_thatFails_namesFunctionAndReason(String function) {
    try (CudaDevice device = CudaDriver.load().open(0)) {
      model.fail(function, OUT_OF_MEMORY);

      assertThatThrownBy(() -> Objects.requireNonNull(calls().get(function)).accept(device))
          .isInstanceOfSatisfying(
              BackendException.class, e -> assertThat(e.code()).isEqualTo(OUT_OF_MEMORY))
          .hasMessageStartingWith(function)
          .hasMessageEndingWith(" returned 2, CUDA_ERROR_OUT_OF_MEMORY: the model says so");
    }
  }

  @Test
  void load_ptxNewerThanTheDriver_isRefused() {
    try (CudaDevice device = CudaDriver.load().open(0)) {
      for (String version : List.of("8.1", "9.0")) {
        byte[] ptx = (".version " + version + "\0").getBytes(UTF_8);
        assertThatThrownBy(() -> device.load(ptx, Set.of()))
            .isInstanceOf(BackendException.class)
            .hasMessageContaining("CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
      }
    }
  }
}
