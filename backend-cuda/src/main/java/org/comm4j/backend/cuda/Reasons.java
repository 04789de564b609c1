package org.comm4j.backend.cuda;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommException;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.spi.Session;
import org.jspecify.annotations.Nullable;

/// Why a communicator's calls fail: what kernels have said when they left, in words, and what ranks
/// tell each other, by the session, of what they call. Has no lock, as who asks may have a call's;
/// for the same reason it is the asker who waits, and asks again, except the communicator's thread.
final class Reasons {
  private static final long TELL_NS = TimeUnit.SECONDS.toNanos(5); // a peer's process may pause

  private final DeviceCalls calls;
  private final CudaCommunicator communicator;
  private final Session session;
  private final String key;
  private volatile boolean hasTold;

  /// How a call has ended.
  ///
  /// @param reason why it failed; null if it did not
  record Ending(@Nullable CommException reason) {
    static final Ending WELL = new Ending(null);
  }

  /// @param key the communicator's alone in the session
  Reasons(DeviceCalls calls, Session session, String key) {
    this.calls = calls;
    this.communicator = calls.communicator();
    this.session = session;
    this.key = key;
  }

  /// Breaks the communicator where a call has failed.
  ///
  /// @param endedNs for how long it has been known that its kernels have ended
  /// @return how it has ended; null while a peer may still say why it failed: ask again
  @Nullable Ending after(DeviceCall call, DeviceGroup group, long endedNs) {
    Control control = group.control();
    Control.Outcome outcome = control.outcome(); // first, as kernels write it last
    long number = control.number();
    if (number > call.number()) {
      return Ending.WELL;
    }
    DeviceCall first = number == 0 ? call : calls.callOf(number, call);
    List<Integer> concerned = control.concerns().stream().boxed().toList();
    return switch (outcome) {
      case DONE -> group.hasLeft() ? new Ending(givenUp(call)) : Ending.WELL;
      case ABORTED -> {
        tell(first);
        yield new Ending(failureOr(first.text() + " was aborted"));
      }
      case LATE -> broken(late(first, concerned, calls.crowding()));
      case MISMATCH -> {
        tell(first);
        yield broken(mismatch(first, concerned.getFirst(), endedNs));
      }
      case LEFT -> broken(left(first, concerned.getFirst(), endedNs));
    };
  }

  /// Its kernels may not have come, which they don't tell. One that has ended just before, seen by
  /// nobody, fails with the others.
  private CommException givenUp(DeviceCall call) {
    return failureOr(call.text() + " was given up");
  }

  private CommException failureOr(String aborted) {
    CommException failure = communicator.failure();
    return failure != null
        ? failure
        : communicator.breakWith(new AbortedException(communicator.rank(), aborted, null));
  }

  private @Nullable Ending broken(@Nullable CommException reason) {
    return reason == null ? null : new Ending(communicator.breakWith(reason));
  }

  /// Who leaves says why, by the host, which may take longer than a kernel.
  private @Nullable CommException left(DeviceCall call, int peer, long endedNs) {
    if (isOfUse() && endedNs < 2 * TELL_NS) { // it may wait as long for a peer
      return null;
    }
    CommException told = communicator.failure();
    return told != null
        ? told
        : new AbortedException(
            peer,
            "rank %d left while rank %d was in %s of '%s'"
                .formatted(peer, communicator.rank(), call.text(), communicator.name()),
            null);
  }

  /// {@return that ranks have not come to a call in time}
  CollectiveTimeoutException late(DeviceCall call, List<Integer> missing) {
    return late(call, missing, "");
  }

  /// @param also what else may be why
  private CollectiveTimeoutException late(DeviceCall call, List<Integer> missing, String also) {
    return new CollectiveTimeoutException(
        missing,
        "rank %d waited %.1f s in %s of '%s' for rank(s) %s, who are alive but have not come; raise COMM_TIMEOUT if they may take longer%s"
            .formatted(
                communicator.rank(),
                communicator.timeoutNs() / 1e9,
                call.text(),
                communicator.name(),
                missing,
                also));
  }

  /// {@return whether it matters what a peer has to say: not where the communicator is broken, as
  /// by a peer that is gone, and who closes it does not wait for that}
  private boolean isOfUse() {
    return communicator.failure() == null && calls.mayBegin();
  }

  /// {@return that a peer calls something else} Both say what, and wait a moment for that.
  MismatchedCallException mismatch(DeviceCall call, int peer) {
    tell(call);
    long beginNs = System.nanoTime();
    while (true) {
      MismatchedCallException known = mismatch(call, peer, System.nanoTime() - beginNs);
      if (known != null) {
        return known;
      }
      LockSupport.parkNanos(this, DeviceCall.LONG_NS);
    }
  }

  private @Nullable MismatchedCallException mismatch(DeviceCall call, int peer, long waitedNs) {
    String theirs = told(peer, waitedNs);
    return theirs == null
        ? null
        : new MismatchedCallException(
            "rank %d started %s but rank %d started %s"
                .formatted(peer, theirs, communicator.rank(), call.text()));
  }

  /// Lets peers that find out that this rank does something else say what.
  private void tell(DeviceCall call) {
    if (hasTold) {
      return;
    }
    hasTold = true;
    try {
      session.put(
          key + "/call/" + communicator.rank(), call.text().getBytes(StandardCharsets.UTF_8));
    } catch (CommException | IllegalStateException _) {
      // the session is over; then nobody asks
    }
  }

  /// {@return what a peer calls; null while it may still say that}
  private @Nullable String told(int peer, long waitedNs) {
    try {
      return new String(session.get(key + "/call/" + peer, Duration.ZERO), StandardCharsets.UTF_8);
    } catch (CollectiveTimeoutException _) {
      if (isOfUse() && waitedNs < TELL_NS) {
        return null;
      }
    } catch (CommException | IllegalStateException _) {
      // the session is over, and with it what could be said
    }
    return "something else";
  }
}
