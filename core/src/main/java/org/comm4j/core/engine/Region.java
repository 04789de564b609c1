package org.comm4j.core.engine;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.comm4j.api.ClosedException;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.SharedRegion;
import org.jspecify.annotations.Nullable;

/// The life of a region, wherever its memory is. Looking at it and reading wait for nobody: a
/// user-defined operator may do so while another thread, which closes the region, waits for the
/// call that runs the operator.
///
/// @param <D> whose memory that is
public abstract class Region<D extends CommData> implements SharedRegion<D> {
  private final DataType type;
  private final long count;
  private final boolean leader;
  private final Owner owner;
  private final AtomicInteger readers = new AtomicInteger();
  private final ReentrantLock lock = new ReentrantLock();
  private volatile Phase phase = Phase.ALLOCATED; // set with the lock
  private volatile boolean isClosing;
  private volatile @Nullable String use; // what the thread does that has the lock, if not closing

  /// Whose memory a region is.
  public interface Owner {
    /// Ends the population; a collective of the ranks that share the region.
    void fence();

    /// Takes the region from this rank, which needs it no more. Not called again once it returned.
    ///
    /// @throws IllegalStateException if an operation in flight uses the region, which stays
    void close();
  }

  /// A region that is allocated.
  ///
  /// @param leader whether this rank writes it
  protected Region(DataType type, long count, boolean leader, Owner owner) {
    this.type = type;
    this.count = count;
    this.leader = leader;
    this.owner = owner;
  }

  /// {@return the whole region}
  ///
  /// @param isReadOnly whether nobody may write it, if that can be said
  protected abstract D whole(boolean isReadOnly);

  /// Copies into a part of the region.
  protected abstract void copyIn(HostData source, D part);

  /// Copies out of a part of the region.
  protected abstract void copyOut(D part, HostData target);

  /// {@return a part of data, as [CommData] has it}
  protected abstract D part(D data, long from, long count);

  @Override
  public final DataType type() {
    return type;
  }

  @Override
  public final long count() {
    return count;
  }

  @Override
  public final Phase phase() {
    return phase;
  }

  @Override
  public final void populate(Consumer<D> writer) {
    populate("populate", writer);
  }

  @Override
  public final void write(long from, HostData source) {
    populate("write", whole -> copyIn(source, part("source", whole, from, source)));
  }

  private void populate(String what, Consumer<D> writer) {
    if (!leader) {
      throw new IllegalStateException(
          "%s: only the leader, the host's rank 0, writes a region; ask isLeader()"
              .formatted(what));
    }
    lock.lock();
    String outer = use;
    try {
      if (phase != Phase.ALLOCATED && phase != Phase.POPULATED) {
        throw wrong(what, "before the fence");
      }
      use = "writes";
      writer.accept(whole(false));
      phase = Phase.POPULATED;
    } finally {
      use = outer;
      lock.unlock();
    }
  }

  /// The lock does not keep the writer itself out.
  private void checkNotWriting(String what) {
    if (use != null) {
      throw new IllegalStateException(
          "%s: the region is being written by populate (expected: called after it)"
              .formatted(what));
    }
  }

  private D part(String what, D whole, long from, HostData other) {
    if (other.type() != type) {
      throw new IllegalArgumentException(
          "%s: %s (expected: %s, the type of the region)".formatted(what, other, type));
    }
    return part(whole, from, other.count());
  }

  @Override
  public final void fence() {
    lock.lock();
    try {
      if (phase != Phase.ALLOCATED && phase != Phase.POPULATED) {
        throw wrong("fence", "once, before the close");
      }
      checkNotWriting("fence");
      fenceOwner();
      phase = Phase.FENCED;
    } finally {
      lock.unlock();
    }
  }

  private void fenceOwner() {
    use = "fences";
    try {
      owner.fence();
    } finally {
      use = null;
    }
  }

  @Override
  public final D data() {
    return fenced("data");
  }

  @Override
  public final void read(long from, HostData target) {
    readers.incrementAndGet();
    try {
      if (isClosing) {
        throw wrong("read", "before another thread closes it");
      }
      copyOut(part("target", fenced("read"), from, target), target);
    } finally {
      readers.decrementAndGet();
    }
  }

  private D fenced(String what) {
    if (phase != Phase.FENCED) {
      throw wrong(what, "between fence and close");
    }
    return whole(true);
  }

  @Override
  public final void close() {
    lockToClose();
    try {
      if (phase == Phase.CLOSED) {
        return;
      }
      checkNotWriting("close");
      isClosing = true;
      if (readers.get() != 0) {
        throw inUse("reads");
      }
      closeOwner();
      phase = Phase.CLOSED;
    } finally {
      isClosing = false;
      lock.unlock();
    }
  }

  /// Waits for nobody but a thread that closes the region too: a fence waits for other ranks.
  private void lockToClose() {
    while (!lock.tryLock()) {
      String other = use;
      if (other != null) {
        throw inUse(other);
      }
      Thread.yield();
    }
  }

  private static IllegalStateException inUse(String how) {
    return new IllegalStateException(
        "close: another thread %s the region (expected: called after it)".formatted(how));
  }

  private void closeOwner() {
    try {
      owner.close();
    } catch (CommException | ClosedException _) {
      // the communicator is broken or closed: the leader has the memory back when this rank leaves
    }
  }

  private IllegalStateException wrong(String what, String when) {
    return new IllegalStateException(
        "%s: the region is %s (expected: called %s)".formatted(what, phase, when));
  }
}
