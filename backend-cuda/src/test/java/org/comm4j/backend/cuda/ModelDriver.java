package org.comm4j.backend.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// A driver whose devices are the host (`libcuda.cc`), compiled by the host's C++ compiler. It is a
/// `libcuda.so.1`: what loads the driver by its name afterwards gets this one. The kernels are in
/// it, and can be run without the driver's functions, too.
final class ModelDriver {
  /// The system property that names the library where it is compiled already.
  static final String LIBRARY = "comm4j.model";

  private static final Path SOURCES = Path.of("src/test/cuda");

  private static final Optional<ModelDriver> FOUND =
      TestDevice.isReal()
          ? Optional.empty()
          : Optional.ofNullable(System.getProperty(LIBRARY))
              .map(file -> new ModelDriver(Path.of(file)))
              .or(() -> HostCompiler.find().map(ModelDriver::compiled));

  private final Path file;
  private final SymbolLookup library;
  private final MethodHandle reset;
  private final MethodHandle fail;
  private final MethodHandle failHere;
  private final MethodHandle breakDevices;
  private final MethodHandle capture;
  private final MethodHandle captureStream;
  private final MethodHandle holdEvents;
  private final MethodHandle pooled;
  private final MethodHandle process;
  private final MethodHandle openOwn;
  private final MethodHandle free;
  private final MethodHandle held;
  private final MethodHandle waiting;
  private final MethodHandle calls;

  private ModelDriver(Path file) {
    this.file = file;
    this.library = SymbolLookup.libraryLookup(file, Arena.global());
    this.reset = function("model_reset", JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT);
    this.fail = function("model_fail", ADDRESS, JAVA_INT);
    this.failHere = function("model_fail_here", ADDRESS, JAVA_INT);
    this.breakDevices = function("model_break_devices", JAVA_INT);
    this.capture = function("model_capture", JAVA_INT);
    this.captureStream = function("model_capture_stream", JAVA_LONG, JAVA_INT);
    this.holdEvents = function("model_hold_events", JAVA_INT);
    this.pooled = function("model_pooled", JAVA_INT);
    this.process = function("model_process", JAVA_INT);
    this.openOwn = function("model_open_own");
    this.free = function("model_free", JAVA_LONG);
    this.held = function("model_held");
    this.waiting = function("model_waiting");
    this.calls = function("model_calls");
  }

  private MethodHandle function(String name, MemoryLayout... arguments) {
    return Linker.nativeLinker()
        .downcallHandle(
            library.find(name).orElseThrow(), FunctionDescriptor.of(JAVA_INT, arguments));
  }

  private static int call(MethodHandle function, Object... arguments) {
    try {
      return (int) function.invokeWithArguments(arguments);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /// The driver; where there is no compiler the calling test is skipped.
  static ModelDriver get() {
    assumeTrue(!TestDevice.isReal(), "this run is of a GPU, not of the model");
    assumeTrue(FOUND.isPresent(), "no C++ compiler for the host: install g++ 12 or newer");
    return FOUND.orElseThrow();
  }

  /// Of the tests' JVMs the first one compiles it, and the others wait. It stays for the next
  /// build, as long as the sources are the same.
  private static ModelDriver compiled(HostCompiler compiler) {
    String sources = Sources.hashes(Path.of("src"), ".*/cuda/.*[.](cuh?|hh|cc)").toString();
    String version = UUID.nameUUIDFromBytes(sources.getBytes(UTF_8)).toString();
    try {
      Path folder = Files.createDirectories(Path.of("target/model"));
      try (FileChannel lock = FileChannel.open(folder.resolve("lock"), CREATE, WRITE);
          FileLock _ = lock.lock()) {
        Path library =
            Files.createDirectories(folder.resolve(version))
                .resolve(DriverFiles.LIBRARY)
                .toAbsolutePath();
        if (!Files.exists(library)) {
          Path part = library.resolveSibling("part");
          compiler.library(
              part,
              "-Wl,-soname," + DriverFiles.LIBRARY,
              SOURCES.resolve("libcuda.cc"),
              SOURCES.resolve("integers.cc"));
          Files.move(part, library, ATOMIC_MOVE);
        }
        return new ModelDriver(library);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// {@return the library, for JVMs that load it by the property [#LIBRARY]}
  Path file() {
    return file;
  }

  /// Two GPUs that reach each other, of a generation and with a driver that will do.
  ModelDriver reset() {
    return reset(2, 8, 0, 12_000, true);
  }

  ModelDriver reset(int devices, int major, int minor, int version, boolean reachEachOther) {
    call(reset, devices, major, minor, version, reachEachOther ? 1 : 0);
    return this;
  }

  /// Makes the next call of a function return this.
  void fail(String function, int code) {
    try (Arena arena = Arena.ofConfined()) {
      call(fail, arena.allocateFrom(function), code);
    }
  }

  /// Makes this thread's next call of a function return this. Others, such as who looks after
  /// calls, may call it before.
  void failHere(String function, int code) {
    try (Arena arena = Arena.ofConfined()) {
      call(failHere, arena.allocateFrom(function), code);
    }
  }

  /// Makes all calls on devices return this, until the next reset, as after a kernel's fault.
  void breakDevices(int code) {
    call(breakDevices, code);
  }

  /// Lets the program capture a stream, in which many calls are refused to who does not know of it.
  void capture(boolean begins) {
    call(capture, begins ? 1 : 0);
  }

  /// The same, and says which stream.
  void capture(CudaDevice.Stream stream, boolean begins) {
    call(captureStream, stream.handle(), begins ? 1 : 0);
  }

  /// Lets no event be reached until it is told otherwise, as if something kept the device from
  /// that.
  void holdEvents(boolean holds) {
    call(holdEvents, holds ? 1 : 0);
  }

  /// Lets memory be of a pool, or mapped by the program, until the next reset.
  ///
  /// @param refuses whether who asks for its context gets an error; else there is none
  void poolMemory(boolean refuses) {
    call(pooled, refuses ? 1 : 0);
  }

  /// Lets this thread act as another process from now on; 0 as its own.
  void actAsProcess(int number) {
    call(process, number);
  }

  /// Lets this process open handles of its own memory, until the next reset: so its threads can be
  /// ranks of different processes.
  void openOwn() {
    call(openOwn);
  }

  /// Frees memory at once, where the driver would wait for kernels first: as if it were another's.
  void freeAtOnce(long address) {
    call(free, address);
  }

  /// How often functions of the driver were called, but for the mode of captures.
  int calls() {
    return call(calls);
  }

  /// How many things have been made and not given back.
  int held() {
    return call(held);
  }

  /// Returns when so many calls wait for all kernels of a device, or as launches for such a call.
  void awaitWaiting(int expected) {
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (call(waiting) != expected) {
      if (System.nanoTime() - endNs >= 0) {
        throw new AssertionError("%d calls wait, not %d".formatted(call(waiting), expected));
      }
      Thread.onSpinWait();
    }
  }

  /// Waits until so many are held: where kernels ran on when a communicator was closed, it is given
  /// back later.
  ///
  /// @return how many are held
  int heldSoon(int expected) {
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (held() != expected && System.nanoTime() - endNs < 0) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
    }
    return held();
  }
}
