package org.comm4j.core.kernel;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Calls vector loops until they are compiled, on one thread that ends when it has nothing to do.
/// That takes some tenths of a second of one core for each loop and combination of memory: some ten
/// thousand calls. In a virtual machine without the optimizing compiler no loop is called.
final class WarmUp {
  static final int BYTES = 1024;

  /// A compiled loop takes a tenth of this with the time around it, another tens of microseconds.
  private static final long FAST_NS = 1000;

  private static final int FAST_CALLS = 100; // one behind the other

  /// Every so many calls see a NaN: what a loop has not done yet is not compiled, and when it comes
  /// to it the whole has to be compiled again; but what it often does it does at others' cost.
  private static final int CALLS_PER_NAN = 64;

  private static final long MOST_NS = TimeUnit.SECONDS.toNanos(20);

  /// The compiler has what it needs, but has more to do; or it makes nothing fast of the loop. From
  /// then on calls leave the processor to others.
  private static final int MANY_CALLS = 100_000;

  private static final int CALLS_BETWEEN_PAUSES = 10;
  private static final long PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(1);

  /// Where files for mapped memory may be: some containers have no folder for temporary files.
  private static final List<Path> FOLDERS =
      List.of(Path.of(System.getProperty("java.io.tmpdir", "/tmp")), Path.of("/dev/shm"));

  private static final boolean COMPILES_WELL = compilesWell(System.getProperty("java.vm.info", ""));

  /// What was started and has not ended. The executor doesn't count what its thread has just taken.
  private static final AtomicInteger DUE = new AtomicInteger();

  private static final ThreadPoolExecutor THREAD =
      new ThreadPoolExecutor(
          1,
          1,
          1,
          TimeUnit.SECONDS,
          new LinkedBlockingQueue<>(),
          Thread.ofPlatform()
              .daemon()
              .name("comm4j-warm-up")
              .inheritInheritableThreadLocals(false)
              .factory());

  static {
    THREAD.allowCoreThreadTimeOut(true);
  }

  private WarmUp() {}

  /// What a loop is called with; null where there is no memory of that class.
  record Memory(
      @Nullable MemorySegment a, @Nullable MemorySegment b, @Nullable MemorySegment out) {}

  /// Starts to warm up a loop.
  ///
  /// @param maskedBytes how many bytes its masked form combines in each call, or 0 for the other
  ///   form, with [#BYTES]
  /// @param memory makes some of the classes that the loop will be called with, on the thread
  /// @param whenFast called if the loop is fast; not called if it does not become so
  static void start(VectorLoop loop, int maskedBytes, Supplier<Memory> memory, Runnable whenFast) {
    if (!COMPILES_WELL) {
      return;
    }
    var isDue = new AtomicBoolean(true);
    Runnable over =
        () -> {
          if (isDue.getAndSet(false)) {
            DUE.decrementAndGet();
          }
        };
    DUE.incrementAndGet();
    try {
      THREAD.execute(() -> {
        try {
          run(loop, maskedBytes, memory.get(), whenFast);
        } finally {
          over.run();
        }
      });
    } catch (OutOfMemoryError _) { // no thread can be made; the call that wants the loop needs none
      over.run();
    }
  }

  private static void run(VectorLoop loop, int maskedBytes, Memory memory, Runnable whenFast) {
    MemorySegment a = memory.a();
    MemorySegment b = memory.b();
    MemorySegment out = memory.out();
    if (a != null && b != null && out != null && isFast(loop, maskedBytes, a, b, out)) {
      whenFast.run();
    }
  }

  /// Whether a virtual machine that says this of itself has the optimizing compiler: not with
  /// `-Xint` or `-XX:TieredStopAtLevel=1`.
  private static boolean compilesWell(String vmInfo) {
    return !vmInfo.contains("interpreted") && !vmInfo.contains("emulated-client");
  }

  /// Whether it calls some loop, or is going to.
  static boolean isAtWork() {
    return DUE.get() > 0;
  }

  /// Whether it has ever begun to.
  static boolean hasStarted() {
    return THREAD.getLargestPoolSize() > 0;
  }

  private static boolean isFast(
      VectorLoop loop, int maskedBytes, MemorySegment a, MemorySegment b, MemorySegment out) {
    long begin = System.nanoTime();
    int fast = 0;
    for (int call = 0; fast < FAST_CALLS; call++) {
      if (call % CALLS_PER_NAN == 0) {
        a.asSlice(BYTES - Long.BYTES).fill((byte) -1);
        call(loop, maskedBytes, a, b, out, BYTES - maskedBytes);
        a.fill((byte) 0);
      }
      long start = System.nanoTime();
      call(loop, maskedBytes, a, b, out, call % 2 == 0 ? 0 : BYTES - maskedBytes);
      long end = System.nanoTime();
      fast = end - start < FAST_NS ? fast + 1 : 0;
      if (end - begin > MOST_NS) {
        return false;
      }
      if (call > MANY_CALLS && call % CALLS_BETWEEN_PAUSES == 0) {
        LockSupport.parkNanos(PAUSE_NS);
      }
    }
    return true;
  }

  /// Calls the form that is warmed up, the masked one for elements at an offset.
  private static void call(
      VectorLoop loop,
      int maskedBytes,
      MemorySegment a,
      MemorySegment b,
      MemorySegment out,
      long maskedAt) {
    if (maskedBytes > 0) {
      loop.applyMasked(a, maskedAt, b, maskedAt, out, maskedAt, maskedBytes);
    } else {
      loop.apply(a, 0, b, 0, out, 0, BYTES);
    }
  }

  /// [#BYTES] of memory of a class, perhaps an array of this primitive; null if there is no way to
  /// make some.
  static @Nullable MemorySegment segment(Class<?> wanted, Carrier carrier) {
    MemorySegment array = carrier.tile(BYTES).segment();
    if (array.getClass() == wanted) {
      return array;
    }
    MemorySegment plain = Arena.ofAuto().allocate(BYTES, 64);
    if (plain.getClass() == wanted) {
      return plain;
    }
    MemorySegment mapped = mapped();
    return mapped != null && mapped.getClass() == wanted ? mapped : null;
  }

  /// Of a file that was just made, in the first folder where that can be.
  ///
  /// @return null if there is none: the loop stays cold, and the way through tiles is used
  private static @Nullable MemorySegment mapped() {
    for (Path folder : FOLDERS) {
      try {
        return mapped(folder);
      } catch (IOException _) {
        // the next one
      }
    }
    return null;
  }

  private static MemorySegment mapped(Path folder) throws IOException {
    Path file = Files.createTempFile(folder, "comm4j-", null);
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      ByteBuffer zeros = ByteBuffer.allocate(BYTES); // where there is no room it is told now
      while (zeros.hasRemaining()) {
        channel.write(zeros);
      }
      return channel.map(MapMode.READ_WRITE, 0, BYTES, Arena.ofAuto());
    } finally {
      Files.delete(file);
    }
  }
}
