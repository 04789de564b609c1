package org.comm4j.backend.cuda;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.function.IntSupplier;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdevice_attribute;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmemorytype;
import jcuda.driver.CUmodule;
import jcuda.driver.CUpointer_attribute;
import jcuda.driver.CUresult;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.CUuuid;
import jcuda.driver.JCudaDriver;
import org.comm4j.api.BackendException;
import org.comm4j.api.BackendUnavailableException;
import org.jspecify.annotations.Nullable;

/// A device, through the primary context that it has in this process: the one that other libraries
/// use too, so a program's own addresses and streams are valid here.
///
/// Every call, or all calls within a [#hold], make the context the calling thread's own and then
/// give back the one that it had; so any thread may call, and what a program does with another
/// device goes on there. What is made here is given back here, by the caller, before the device is
/// closed. A [BackendException] has the driver's code and its text.
final class CudaDevice implements AutoCloseable {
  /// The oldest generation of GPUs that the kernels run on: Turing.
  static final int OLDEST_CAPABILITY = 75;

  private static final int NAME_BYTES = 256;
  private static final ThreadLocal<@Nullable CudaDevice> HELD = new ThreadLocal<>();

  private final CudaDriver driver;
  private final int ordinal;
  private final CUdevice device;
  private final Context context;
  private final String name;
  private final int capability;
  private final int multiprocessors;

  private CudaDevice(CudaDriver driver, int ordinal, CUdevice device, Context context) {
    this.driver = driver;
    this.ordinal = ordinal;
    this.device = device;
    this.context = context;
    this.name = nameOf(driver, device);
    this.capability =
        10 * attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
            + attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    this.multiprocessors = attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  }

  /// @throws BackendUnavailableException if the kernels don't run on it
  static CudaDevice open(CudaDriver driver, int ordinal) {
    var device = new CUdevice();
    var context = new Context();
    driver.check(() -> JCudaDriver.cuDeviceGet(device, ordinal), "cuDeviceGet");
    driver.check(
        () -> JCudaDriver.cuDevicePrimaryCtxRetain(context, device), "cuDevicePrimaryCtxRetain");
    try {
      var opened = new CudaDevice(driver, ordinal, device, context);
      opened.checkCapability();
      return opened;
    } catch (RuntimeException e) {
      suppressing(
          e,
          () ->
              driver.check(
                  () -> JCudaDriver.cuDevicePrimaryCtxRelease(device),
                  "cuDevicePrimaryCtxRelease"));
      throw e;
    }
  }

  private static void suppressing(RuntimeException failure, Runnable end) {
    try {
      end.run();
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  private static String nameOf(CudaDriver driver, CUdevice device) {
    byte[] name = new byte[NAME_BYTES];
    driver.check(() -> JCudaDriver.cuDeviceGetName(name, NAME_BYTES, device), "cuDeviceGetName");
    return MemorySegment.ofArray(name).getString(0, StandardCharsets.UTF_8);
  }

  private int attribute(int attribute) {
    int[] value = new int[1];
    driver.check(
        () -> JCudaDriver.cuDeviceGetAttribute(value, attribute, device), "cuDeviceGetAttribute");
    return value[0];
  }

  private void checkCapability() {
    if (capability < OLDEST_CAPABILITY) {
      throw new BackendUnavailableException(
          CudaProvider.NAME,
          "device %s has compute capability %d.%d (expected: 7.5 or higher)"
              .formatted(this, capability / 10, capability % 10),
          "use a GPU of the generation Turing or newer");
    }
  }

  /// {@return its number, as the driver counts}
  int ordinal() {
    return ordinal;
  }

  /// {@return what it is called in all processes, however these number their devices}
  UUID uuid() {
    return uuid(device);
  }

  /// The same of another device, by its number.
  UUID uuid(int number) {
    return uuid(numbered(number));
  }

  private CUdevice numbered(int number) {
    var found = new CUdevice();
    driver.check(() -> JCudaDriver.cuDeviceGet(found, number), "cuDeviceGet");
    return found;
  }

  private UUID uuid(CUdevice of) {
    var found = new CUuuid();
    driver.check(() -> JCudaDriver.cuDeviceGetUuid(found, of), "cuDeviceGetUuid");
    ByteBuffer bytes = ByteBuffer.wrap(found.bytes);
    return new UUID(bytes.getLong(), bytes.getLong());
  }

  /// {@return its compute capability, 10 × major + minor}
  int capability() {
    return capability;
  }

  /// {@return how many multiprocessors it has}
  int multiprocessors() {
    return multiprocessors;
  }

  /// Its number and name.
  @Override
  public String toString() {
    return ordinal + " (" + name + ")";
  }

  /// A context that shows its handle.
  private static final class Context extends CUcontext {
    long handle() {
      return getNativePointer();
    }
  }

  /// Makes the context current on this thread until what it returns is closed, and lets it call the
  /// driver while the program captures a stream somewhere, which would forbid it many calls;
  /// nothing of ours is captured.
  private Use use() {
    if (HELD.get() == this) {
      return () -> {};
    }
    var before = new Context();
    driver.check(() -> JCudaDriver.cuCtxGetCurrent(before), "cuCtxGetCurrent");
    boolean isCurrent = context.equals(before);
    int captureMode = driver.library().exchangeCaptureMode(Libcuda.RELAXED);
    try {
      if (!isCurrent) {
        driver.check(() -> JCudaDriver.cuCtxPushCurrent(context), "cuCtxPushCurrent");
      }
    } catch (BackendException e) {
      driver.library().exchangeCaptureMode(captureMode);
      throw e;
    }
    return () -> {
      try {
        if (!isCurrent) {
          driver.check(() -> JCudaDriver.cuCtxPopCurrent(new CUcontext()), "cuCtxPopCurrent");
        }
      } finally {
        driver.library().exchangeCaptureMode(captureMode);
      }
    };
  }

  /// Makes the context current once for all calls of this thread until it is closed, where these
  /// are short and frequent. Nothing of the program's may run meanwhile.
  Use hold() {
    Use use = use();
    if (HELD.get() != null) {
      return use;
    }
    HELD.set(this);
    return () -> {
      HELD.remove();
      use.close();
    };
  }

  /// Gives the thread the context and the mode back that it had.
  interface Use extends AutoCloseable {
    @Override
    void close();
  }

  // --- other devices and processes ---

  /// {@return the devices whose memory its kernels can reach, itself first} Of those that this
  /// process sees; it uses none of them.
  List<UUID> reachable() {
    List<UUID> all = new ArrayList<>(List.of(uuid()));
    for (int number = 0; number < driver.devices(); number++) {
      CUdevice peer = numbered(number);
      if (number != ordinal && canReach(peer)) {
        all.add(uuid(peer));
      }
    }
    return all;
  }

  private boolean canReach(CUdevice peer) {
    int[] can = new int[1];
    driver.check(
        () -> JCudaDriver.cuDeviceCanAccessPeer(can, device, peer), "cuDeviceCanAccessPeer");
    return can[0] != 0;
  }

  /// Lets its kernels reach that device's memory; more than once does no harm.
  void reach(CudaDevice peer) {
    if (peer.ordinal == ordinal) {
      return;
    }
    try (Use _ = use()) {
      int code = CudaDriver.code(() -> JCudaDriver.cuCtxEnablePeerAccess(peer.context, 0));
      if (code != CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
        driver.check(code, "cuCtxEnablePeerAccess");
      }
    }
  }

  /// {@return a handle by which another process opens the allocation that has this address} Not
  /// this process: the driver refuses that.
  byte[] export(long address) {
    try (Use _ = use()) {
      return driver.library().handleOf(address);
    }
  }

  /// Opens an allocation of another process.
  ///
  /// @param handle of [#export] there
  /// @return the address of its first byte here, for [#closeImport]
  long open(byte[] handle) {
    try (Use _ = use()) {
      return driver.library().open(handle);
    }
  }

  /// Closes what [#open] has opened. The other process must not free it earlier.
  void closeImport(long address) {
    try (Use _ = use()) {
      driver.library().close(address);
    }
  }

  // --- memory ---

  /// Allocates memory of the device. It is not zeroed.
  ///
  /// @param bytes at least 1
  /// @return its address, a multiple of 256
  long allocate(long bytes) {
    try (Use _ = use()) {
      var address = new Address();
      driver.check(() -> JCudaDriver.cuMemAlloc(address, bytes), "cuMemAlloc");
      return address.value();
    }
  }

  /// Frees what [#allocate] has allocated.
  void free(long address) {
    try (Use _ = use()) {
      driver.check(() -> JCudaDriver.cuMemFree(pointer(address)), "cuMemFree");
    }
  }

  /// Memory of the host that devices reach under the same address.
  ///
  /// @param pointer JCuda's
  /// @param segment the same; valid until it is freed
  record HostMemory(Pointer pointer, MemorySegment segment) {}

  /// Allocates memory of the host, zeroed, that stays in place.
  HostMemory allocateHost(int bytes) {
    try (Use _ = use()) {
      var pointer = new Pointer();
      int flags = JCudaDriver.CU_MEMHOSTALLOC_PORTABLE | JCudaDriver.CU_MEMHOSTALLOC_DEVICEMAP;
      driver.check(() -> JCudaDriver.cuMemHostAlloc(pointer, bytes, flags), "cuMemHostAlloc");
      MemorySegment segment = MemorySegment.ofBuffer(pointer.getByteBuffer(0, bytes));
      return new HostMemory(pointer, segment.fill((byte) 0));
    }
  }

  /// Frees what [#allocateHost] has allocated.
  void freeHost(HostMemory memory) {
    try (Use _ = use()) {
      driver.check(() -> JCudaDriver.cuMemFreeHost(memory.pointer()), "cuMemFreeHost");
    }
  }

  /// Where an address is.
  ///
  /// @param device the device whose memory it is; empty for memory of the host
  /// @param base the first byte of the allocation, which is known of a device's
  /// @param bytes of the allocation; of what a program maps, of the addresses that it has reserved
  /// @param isApart whether it is this device's, but of a context of the program's that is not the
  ///   primary one, whose kernels don't reach it
  record Place(Optional<Integer> device, long base, long bytes, boolean isApart) {}

  /// {@return where an address is; empty where the driver doesn't know it: freed, never allocated,
  /// or plain memory of the host} Also of another device's.
  Optional<Place> find(long address) {
    try (Use _ = use()) {
      int[] kind = new int[1];
      int code =
          attributeCode(
              Pointer.to(kind), CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
      if (code == CUresult.CUDA_ERROR_INVALID_VALUE) {
        return Optional.empty();
      }
      driver.check(code, "cuPointerGetAttribute");
      return Optional.of(
          kind[0] == CUmemorytype.CU_MEMORYTYPE_DEVICE
              ? placeOnDevice(address)
              : new Place(Optional.empty(), address, 0, false));
    }
  }

  /// Not by `cuMemGetAddressRange`, which knows the current context's memory alone.
  private Place placeOnDevice(long address) {
    int[] owner = new int[1];
    long[] base = new long[1];
    long[] bytes = new long[1];
    attribute(Pointer.to(owner), CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    attribute(Pointer.to(base), CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
    attribute(Pointer.to(bytes), CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
    long of = contextOf(address);
    boolean isApart = owner[0] == ordinal && of != 0 && of != context.handle();
    return new Place(Optional.of(owner[0]), base[0], bytes[0], isApart);
  }

  /// 0 for what is of no context: of a pool, or mapped by a program. Some drivers refuse to say it
  /// of that.
  private long contextOf(long address) {
    long[] handle = new long[1];
    int code =
        attributeCode(
            Pointer.to(handle), CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT, address);
    if (code == CUresult.CUDA_ERROR_INVALID_VALUE) {
      return 0;
    }
    driver.check(code, "cuPointerGetAttribute");
    return handle[0];
  }

  private void attribute(Pointer to, int attribute, long address) {
    driver.check(attributeCode(to, attribute, address), "cuPointerGetAttribute");
  }

  private static int attributeCode(Pointer to, int attribute, long address) {
    return CudaDriver.code(
        () -> JCudaDriver.cuPointerGetAttribute(to, attribute, pointer(address)));
  }

  /// {@return whether an address is in memory of [#allocate]'s kind, which devices reach that may
  /// reach this one} What is of a pool (`cuMemAllocAsync`) or mapped by a program (`cuMemMap`) only
  /// those do that the program has let.
  boolean isPlain(long address) {
    try (Use _ = use()) {
      int[] can = new int[1];
      attribute(
          Pointer.to(can),
          CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
          address);
      return can[0] != 0;
    }
  }

  /// Puts a copy into a stream, between any two addresses that the driver knows.
  void copy(long from, long to, long bytes, CUstream stream) {
    try (Use _ = use()) {
      driver.check(
          () -> JCudaDriver.cuMemcpyAsync(pointer(to), pointer(from), bytes, stream),
          "cuMemcpyAsync");
    }
  }

  /// Puts zeroing into a stream.
  void clear(long address, long bytes, CUstream stream) {
    try (Use _ = use()) {
      driver.check(
          () -> JCudaDriver.cuMemsetD8Async(pointer(address), (byte) 0, bytes, stream),
          "cuMemsetD8Async");
    }
  }

  // --- streams and events ---

  /// A stream that shows its handle.
  static final class Stream extends CUstream {
    long handle() {
      return getNativePointer();
    }
  }

  /// Makes a stream that doesn't wait for the default one.
  Stream createStream() {
    try (Use _ = use()) {
      var stream = new Stream();
      driver.check(
          () -> JCudaDriver.cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING),
          "cuStreamCreate");
      return stream;
    }
  }

  /// Destroys a stream; what is in it goes on to its end.
  void destroy(CUstream stream) {
    try (Use _ = use()) {
      driver.check(() -> JCudaDriver.cuStreamDestroy(stream), "cuStreamDestroy");
    }
  }

  /// Blocks until all that is in the stream has ended.
  void await(CUstream stream) {
    try (Use _ = use()) {
      driver.check(() -> JCudaDriver.cuStreamSynchronize(stream), "cuStreamSynchronize");
    }
  }

  /// An event that shows its handle.
  static final class Event extends CUevent {
    private long handle() {
      return getNativePointer();
    }
  }

  /// Makes an event without timing.
  Event createEvent() {
    try (Use _ = use()) {
      var event = new Event();
      driver.check(
          () -> JCudaDriver.cuEventCreate(event, CUevent_flags.CU_EVENT_DISABLE_TIMING),
          "cuEventCreate");
      return event;
    }
  }

  /// Destroys an event; streams that wait for it go on waiting.
  void destroy(CUevent event) {
    try (Use _ = use()) {
      driver.check(() -> JCudaDriver.cuEventDestroy(event), "cuEventDestroy");
    }
  }

  /// Puts the event behind what is in the stream.
  void record(CUevent event, CUstream stream) {
    try (Use _ = use()) {
      driver.check(() -> JCudaDriver.cuEventRecord(event, stream), "cuEventRecord");
    }
  }

  /// Puts the event behind what is in a stream of the program's.
  ///
  /// @param stream its handle in the driver
  void record(Event event, long stream) {
    try (Use _ = use()) {
      driver.library().record(event.handle(), stream);
    }
  }

  /// Makes what is put into a stream of the program's later wait for the event.
  ///
  /// @param stream its handle in the driver
  void awaitIn(long stream, Event event) {
    try (Use _ = use()) {
      driver.library().awaitIn(stream, event.handle());
    }
  }

  /// {@return whether what is put into a stream of the program's becomes part of a graph, or would
  /// break its capture}
  ///
  /// @param stream its handle in the driver
  boolean isCaptured(long stream) {
    try (Use _ = use()) {
      return driver.library().isCaptured(stream);
    }
  }

  /// {@return whether all that is in the stream has ended}
  boolean isDone(CUstream stream) {
    try (Use _ = use()) {
      return isReady(() -> JCudaDriver.cuStreamQuery(stream), "cuStreamQuery");
    }
  }

  private boolean isReady(IntSupplier query, String function) {
    int code = CudaDriver.code(query);
    if (code == CUresult.CUDA_ERROR_NOT_READY) {
      return false;
    }
    driver.check(code, function);
    return true;
  }

  /// {@return whether what was before the event has ended}
  boolean isReached(CUevent event) {
    try (Use _ = use()) {
      return isReady(() -> JCudaDriver.cuEventQuery(event), "cuEventQuery");
    }
  }

  /// Makes what is put into the stream later wait for the event.
  void awaitIn(CUstream stream, CUevent event) {
    try (Use _ = use()) {
      driver.check(() -> JCudaDriver.cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
    }
  }

  // --- kernels ---

  /// A kernel that shows its handle.
  static final class Kernel extends CUfunction {
    private long handle() {
      return getNativePointer();
    }
  }

  /// Compiled PTX, all of whose kernels are on the device.
  static final class Module {
    private final CUmodule module = new CUmodule();
    private final Map<KernelName, Kernel> kernels = new HashMap<>();

    /// {@return a kernel that it was loaded with}
    Kernel kernel(KernelName name) {
      return Objects.requireNonNull(kernels.get(name), name::toString);
    }
  }

  /// Compiles PTX for this device and puts its kernels there. For that drivers wait until no kernel
  /// runs in the context, and other launches wait for them: where one kernel runs until another one
  /// comes, this must come before both.
  ///
  /// @param ptx its text, in ASCII, with a zero at its end
  /// @param names those of its kernels
  Module load(byte[] ptx, Collection<KernelName> names) {
    try (Use _ = use()) {
      var loaded = new Module();
      driver.check(() -> JCudaDriver.cuModuleLoadData(loaded.module, ptx), "cuModuleLoadData");
      try {
        for (KernelName name : names) {
          loaded.kernels.put(name, kernel(loaded.module, name.function()));
        }
      } catch (RuntimeException e) {
        suppressing(e, () -> unload(loaded));
        throw e;
      }
      return loaded;
    }
  }

  /// Unloads a module; none of its kernels may run.
  void unload(Module module) {
    try (Use _ = use()) {
      driver.check(() -> JCudaDriver.cuModuleUnload(module.module), "cuModuleUnload");
    }
  }

  /// Not when it is first launched, as drivers do unless they are told: it would then wait for
  /// others that may wait for it.
  private Kernel kernel(CUmodule module, String name) {
    var kernel = new Kernel();
    driver.check(
        () -> JCudaDriver.cuModuleGetFunction(kernel, module, name),
        "cuModuleGetFunction of " + name);
    driver.library().load(kernel.handle());
    return kernel;
  }

  /// Puts a kernel into a stream.
  ///
  /// @param parameters copied before this returns
  void launch(Kernel kernel, int blocks, int threads, Stream stream, Parameters parameters) {
    try (Use _ = use()) {
      driver
          .library()
          .launch(kernel.handle(), blocks, threads, stream.handle(), parameters.addresses());
    }
  }

  /// Gives the context back.
  @Override
  public void close() {
    driver.check(() -> JCudaDriver.cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
  }

  private static CUdeviceptr pointer(long address) {
    return new CUdeviceptr().withByteOffset(address);
  }

  /// A pointer that shows its address.
  private static final class Address extends CUdeviceptr {
    long value() {
      return getNativePointer() + getByteOffset();
    }
  }
}
