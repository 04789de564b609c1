package org.comm4j.api.spi;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The ranks of one launch, brought together. It exchanges small messages, tells who has died, and
/// outlives every communicator that is built on it.
///
/// Thread-safe. Ranks are those of the launch (*world ranks*). One daemon thread per session
/// listens and keeps it alive; it runs no user code but the actions for news.
///
/// All ranks see what happens in one order: if a failure decides an exchange on one rank, it
/// decides it on all, and whoever comes later is told the same. When the session itself is lost,
/// [#news()] says so ([News#evicted()]) and calls throw: [org.comm4j.api.PeerFailedException] where
/// the rank that hosted it is gone, [org.comm4j.api.EvictedException] where this rank is out or the
/// launcher is gone.
public interface Session extends AutoCloseable {
  /// {@return this process's rank}
  int rank();

  /// {@return how many ranks joined}
  int size();

  /// Names the session; random, the same on every rank, `[0-9a-f]{16,32}`.
  ///
  /// @return a random name, the same on every rank, `[0-9a-f]{16,32}`
  String id();

  /// {@return what a rank said when it joined}
  ///
  /// @param rank a world rank
  Member member(int rank);

  /// All-gather of bytes among all ranks.
  ///
  /// @param key the same on all ranks; each key is used once, but by a rank whose time was over or
  ///   that was interrupted: it may go on waiting with it, and gives nothing more
  /// @param mine at most 64 KiB
  /// @param timeout how long to wait at most
  /// @return every rank's bytes
  /// @throws org.comm4j.api.PeerFailedException if a rank dies before it has contributed
  /// @throws org.comm4j.api.CollectiveTimeoutException if a rank does not come in time
  List<byte[]> exchange(String key, byte[] mine, Duration timeout);

  /// All-gather of bytes among those of `members` that are alive. All of them get the same answer:
  /// it is complete when every member has contributed or is known to have failed. Who has failed by
  /// then counts as failed, also if it had contributed; who has left counts if it had.
  ///
  /// @param key the same on all members; each key is used once, but by a rank whose time was over
  ///   or that was interrupted: it may go on waiting with it, and gives nothing more
  /// @param members world ranks, the same on all of them, this one included
  /// @param mine at most 64 KiB
  /// @param timeout how long to wait at most
  /// @return for each member, in the order of `members`, its bytes, or null if it has failed
  /// @throws org.comm4j.api.EvictedException if the others have given this rank up, or the session
  ///   is lost
  List<byte @Nullable []> agree(String key, List<Integer> members, byte[] mine, Duration timeout);

  /// Returns when all ranks have called it.
  ///
  /// @param key the same on all ranks; each key is used once
  /// @param timeout how long to wait at most
  default void barrier(String key, Duration timeout) {
    exchange(key, new byte[0], timeout);
  }

  /// Stores bytes under a key, for [#get]. The first value stays; of more than ten thousand the
  /// oldest are forgotten.
  ///
  /// @param key shared by all ranks of the session
  /// @param value at most 64 KiB
  void put(String key, byte[] value);

  /// Waits for the value of a key.
  ///
  /// @param key as given to [#put]
  /// @param timeout how long to wait at most
  /// @return the value
  /// @throws org.comm4j.api.CollectiveTimeoutException if nobody puts it in time
  byte[] get(String key, Duration timeout);

  /// Tells all ranks that a communicator is broken.
  ///
  /// @param scope which one, in the backend's own numbers
  /// @param reason what the backend wants the others to know, at most 4 KiB
  void abort(long scope, byte[] reason);

  /// Ends the processes of all ranks.
  ///
  /// @param code their exit code, `1..255`
  void abortProcesses(int code);

  /// {@return what is known now} One volatile read: backends look at it in every wait loop, and
  /// compare with `!=` to see whether anything is new.
  News news();

  /// Has an action run whenever [#news()] changes, on the session's thread, so that sleepers wake.
  /// Where the ranks are threads and the session has none, it runs on the thread that causes the
  /// news.
  ///
  /// @param action short; must not block
  /// @return ends that; who registers an action for less than the whole session closes it, since
  ///   else the session keeps it
  NewsAction onNews(Runnable action);

  /// Says goodbye and leaves. Peers that still wait for this rank see it as failed (`left the
  /// session`); what it has contributed still counts. Idempotent, at most 0.5 s, never throws.
  /// Where rank 0 hosts the session it goes on doing so, in a thread that keeps its process from
  /// ending by itself, until the others have left too.
  @Override
  void close();

  /// An action that [#onNews] has run until this is closed.
  interface NewsAction extends AutoCloseable {
    /// Forgets the action. What runs at this moment need not have ended. Idempotent, never throws.
    @Override
    void close();
  }

  /// What a rank says when it joins.
  ///
  /// @param rank its world rank
  /// @param host where it runs
  /// @param pid its process
  /// @param processors those of its host that it may run on, by the kernel's numbers; empty where
  ///   they are not known
  /// @param backends names of the backends that it can use, best first
  record Member(
      int rank, HostIdentity host, long pid, Set<Integer> processors, List<String> backends) {
    /// Copies the collections.
    public Member {
      processors = Set.copyOf(processors);
      backends = List.copyOf(backends);
    }
  }

  /// What is known of failures. Immutable; lists only grow, but of thousands of aborts the oldest
  /// are forgotten.
  ///
  /// @param failures ranks that have failed or left, in the order in which that became known
  /// @param aborts communicators that were broken, in order
  /// @param evicted whether the others have given this rank up, or the session itself is lost; null
  ///   while all is well, else why
  record News(List<Failure> failures, List<Abort> aborts, @Nullable String evicted) {
    /// Nothing has happened.
    public static final News NONE = new News(List.of(), List.of(), null);

    /// Copies the collections.
    public News {
      failures = List.copyOf(failures);
      aborts = List.copyOf(aborts);
    }

    /// {@return whether a rank has failed or left} Of those that are gone [Failure#left()] tells
    /// which.
    ///
    /// @param rank a world rank
    public boolean isGone(int rank) {
      for (int i = 0; i < failures.size(); i++) { // transports ask with every payload
        if (failures.get(i).rank() == rank) {
          return true;
        }
      }
      return false;
    }
  }

  /// A rank that is gone.
  ///
  /// @param rank its world rank
  /// @param evidence how it is known, for example `its control connection closed`
  /// @param cause what it threw, where it is a thread of this JVM, else null
  record Failure(int rank, String evidence, @Nullable Throwable cause) {
    /// The evidence where a rank has left in order.
    public static final String LEFT = "left the session";

    /// What is in the evidence where a rank has not been heard of for too long, or has not heard of
    /// who hosts the session.
    public static final String SILENT = "silent for ";

    /// What is in the evidence where a rank does not take what the session has for it.
    public static final String UNREAD = "it does not read what it is sent";

    /// What is in the evidence where a rank can't follow a session in a file any more, and says why
    /// itself.
    public static final String CUT_OFF = "its session failed";

    /// How the evidence ends where the rank hosted the session, which has ended with it.
    public static final String HOSTED = "; it hosted the session, which has ended with it";

    /// {@return whether the rank has left in order} What it sent still arrives, and who needs
    /// nothing more of it is not concerned.
    public boolean left() {
      return evidence.equals(LEFT);
    }

    /// {@return whether the session has ended with the rank, which hosted it} Then [News#evicted()]
    /// says so to those who have no communicator with that rank.
    public boolean hosted() {
      return evidence.endsWith(HOSTED);
    }

    /// {@return whether the rank's process may still be there, by what is said of its end} It has
    /// left in order, or was only given up, or has lost a session in a file: what is stopped may go
    /// on later, and what it has begun on a device does. Where a process can be asked for, as on
    /// one's own host, that tells more: one that has lost its connection may be there too.
    public boolean mayGoOn() {
      return left()
          || evidence.contains(SILENT)
          || evidence.contains(UNREAD)
          || evidence.contains(CUT_OFF);
    }
  }

  /// A communicator that was broken by a rank.
  ///
  /// @param scope which one
  /// @param rank by whom, its world rank
  /// @param reason the backend's own bytes
  /// @param failuresBefore how many of [News#failures()] were known before
  record Abort(long scope, int rank, byte[] reason, int failuresBefore) {}
}
