package org.comm4j.backend.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Optional;
import org.comm4j.api.BackendException;
import org.jspecify.annotations.Nullable;

/// The driver's library itself, for what must come before JCuda, what JCuda doesn't give, and what
/// is called so often that JCuda's way is too slow.
///
/// JCuda can't be asked whether there is a driver: without one its class fails to initialise for
/// good. Its handles of shared memory don't show their bytes, so they could not be sent to a peer.
/// Kernels are launched through here, since that takes less of the host's time. Thread-safe.
final class Libcuda {
  /// The bytes of a handle of memory.
  static final int HANDLE_BYTES = 64;

  /// The mode in which a capture of a stream forbids a thread nothing.
  static final int RELAXED = 2;

  /// How many queues of the hardware the streams of a process share on a device, by a variable of
  /// the environment that drivers read.
  static final String QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS";

  /// The most there can be.
  static final int MOST_QUEUES = 32;

  private static final int USUAL_QUEUES = 8; // where the driver is not told
  private static final int SUCCESS = 0;
  private static final int LAZY_PEER_ACCESS = 1;
  private static final int CAPTURE_ACTIVE = 1;
  private static final int CAPTURE_IMPLICIT = 906; // of a stream that waits for the legacy one
  private static final MemoryLayout HANDLE =
      MemoryLayout.structLayout(MemoryLayout.sequenceLayout(HANDLE_BYTES, JAVA_BYTE));

  private final MethodHandle init;
  private final MethodHandle version;
  private final MethodHandle errorName;
  private final MethodHandle errorString;
  private final MethodHandle getHandle;
  private final MethodHandle openHandle;
  private final MethodHandle closeHandle;
  private final MethodHandle eventRecord;
  private final MethodHandle streamWaitEvent;
  private final MethodHandle streamIsCapturing;
  private final Optional<MethodHandle> loadFunction; // since CUDA 12.4
  private final MethodHandle launchKernel;
  private final MethodHandle exchangeCaptureMode;

  private Libcuda(SymbolLookup library) {
    this.init = function(library, "cuInit", JAVA_INT);
    this.version = function(library, "cuDriverGetVersion", ADDRESS);
    this.errorName = function(library, "cuGetErrorName", JAVA_INT, ADDRESS);
    this.errorString = function(library, "cuGetErrorString", JAVA_INT, ADDRESS);
    this.getHandle = function(library, "cuIpcGetMemHandle", ADDRESS, JAVA_LONG);
    this.openHandle = function(library, "cuIpcOpenMemHandle_v2", ADDRESS, HANDLE, JAVA_INT);
    this.closeHandle = function(library, "cuIpcCloseMemHandle", JAVA_LONG);
    this.eventRecord = function(library, "cuEventRecord", JAVA_LONG, JAVA_LONG);
    this.streamWaitEvent = function(library, "cuStreamWaitEvent", JAVA_LONG, JAVA_LONG, JAVA_INT);
    this.streamIsCapturing = function(library, "cuStreamIsCapturing", JAVA_LONG, ADDRESS);
    this.launchKernel =
        function(
            library,
            "cuLaunchKernel",
            JAVA_LONG,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT,
            JAVA_LONG,
            ADDRESS,
            ADDRESS);
    this.loadFunction = library.find("cuFuncLoad").map(address -> handle(address, JAVA_LONG));
    this.exchangeCaptureMode =
        Linker.nativeLinker()
            .downcallHandle(
                address(library, "cuThreadExchangeStreamCaptureMode"),
                FunctionDescriptor.of(JAVA_INT, ADDRESS),
                Linker.Option.critical(true)); // it has the thread's own word to swap
  }

  /// Loads the library by its name. It stays loaded, since drivers can't be unloaded.
  ///
  /// @throws IllegalArgumentException if there is none, or not a driver's
  static Libcuda load() {
    return new Libcuda(SymbolLookup.libraryLookup(DriverFiles.LIBRARY, Arena.global()));
  }

  private static MethodHandle function(
      SymbolLookup library, String name, MemoryLayout... arguments) {
    return handle(address(library, name), arguments);
  }

  private static MemorySegment address(SymbolLookup library, String name) {
    return library
        .find(name)
        .orElseThrow(() -> new IllegalArgumentException(DriverFiles.LIBRARY + " has no " + name));
  }

  private static MethodHandle handle(MemorySegment address, MemoryLayout... arguments) {
    return Linker.nativeLinker()
        .downcallHandle(address, FunctionDescriptor.of(JAVA_INT, arguments));
  }

  private static int call(MethodHandle function, Object... arguments) {
    try {
      return (int) function.invokeWithArguments(arguments);
    } catch (Throwable e) {
      throw new AssertionError(e); // functions of C throw nothing
    }
  }

  /// Initialises the driver; more than once does no harm. Where the program's environment does not
  /// say how many queues a device has, it gets all of them: an event of one stream, which waits for
  /// the kernels before it, holds up what is behind it in its queue, also of other streams. So a
  /// kernel that waits for one of another rank, or communicator, would never see it come.
  ///
  /// @throws BackendException if it can't be initialised, for example because there is no device
  void initialise() {
    wantQueues();
    check(call(init, 0), "cuInit");
  }

  /// In the environment as C sees it. Java's doesn't show it; processes started with it unchanged
  /// inherit it.
  private static void wantQueues() {
    Linker linker = Linker.nativeLinker();
    MemorySegment set = linker.defaultLookup().findOrThrow("setenv");
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment name = arena.allocateFrom(QUEUES);
      MemorySegment value = arena.allocateFrom(Integer.toString(MOST_QUEUES));
      call(handle(set, ADDRESS, ADDRESS, JAVA_INT), name, value, 0); // 0: not where it is set
    }
  }

  /// {@return how many queues the streams of this process share on a device, at most}
  static int queues() {
    return queues(System.getenv(QUEUES), MOST_QUEUES);
  }

  /// {@return how many they are at least: [#initialise] comes too late where the program has
  /// initialised the driver}
  static int fewestQueues() {
    return queues(System.getenv(QUEUES), USUAL_QUEUES);
  }

  /// @param said what the environment says
  /// @param unsaid how many there are where it says nothing
  static int queues(@Nullable String said, int unsaid) {
    if (said == null) {
      return unsaid;
    }
    try {
      return Math.clamp(Integer.parseInt(said), 1, MOST_QUEUES);
    } catch (NumberFormatException _) {
      return USUAL_QUEUES;
    }
  }

  /// {@return the CUDA that the driver is for, 1000 × major + 10 × minor}
  int version() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment found = arena.allocate(JAVA_INT);
      check(call(version, found), "cuDriverGetVersion");
      return found.get(JAVA_INT, 0);
    }
  }

  /// {@return a handle by which another process opens the allocation that has this address}
  byte[] handleOf(long address) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment handle = arena.allocate(HANDLE);
      check(call(getHandle, handle, address), "cuIpcGetMemHandle");
      return handle.toArray(JAVA_BYTE);
    }
  }

  /// Opens another process's allocation for the current context.
  ///
  /// @return its address here
  long open(byte[] handle) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment address = arena.allocate(JAVA_LONG);
      MemorySegment copy = arena.allocate(HANDLE).copyFrom(MemorySegment.ofArray(handle));
      check(call(openHandle, address, copy, LAZY_PEER_ACCESS), "cuIpcOpenMemHandle");
      return address.get(JAVA_LONG, 0);
    }
  }

  /// Closes what [#open] has opened.
  void close(long address) {
    check(call(closeHandle, address), "cuIpcCloseMemHandle");
  }

  /// Puts an event behind what is in a stream; both are handles, since JCuda takes none.
  void record(long event, long stream) {
    check(call(eventRecord, event, stream), "cuEventRecord");
  }

  /// Makes what is put into a stream later wait for an event; both are handles.
  void awaitIn(long stream, long event) {
    check(call(streamWaitEvent, stream, event, 0), "cuStreamWaitEvent");
  }

  /// {@return whether what is put into a stream, by its handle, becomes part of a graph} Also
  /// whether it is the legacy stream, which may get nothing while a stream is captured that waits
  /// for it.
  boolean isCaptured(long stream) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment status = arena.allocate(JAVA_INT);
      int code = call(streamIsCapturing, stream, status);
      if (code == CAPTURE_IMPLICIT) {
        return true;
      }
      check(code, "cuStreamIsCapturing");
      return status.get(JAVA_INT, 0) == CAPTURE_ACTIVE;
    }
  }

  /// Puts a kernel on the device, if it is not there; older drivers do so when they are asked for
  /// it.
  void load(long kernel) {
    loadFunction.ifPresent(function -> check(call(function, kernel), "cuFuncLoad"));
  }

  /// Puts a kernel into a stream; both are handles. JCuda's call takes a third longer.
  ///
  /// @param parameters the addresses of the kernel's parameters; what they have is copied
  void launch(long kernel, int blocks, int threads, long stream, MemorySegment parameters) {
    int code;
    try {
      code =
          (int)
              launchKernel.invokeExact(
                  kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, MemorySegment.NULL);
    } catch (Throwable e) {
      throw new AssertionError(e); // functions of C throw nothing
    }
    check(code, "cuLaunchKernel");
  }

  /// Gives this thread another mode for captures of streams.
  ///
  /// @return the one that it had
  int exchangeCaptureMode(int mode) {
    var swapped = new int[] {mode};
    int code;
    try {
      code = (int) exchangeCaptureMode.invokeExact(MemorySegment.ofArray(swapped));
    } catch (Throwable e) {
      throw new AssertionError(e); // functions of C throw nothing
    }
    check(code, "cuThreadExchangeStreamCaptureMode");
    return swapped[0];
  }

  /// Throws unless a call went well.
  ///
  /// @param function which one was called, for example `cuMemAlloc`
  void check(int code, String function) {
    if (code != SUCCESS) {
      throw new BackendException(
          code,
          "%s returned %d, %s: %s"
              .formatted(function, code, text(errorName, code), text(errorString, code)));
    }
  }

  private static String text(MethodHandle function, int code) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocate(ADDRESS);
      return call(function, code, text) == SUCCESS
          ? text.get(ADDRESS, 0).reinterpret(Long.MAX_VALUE).getString(0)
          : "unknown to this driver";
    }
  }
}
