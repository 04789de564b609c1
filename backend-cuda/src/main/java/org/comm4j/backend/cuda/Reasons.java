package org.comm4j.backend.cuda;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommException;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.spi.Session;
import org.jspecify.annotations.Nullable;

/// Why a communicator's calls fail: what kernels have said when they left, in words, and what ranks
/// tell each other, by the session, of what they call. Has no lock, as who asks may have a call's.
final class Reasons {
  private static final Duration TELL = Duration.ofSeconds(5); // a peer's process may pause
  private static final Duration LOOK = Duration.ofMillis(20);

  private final DeviceCalls calls;
  private final CudaCommunicator communicator;
  private final Session session;
  private final String key;

  /// @param key the communicator's alone in the session
  Reasons(DeviceCalls calls, Session session, String key) {
    this.calls = calls;
    this.communicator = calls.communicator();
    this.session = session;
    this.key = key;
  }

  /// Breaks the communicator where a call has failed.
  ///
  /// @return why one failed whose kernels have ended; null if it did not
  @Nullable CommException after(DeviceCall call, DeviceGroup group) {
    Control control = group.control();
    if (control == null) {
      return null;
    }
    Control.Outcome outcome = control.outcome(); // first, as kernels write it last
    long number = control.number();
    if (number > call.number()) {
      return null;
    }
    CommException reason =
        reason(outcome, control, number == 0 ? call : calls.callOf(number, call));
    return reason == null && group.hasLeft() ? givenUp(call) : reason;
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

  private @Nullable CommException reason(
      Control.Outcome outcome, Control control, DeviceCall call) {
    List<Integer> concerned = control.concerns().stream().boxed().toList();
    return switch (outcome) {
      case DONE -> null;
      case ABORTED -> {
        tell(call);
        yield failureOr(call.text() + " was aborted");
      }
      case LATE -> communicator.breakWith(late(call, concerned));
      case MISMATCH -> communicator.breakWith(mismatch(call, concerned.getFirst()));
      case LEFT -> communicator.breakWith(left(call, concerned.getFirst()));
    };
  }

  /// Who leaves says why, by the host, which may take longer than a kernel.
  private CommException left(DeviceCall call, int peer) {
    long endNs = System.nanoTime() + 2 * TELL.toNanos(); // it may wait as long for a peer
    while (isOfUse() && System.nanoTime() - endNs < 0) {
      LockSupport.parkNanos(this, DeviceCall.LONG_NS);
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
    return new CollectiveTimeoutException(
        missing,
        "rank %d waited %.1f s in %s of '%s' for rank(s) %s, who are alive but have not come; raise COMM_TIMEOUT if they may take longer"
            .formatted(
                communicator.rank(),
                communicator.timeoutNs() / 1e9,
                call.text(),
                communicator.name(),
                missing));
  }

  /// {@return whether it matters what a peer has to say: not where the communicator is broken, as
  /// by a peer that is gone, and who closes it does not wait for that}
  private boolean isOfUse() {
    return communicator.failure() == null && calls.mayBegin();
  }

  /// {@return that a peer calls something else} Both say what, and wait a moment for that.
  MismatchedCallException mismatch(DeviceCall call, int peer) {
    tell(call);
    return new MismatchedCallException(
        "rank %d started %s but rank %d started %s"
            .formatted(peer, told(peer), communicator.rank(), call.text()));
  }

  /// Lets peers that find out that this rank does something else say what.
  private void tell(DeviceCall call) {
    try {
      session.put(
          key + "/call/" + communicator.rank(), call.text().getBytes(StandardCharsets.UTF_8));
    } catch (CommException | IllegalStateException _) {
      // the session is over; then nobody asks
    }
  }

  private String told(int peer) {
    long endNs = System.nanoTime() + TELL.toNanos();
    do {
      try {
        return new String(session.get(key + "/call/" + peer, LOOK), StandardCharsets.UTF_8);
      } catch (CollectiveTimeoutException _) {
        // not yet
      } catch (CommException | IllegalStateException _) {
        break;
      }
    } while (isOfUse() && System.nanoTime() - endNs < 0);
    return "something else";
  }
}
