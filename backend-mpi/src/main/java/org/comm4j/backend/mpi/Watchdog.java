package org.comm4j.backend.mpi;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.CommException;
import org.comm4j.api.Operation;
import org.jspecify.annotations.Nullable;

/// Watches calls that are in the library's blocking functions, where nothing can be thrown: says
/// who waits, and ends the job at the deadline, or when a call can't end because a rank is gone.
/// One daemon thread from the first such call to the end of the job.
final class Watchdog {
  private static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(500);

  /// How long a call may go on after the session has told of a failure, before the job is ended.
  /// What a rank did before it left has come by then.
  private static final long GRACE_NS = TimeUnit.SECONDS.toNanos(2);

  /// For the launcher to pass on what was said. MPICH's drops what it has not read when the job
  /// ends: seen once in seven jobs beside 20 busy processes on 2 processors.
  private static final long TELL_NS = TimeUnit.MILLISECONDS.toNanos(500);

  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.mpi");

  private final MpiJob job;
  private volatile @Nullable Thread thread;
  private volatile boolean closed;

  Watchdog(MpiJob job) {
    this.job = job;
  }

  /// What a group's caller does in the library. Written at each call by that thread, so it is
  /// cheap: stores with release, no fence.
  static final class Post {
    private static final VarHandle COUNT;

    static {
      try {
        COUNT = MethodHandles.lookup().findVarHandle(Post.class, "count", long.class);
      } catch (ReflectiveOperationException e) {
        throw new ExceptionInInitializerError(e);
      }
    }

    private long count; // odd while a call is in the library
    private @Nullable String label;
    private @Nullable Operation call;
    private long number;
    private long seen; // these four are the watchdog's
    private long seenNs;
    private long warnedNs;
    private long hopefulNs; // when the call could last end, as far as was known

    void enter(String label, @Nullable Operation call, long number) {
      this.label = label;
      this.call = call;
      this.number = number;
      COUNT.setRelease(this, count + 1);
    }

    void leave() {
      call = null; // its memory is the user's
      COUNT.setRelease(this, count + 1);
    }
  }

  /// Watches from now on.
  void start() {
    if (thread == null) {
      synchronized (this) {
        if (thread == null && !closed) {
          thread =
              Thread.ofPlatform()
                  .daemon()
                  .name("comm4j-mpi-watchdog-" + job.session().rank())
                  .start(this::run);
        }
      }
    }
  }

  void close() {
    closed = true;
    LockSupport.unpark(thread);
  }

  private void run() {
    long tickNs = Math.min(TICK_NS, Math.max(1_000_000, job.timeoutNs() / 20));
    while (!closed) {
      LockSupport.parkNanos(tickNs);
      for (MpiGroup group : job.groups()) {
        look(group, group.post(), System.nanoTime());
      }
    }
  }

  void look(MpiGroup group, Post post, long now) {
    long count = (long) Post.COUNT.getAcquire(post);
    String label = post.label;
    if (count % 2 == 0 || count != post.seen || label == null) {
      post.seen = count;
      post.seenNs = now;
      post.warnedNs = now;
      post.hopefulNs = now;
      return;
    }
    long waitedNs = now - post.seenNs;
    String what =
        "rank %d has waited %.1f s in %s of '%s', in the library's blocking function"
            .formatted(group.rank(), waitedNs / 1e9, label, group.name());
    if (waitedNs >= job.timeoutNs()) {
      end(
          what
              + " for ranks that have not come, or call something else; raise COMM_TIMEOUT if they may"
              + " take longer, set COMM_CHECK=full to see whether they call something else, or use"
              + " COMM_MPI_WAIT=test, where this is an exception");
    }
    CommException failure = hopeless(group, post, count, now);
    if (failure != null) {
      end(what + "; it can't end: " + failure.getMessage());
    } else if (now - post.warnedNs >= MpiGroup.STALL_WARNING_NS) {
      post.warnedNs = now;
      LOG.log(System.Logger.Level.WARNING, what);
    }
  }

  /// Why a call can't end, once it has gone on in spite of that for the time of grace.
  private static @Nullable CommException hopeless(MpiGroup group, Post post, long count, long now) {
    CommException why = group.failure();
    Operation call = post.call;
    if (why == null && call != null) {
      why = group.left(call, post.number);
    }
    if (why == null || (long) Post.COUNT.getAcquire(post) != count) { // or it was another call's
      post.hopefulNs = now;
    }
    return now - post.hopefulNs >= GRACE_NS ? why : null;
  }

  private void end(String why) {
    System.err.println("comm4j: " + why + "; ending the job with MPI_Abort");
    System.err.flush();
    LockSupport.parkNanos(TELL_NS);
    job.abortProcess(1);
  }
}
