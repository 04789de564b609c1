package org.comm4j.cli;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.BitSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.comm4j.api.Communicator;
import org.comm4j.api.ReduceOp;
import org.comm4j.core.session.OwnFolder;
import org.comm4j.core.session.Processors;
import org.jspecify.annotations.Nullable;

/// A few cache lines that all ranks of one host share, processes or threads: a barrier that does not
/// depend on what is measured, and a probe of how far apart the processors of ranks 0 and 1 are.
///
///     offset   0  arrivals: round k of the barrier is over at k·size
///     offset 128  not 0: a rank gave up
///     offset 256  ping of rank 0, offset 384 pong of rank 1
///
/// It is a file that rank 0 makes in a folder of its user's alone, and deletes once all have mapped it.
final class SharedLines implements AutoCloseable {
  private static final String FILE = "lines";
  private static final int BYTES = 4096;
  private static final long ARRIVALS = 0;
  private static final long FAILED = 128;
  private static final long PING = 256;
  private static final long PONG = 384;
  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  /// Where ranks have a processor each they look this often before they give it up.
  private static final int SPINS = 4000;

  private static final int SPINS_SHARING = 40;
  private static final int YIELDS_PER_POKE = 1 << 10;
  private static final long LEAST_PATIENCE_NS = TimeUnit.SECONDS.toNanos(60);

  /// How many times as long as expected a measurement may take.
  private static final long PATIENCE_FACTOR = 3;

  private static final long NAP_NS = TimeUnit.MICROSECONDS.toNanos(200);

  private static final int TRIPS = 40;
  private static final int BATCHES = 32; // so many that they are soon compiled
  private static final int SPINS_PER_LOOK = 4096;

  /// Rank 1 may have to wait for its turn on a processor; rank 0 gives up before it does.
  private static final long PING_DEADLINE_NS = TimeUnit.MILLISECONDS.toNanos(30);

  private static final int PROCESSOR_WORDS = 128; // of 64 each, as many as Linux may have

  private static final long PONG_DEADLINE_NS = TimeUnit.SECONDS.toNanos(3);

  private final Communicator communicator;
  private final Arena arena;
  private final MemorySegment lines;
  private final int processors;
  private final LongSupplier nanoTime;
  private final int spins;
  private long round;
  private long probes;

  /// @param processors how many all ranks together may use
  private SharedLines(
      Communicator communicator,
      Arena arena,
      MemorySegment lines,
      int processors,
      LongSupplier nanoTime) {
    this.communicator = communicator;
    this.nanoTime = nanoTime;
    this.arena = arena;
    this.lines = lines;
    this.processors = processors;
    this.spins = communicator.size() <= processors ? SPINS : SPINS_SHARING;
  }

  /// Shares lines between all ranks; a collective.
  ///
  /// @return empty on every rank if they are on several hosts, or can't
  static Optional<SharedLines> of(Communicator communicator) {
    return of(communicator, System::nanoTime);
  }

  /// @param nanoTime monotonic, by which a barrier gives its peers up
  static Optional<SharedLines> of(Communicator communicator, LongSupplier nanoTime) {
    if (communicator.topology().hosts().size() != 1) {
      return Optional.empty();
    }
    OwnFolder folder = communicator.rank() == 0 ? create() : null;
    Arena arena = Arena.ofShared();
    try {
      String shared =
          broadcast(communicator, folder == null ? "" : folder.path().resolve(FILE).toString());
      MemorySegment lines = shared.isEmpty() ? null : map(Path.of(shared), arena);
      boolean all = allTrue(communicator, lines != null);
      if (lines != null && all) {
        return Optional.of(
            new SharedLines(communicator, arena, lines, processors(communicator), nanoTime));
      }
      arena.close();
      return Optional.empty();
    } finally {
      if (folder != null) {
        folder.close();
      }
    }
  }

  /// How many processors all ranks together may use: each of them may be bound to one.
  private static int processors(Communicator communicator) {
    int available = Runtime.getRuntime().availableProcessors();
    Set<Integer> own = Processors.ofThisThread();
    long[] words = new long[PROCESSOR_WORDS];
    if (own.size() == available) { // else a quota leaves fewer, or they are not known
      long[] bits = Processors.bits(own);
      System.arraycopy(bits, 0, words, 0, Math.min(bits.length, words.length));
    }
    communicator.allReduce(words, ReduceOp.BIT_OR);
    int[] all = {Math.max(available, BitSet.valueOf(words).cardinality())};
    communicator.allReduce(all, ReduceOp.MAX);
    return all[0];
  }

  private static @Nullable OwnFolder create() {
    try {
      OwnFolder folder = LaunchFolder.create(LaunchFolder.sharedMemory());
      try {
        Files.write(folder.path().resolve(FILE), new byte[BYTES], StandardOpenOption.CREATE_NEW);
        return folder;
      } catch (IOException e) {
        folder.close();
        throw e;
      }
    } catch (IOException e) {
      return null; // then nobody can map it
    }
  }

  private static @Nullable MemorySegment map(Path file, Arena arena) {
    try (var channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return channel.map(FileChannel.MapMode.READ_WRITE, 0, BYTES, arena);
    } catch (IOException e) {
      return null;
    }
  }

  private static String broadcast(Communicator communicator, String text) {
    byte[] padded = new byte[512];
    byte[] own = text.getBytes(StandardCharsets.UTF_8);
    System.arraycopy(own, 0, padded, 0, Math.min(own.length, padded.length));
    communicator.broadcast(padded, 0);
    return new String(padded, StandardCharsets.UTF_8).replace("\0", "");
  }

  private static boolean allTrue(Communicator communicator, boolean mine) {
    int[] value = {mine ? 1 : 0};
    communicator.allReduce(value, ReduceOp.MIN);
    return value[0] == 1;
  }

  /// Returns when all ranks have called it.
  ///
  /// @throws IllegalStateException if a rank gave up, or does not come
  void barrier() {
    barrier(0);
  }

  /// The same.
  ///
  /// @param expectedNs for how long peers may be busy meanwhile, as far as is known
  void barrier(long expectedNs) {
    barrier(false, Math.max(LEAST_PATIENCE_NS, PATIENCE_FACTOR * expectedNs));
  }

  /// @param leaves whether the processor is left to others meanwhile
  private void barrier(boolean leaves, long patienceNs) {
    long goal = ++round * communicator.size();
    long _ = (long) WORD.getAndAdd(lines, ARRIVALS, 1L);
    for (int i = 0; i < (leaves ? 1 : spins); i++) {
      if (arrivals() >= goal) {
        return;
      }
      Thread.onSpinWait();
    }
    long start = nanoTime.getAsLong();
    for (int yields = 1; arrivals() < goal; yields++) {
      if (leaves) {
        LockSupport.parkNanos(NAP_NS);
      } else {
        Thread.yield();
      }
      if (yields % YIELDS_PER_POKE == 0) {
        communicator.sync(); // lets a transport end what it has still to do for others
      }
      if ((long) WORD.getAcquire(lines, FAILED) != 0) {
        throw new IllegalStateException("a peer gave up");
      }
      if (nanoTime.getAsLong() - start > patienceNs) {
        throw new IllegalStateException(
            "rank %d waited %d s for its peers between two measurements"
                .formatted(communicator.rank(), TimeUnit.NANOSECONDS.toSeconds(patienceNs)));
      }
    }
  }

  private long arrivals() {
    return (long) WORD.getAcquire(lines, ARRIVALS);
  }

  /// Tells the others not to wait.
  void fail() {
    WORD.setRelease(lines, FAILED, 1L);
  }

  /// The time that a cache line takes from rank 0's processor to rank 1's.
  ///
  /// @return on rank 0 the time in ns, the best of some batches, or 0 if it is not known; on others
  ///   0
  double probe() {
    long end = probes + TRIPS * BATCHES;
    double best = 0;
    if (communicator.size() > 1 && processors > 1) {
      barrier();
      best =
          switch (communicator.rank()) {
            case 0 -> ping(end);
            case 1 -> pong(end);
            default -> 0;
          };
      // Others leave their processors, or 0 and 1 might have to share one.
      barrier(communicator.rank() > 1, LEAST_PATIENCE_NS);
    }
    probes = end;
    return best;
  }

  private double ping(long end) {
    long start = System.nanoTime();
    long best = Long.MAX_VALUE;
    long k = probes;
    while (k < end) {
      long batch = System.nanoTime();
      for (int trip = 0; trip < TRIPS; trip++) {
        WORD.setRelease(lines, PING, ++k);
        if (!await(PONG, k, start, PING_DEADLINE_NS)) {
          WORD.setRelease(lines, PING, end);
          return best == Long.MAX_VALUE ? 0 : best / (2.0 * TRIPS);
        }
      }
      best = Math.min(best, System.nanoTime() - batch);
    }
    return best / (2.0 * TRIPS);
  }

  private double pong(long end) {
    long start = System.nanoTime();
    for (long k = probes + 1; k <= end; k++) {
      if (!await(PING, k, start, PONG_DEADLINE_NS)) {
        break;
      }
      WORD.setRelease(lines, PONG, k);
    }
    WORD.setRelease(lines, PONG, end);
    return 0;
  }

  private boolean await(long line, long value, long start, long deadlineNs) {
    for (int looks = 1; (long) WORD.getAcquire(lines, line) < value; looks++) {
      if (looks % SPINS_PER_LOOK == 0 && System.nanoTime() - start > deadlineNs) {
        return false;
      }
    }
    return true;
  }

  /// Unmaps the lines.
  @Override
  public void close() {
    arena.close();
  }
}
