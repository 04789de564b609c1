package org.comm4j.backend.cuda;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.BackendException;
import org.jspecify.annotations.Nullable;

/// Says for whom a communicator's calls wait that take long, once in a while. Thread-safe.
final class Stalls {
  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.cuda");
  private static final long ANSWER_NS = TimeUnit.SECONDS.toNanos(1); // of the device

  private final CudaCommunicator communicator;
  private final long everyNs;
  private long warnNs = System.nanoTime(); // from when on a stall is worth another warning
  private long askedNs;
  private boolean hasAsked;

  Stalls(CudaCommunicator communicator, Duration every) {
    this.communicator = communicator;
    this.everyNs = every.toNanos();
  }

  /// Looks at a call that has not ended.
  ///
  /// @param arrivals at its kernels; null if it has none that wait
  void look(DeviceCall call, @Nullable Arrivals arrivals) {
    long elapsedNs = call.elapsedNs();
    if (elapsedNs < everyNs) {
      return;
    }
    String whom = whom(call.number(), arrivals);
    if (whom != null) {
      LOG.log(
          System.Logger.Level.WARNING,
          "rank {0} has waited {1} s in {2} of ''{3}'' for {4}",
          communicator.rank(),
          TimeUnit.NANOSECONDS.toSeconds(elapsedNs),
          call.text(),
          communicator.name(),
          whom);
    }
  }

  /// Null if there is nothing to say now.
  private synchronized @Nullable String whom(long number, @Nullable Arrivals arrivals) {
    long now = System.nanoTime();
    if (now - warnNs < 0) {
      return null;
    }
    String whom = "other ranks";
    if (arrivals != null) {
      boolean isFirst = !hasAsked;
      if (isFirst) {
        hasAsked = true;
        askedNs = now;
      }
      Optional<List<Integer>> missing = missing(number, arrivals, isFirst);
      if (missing.isEmpty() && now - askedNs < ANSWER_NS) {
        return null;
      }
      whom =
          missing
              .map(ranks -> ranks.isEmpty() ? "its device" : "rank(s) " + ranks)
              .orElse("its device, or other ranks");
    }
    hasAsked = false;
    warnNs = now + everyNs;
    return whom;
  }

  private static Optional<List<Integer>> missing(long number, Arrivals arrivals, boolean isFirst) {
    try {
      if (isFirst) {
        arrivals.read();
      }
      return arrivals.missing(number);
    } catch (BackendException _) {
      return Optional.empty(); // the call will say it
    }
  }
}
