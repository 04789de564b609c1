package org.comm4j.backend.mpi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.Processors;
import org.jspecify.annotations.Nullable;

/// One launch's use of the library: from the opening of the first communicator to the close of the
/// last. The library itself ([Library]) outlives it, since it can be initialised only once.
final class MpiJob {
  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.mpi");
  private static final long PROGRESS_NS = 50_000;
  private static final int MOST_TOLD = 1000; // closed communicators, the last ones

  private final Session session;
  private final CommConfig config;
  private final boolean waitsInLibrary;
  private final boolean oversubscribed;
  private final long timeoutNs;
  private final int largestCount;
  private final long largestTried;
  private final StagingMemory memory = new StagingMemory();
  private final List<MpiGroup> groups = new CopyOnWriteArrayList<>();
  private final ConcurrentLinkedQueue<Runnable> later = new ConcurrentLinkedQueue<>();
  private final ConcurrentLinkedQueue<MpiBuffer> overdue = new ConcurrentLinkedQueue<>();
  private final Watchdog watchdog;
  private final ArrayDeque<Closed> closed = new ArrayDeque<>(); // guarded by itself
  private final AtomicBoolean isOver = new AtomicBoolean();
  private long proposed;
  private @Nullable Thread progress;
  private boolean sharesMemory = true;

  /// @param waitsInLibrary what all ranks have agreed on ([Wait#agree])
  MpiJob(Session session, CommConfig config, boolean waitsInLibrary) {
    this.session = session;
    this.config = config;
    this.oversubscribed = Processors.areFewerThanRanks(session);
    this.waitsInLibrary = waitsInLibrary;
    this.timeoutNs = config.timeout().toNanos();
    this.largestCount = LargestCount.of(config);
    this.largestTried = LargestCount.tried(config, Functions.hasLargeCounts());
    this.watchdog = new Watchdog(this);
  }

  Session session() {
    return session;
  }

  CommConfig config() {
    return config;
  }

  /// Whether blocking calls wait in the library's blocking functions.
  boolean waitsInLibrary() {
    return waitsInLibrary;
  }

  boolean isOversubscribed() {
    return oversubscribed;
  }

  boolean isFullyChecked() {
    return config.check() == CommConfig.CheckLevel.FULL;
  }

  long timeoutNs() {
    return timeoutNs;
  }

  /// What the library is told to count at most ([LargestCount#of]).
  int largestCount() {
    return largestCount;
  }

  /// The same for what was tried beyond ints ([LargestCount#tried]).
  long largestTried() {
    return largestTried;
  }

  StagingMemory memory() {
    return memory;
  }

  Watchdog watchdog() {
    return watchdog;
  }

  /// Whether all ranks of each host share memory in the library too.
  boolean sharesMemory() {
    return sharesMemory;
  }

  void sharesMemory(boolean found) {
    sharesMemory = found;
  }

  /// Proposes a number for a communicator: its ranks agree on the greatest of their proposals, of
  /// which no two are the same.
  synchronized long propose() {
    return ++proposed * session.size() + session.rank();
  }

  /// The part of such a number that grows, for names.
  synchronized long agreed(long id) {
    long number = id / session.size();
    proposed = Math.max(proposed, number);
    return number;
  }

  // --- communicators ---

  void add(MpiGroup group) {
    groups.add(group);
  }

  List<MpiGroup> groups() {
    return groups;
  }

  /// Closes what the library has lent. No call can begin between the look and the close: the
  /// library would have its memory.
  ///
  /// @param arena to whose close nothing is tied that calls the library
  /// @param what it is, for the message
  /// @throws IllegalStateException if an operation in flight uses it; then it stays open
  void closeUnused(Arena arena, MemorySegment memory, String what, Object data) {
    List<MpiGroup> all = List.copyOf(groups);
    lock(all);
    try {
      checkUnused(memory, what, data);
      close(arena, what, data);
    } finally {
      all.forEach(MpiGroup::unlock);
    }
  }

  private static void close(Arena arena, String what, Object data) {
    try {
      arena.close();
    } catch (IllegalStateException _) { // a thread is in the library with it
      throw inUse(what, data, "a call");
    }
  }

  /// Takes all locks, and waits for one only while it has no other: who has that one may want
  /// another, as a user-defined operator that calls a communicator which is not its own.
  private static void lock(List<MpiGroup> all) {
    MpiGroup busy = tryLock(all);
    while (busy != null) {
      MpiGroup first = busy;
      first.lock();
      busy = tryLock(all);
      first.unlock();
    }
  }

  /// Takes all locks or none.
  ///
  /// @return whose another thread has; null if there is none
  private static @Nullable MpiGroup tryLock(List<MpiGroup> all) {
    for (int i = 0; i < all.size(); i++) {
      if (!all.get(i).tryLock()) {
        all.subList(0, i).forEach(MpiGroup::unlock);
        return all.get(i);
      }
    }
    return null;
  }

  /// Refuses to close memory that a call has been given.
  ///
  /// @throws IllegalStateException if one is in flight
  void checkUnused(MemorySegment memory, String what, Object data) {
    MpiCall user = userOf(memory);
    if (user != null) {
      throw inUse(what, data, user.label());
    }
  }

  private static IllegalStateException inUse(String what, Object data, String user) {
    return new IllegalStateException(
        "%s %s is used by %s, which is in flight; await it first".formatted(what, data, user));
  }

  private @Nullable MpiCall userOf(MemorySegment memory) {
    if (memory.byteSize() > 0) {
      for (MpiGroup group : groups) {
        MpiCall user = group.userOf(memory);
        if (user != null) {
          return user;
        }
      }
    }
    return null;
  }

  /// A communicator that is closed on a rank.
  ///
  /// @param scope by which its ranks know it in the session
  /// @param collectives how many of it the rank had a part in
  private record Closed(long scope, long collectives) {
    static final int BYTES = 2 * Long.BYTES;
  }

  /// Notes how far this rank came with a communicator, for those who go on with it after this rank
  /// has left: they can't know what a collective of the library's still needs of it.
  void closed(long scope, long collectives) {
    synchronized (closed) {
      if (closed.size() == MOST_TOLD) {
        closed.removeFirst();
      }
      closed.add(new Closed(scope, collectives));
    }
  }

  private void tellClosed() {
    ByteBuffer told;
    synchronized (closed) {
      told = ByteBuffer.allocate(closed.size() * Closed.BYTES);
      closed.forEach(each -> told.putLong(each.scope()).putLong(each.collectives()));
    }
    try {
      session.put(closedKey(session.rank()), told.array());
    } catch (CommException _) {
      // the session is lost, and everybody knows that
    }
  }

  /// In how many collectives of a communicator a rank that has left had a part; 0 if it has not
  /// said so.
  ///
  /// @param leaver its world rank
  long collectivesOf(int leaver, long scope) {
    try {
      ByteBuffer told = ByteBuffer.wrap(session.get(closedKey(leaver), Duration.ZERO));
      while (told.remaining() >= Closed.BYTES) {
        Closed next = new Closed(told.getLong(), told.getLong());
        if (next.scope() == scope) {
          return next.collectives();
        }
      }
    } catch (CommException _) {
      // it left without a word
    }
    return 0;
  }

  private static String closedKey(int worldRank) {
    return "mpi/closed/" + worldRank;
  }

  /// Forgets a communicator; with the last one the job is over, also if two are the last.
  void remove(MpiGroup group) {
    groups.remove(group);
    freeOverdue();
    if (groups.isEmpty() && isOver.compareAndSet(false, true)) {
      watchdog.close();
      tellClosed();
      Library.jobEnded();
    }
  }

  /// Gives a buffer's memory back when no call uses it any more.
  void freeLater(MpiBuffer buffer) {
    overdue.add(buffer);
  }

  void freeOverdue() {
    overdue.removeIf(MpiBuffer::free);
  }

  /// Moves the calls of all communicators but one along.
  ///
  /// @return whether something moved
  boolean advanceOthers(MpiGroup waiting) {
    boolean moved = false;
    for (MpiGroup group : groups) {
      moved |= group != waiting && !group.isIdle() && group.tryAdvance();
    }
    return moved;
  }

  // --- progress without anybody waiting ---

  /// Runs an action soon, on the progress thread.
  void later(Runnable action) {
    later.add(action);
    startProgress();
  }

  /// Has calls moved along, on a thread of its own, until none is in flight.
  synchronized void startProgress() {
    if (progress == null) {
      progress =
          Thread.ofPlatform()
              .daemon()
              .name("comm4j-progress-" + session.rank())
              .start(this::runProgress);
    } else {
      LockSupport.unpark(progress);
    }
  }

  private void runProgress() {
    do {
      Runnable action = later.poll();
      if (action != null) {
        run(action);
        continue;
      }
      boolean moved = false;
      for (MpiGroup group : groups) {
        moved |= !group.isIdle() && group.tryAdvance();
      }
      if (!moved) {
        LockSupport.parkNanos(PROGRESS_NS);
      }
    } while (!endProgress());
  }

  private static void run(Runnable action) {
    try {
      action.run();
    } catch (Throwable thrown) {
      LOG.log(System.Logger.Level.WARNING, "an action on an ended call threw", thrown);
    }
  }

  private synchronized boolean endProgress() {
    if (later.isEmpty() && groups.stream().allMatch(MpiGroup::isIdle)) {
      progress = null;
      return true;
    }
    return false;
  }

  // --- the end of everything ---

  /// Ends the processes of all ranks. Does not return.
  void abortProcess(int code) {
    int ignored = Mpi.abort(Functions.constants().commWorld, code);
    Runtime.getRuntime().halt(code);
  }
}
