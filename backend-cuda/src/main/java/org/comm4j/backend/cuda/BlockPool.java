package org.comm4j.backend.cuda;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import java.util.function.Predicate;
import org.comm4j.api.BackendException;
import org.jspecify.annotations.Nullable;

/// Memory that is used again. The driver waits for all kernels of the process when memory is freed,
/// and a kernel waits for its peers: so what is given back is kept for the next one who wants as
/// much, and freed when the driver has no more, or at the end. Nobody is kept out while the driver
/// is asked. Thread-safe.
///
/// @param <B> a block of memory
final class BlockPool<B> {
  private static final long SMALLEST = 512;
  private static final long LARGE = 1 << 20;

  private final LongFunction<B> allocate;
  private final Consumer<B> free;
  private final Predicate<Runnable> whileIdle;
  private final Map<Long, Deque<B>> unused = new HashMap<>();
  private final List<B> discarded = new ArrayList<>();
  private final Set<B> taken = new HashSet<>();

  /// @param allocate makes a block of so many bytes; throws what the driver says
  /// @param whileIdle frees what nobody uses when the driver has no more, and returns whether it
  ///   did: not where that would wait for kernels that wait for others, now or before its end
  BlockPool(LongFunction<B> allocate, Consumer<B> free, Predicate<Runnable> whileIdle) {
    this.allocate = allocate;
    this.free = free;
    this.whileIdle = whileIdle;
  }

  /// {@return how large a block is for so many bytes} At most twice as large, of large ones at most
  /// 1 MiB larger.
  private static long blockBytes(long bytes) {
    return bytes > LARGE
        ? Math.ceilDiv(bytes, LARGE) * LARGE
        : Long.highestOneBit(2 * Math.max(SMALLEST, bytes) - 1);
  }

  /// Takes a block of at least so many bytes; what is in it is anything.
  ///
  /// @throws BackendException if the driver has none
  B take(long bytes) {
    long size = blockBytes(bytes);
    try {
      return next(size);
    } catch (BackendException e) {
      List<B> found = new ArrayList<>(1);
      // not under this one's lock: who is asked may wait for whoever gives a block back
      if (!CudaDriver.isFull(e) || !whileIdle.test(() -> found.add(freeAndTake(size, e)))) {
        throw e;
      }
      return found.getFirst();
    }
  }

  private B next(long size) {
    B again = again(size);
    if (again != null) {
      return again;
    }
    B made = allocate.apply(size);
    synchronized (this) {
      taken.add(made);
    }
    return made;
  }

  private synchronized @Nullable B again(long size) {
    Deque<B> blocks = unused.get(size);
    B block = blocks == null ? null : blocks.poll();
    if (block != null) {
      taken.add(block);
    }
    return block;
  }

  private B freeAndTake(long size, BackendException full) {
    B again = again(size);
    if (again == null && !freeUnused()) {
      throw full;
    }
    return again == null ? next(size) : again;
  }

  /// Gives a block back.
  ///
  /// @param bytes as given to [#take]
  synchronized void giveBack(long bytes, B block) {
    taken.remove(block);
    unused.computeIfAbsent(blockBytes(bytes), _ -> new ArrayDeque<>()).push(block);
  }

  /// Gives a block back that nobody may take again; it is freed with what nobody uses.
  synchronized void discard(B block) {
    taken.remove(block);
    discarded.add(block);
  }

  /// {@return whether somebody has taken a block and not given it back}
  synchronized boolean isTaken(B block) {
    return taken.contains(block);
  }

  /// Frees what nobody uses.
  ///
  /// @return whether there was any
  /// @throws BackendException if the driver refuses some of it; the rest is freed
  boolean freeUnused() {
    List<B> blocks = drain();
    BackendException failure = null;
    for (B block : blocks) {
      try {
        free.accept(block);
      } catch (BackendException e) {
        failure = e;
      }
    }
    if (failure != null) {
      throw failure;
    }
    return !blocks.isEmpty();
  }

  private synchronized List<B> drain() {
    List<B> drained = new ArrayList<>(discarded);
    unused.values().forEach(drained::addAll);
    discarded.clear();
    unused.clear();
    return drained;
  }
}
