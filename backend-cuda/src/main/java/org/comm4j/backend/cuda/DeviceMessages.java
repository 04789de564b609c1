package org.comm4j.backend.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.ConcurrentUseException;
import org.comm4j.api.DeviceData;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.jspecify.annotations.Nullable;

/// Messages of data in devices' memory, through the host, where they meet those of its memory: one
/// end of a message may be on a device and the other one not.
///
/// A message is started when calls before it that use the same memory have ended, and the events
/// have been reached that the program lets the communicator wait for. What is sent is copied then;
/// what is received is in the device's memory when the receive has ended.
final class DeviceMessages {
  private final CudaCommunicator communicator;
  private final CudaRank rank;
  private final BackendCommunicator host;
  private final List<Staged> pending = new ArrayList<>(); // guarded by this

  DeviceMessages(CudaCommunicator communicator, CudaRank rank, BackendCommunicator host) {
    this.communicator = communicator;
    this.rank = rank;
    this.host = host;
  }

  /// Starts a message whose data is a device's.
  Pending start(PointToPoint message) {
    Staged staged = staged(message);
    rank.started(staged);
    synchronized (this) {
      pending.removeIf(Staged::isDone);
      pending.add(staged);
    }
    return staged;
  }

  /// Puts what has come where it belongs, when the host's messages have ended.
  synchronized void settle() {
    pending.removeIf(Staged::isDone);
  }

  /// Returns when all has come that was to be received.
  void awaitReceived() {
    List<Staged> started;
    synchronized (this) {
      started = pending.stream().filter(each -> each.got != null).toList();
    }
    started.stream().filter(each -> !each.isDone()).forEach(DeviceMessages::awaitEnd);
  }

  private static void awaitEnd(Staged receive) {
    try {
      receive.await(Long.MAX_VALUE);
    } catch (CancellationException _) {
      // another thread has taken it back: that is an end too
    }
  }

  /// Gives the memory of all back; the host's messages have ended.
  synchronized void close() {
    pending.forEach(Staged::giveBack);
    pending.clear();
  }

  private Staged staged(PointToPoint message) {
    List<HostCopy> copies = new ArrayList<>();
    try {
      HostCopy sent =
          switch (message) {
            case PointToPoint.Send m -> copy(m.data(), copies);
            case PointToPoint.SendReceive m -> copy(m.output(), copies);
            default -> null;
          };
      HostCopy got =
          switch (message) {
            case PointToPoint.Receive m -> copy(m.data(), copies);
            case PointToPoint.SendReceive m -> copy(m.input(), copies);
            default -> null;
          };
      copies.forEach(copy -> communicator.calls().awaitUsers(message.label(), copy.of()));
      if (sent != null) {
        sent.fetch(sent.of());
      }
      String text = message.label() + " of '" + communicator.name() + "'";
      return new Staged(text, host.submit(ofHost(message, sent, got)), copies, got);
    } catch (RuntimeException e) {
      copies.forEach(HostCopy::close);
      throw e;
    }
  }

  private HostCopy copy(CommData data, List<HostCopy> copies) {
    HostCopy copy = new HostCopy(rank, (DeviceData) data);
    copies.add(copy);
    return copy;
  }

  private static PointToPoint ofHost(
      PointToPoint message, @Nullable HostCopy sent, @Nullable HostCopy got) {
    return switch (message) {
      case PointToPoint.Send m -> new PointToPoint.Send(data(sent), m.destination(), m.tag());
      case PointToPoint.Receive m -> new PointToPoint.Receive(data(got), m.source(), m.tag());
      case PointToPoint.SendReceive m ->
          new PointToPoint.SendReceive(
              data(sent), m.destination(), m.sendTag(), data(got), m.source(), m.receiveTag());
      case PointToPoint.Probe m -> m;
    };
  }

  private static CommData data(@Nullable HostCopy copy) {
    HostCopy whole = Objects.requireNonNull(copy);
    return whole.data(whole.of());
  }

  /// A message of the host's with a copy behind it.
  private final class Staged implements InFlight, Pending {
    private final Pending message;
    private final List<HostCopy> copies;
    private final @Nullable HostCopy got;
    private final String text;
    private volatile boolean isStored; // set under the lock
    private volatile @Nullable CommException failure; // to store it

    Staged(String text, Pending message, List<HostCopy> copies, @Nullable HostCopy got) {
      this.text = text;
      this.message = message;
      this.copies = copies;
      this.got = got;
    }

    private synchronized void store() {
      if (!isStored) {
        Received received = message.received();
        try {
          if (got != null && received != null) {
            got.store(got.of().slice(0, received.count()));
          }
        } catch (RuntimeException | Error e) { // who sent it counts it as received
          failure =
              communicator.breakWith(
                  new AbortedException(
                      communicator.rank(),
                      "%s: what has come can't be stored: %s".formatted(text, e),
                      e));
        }
        giveBack();
      }
    }

    private synchronized void giveBack() {
      if (!isStored) {
        isStored = true;
        copies.forEach(HostCopy::close);
      }
    }

    @Override
    public boolean hasEnded() {
      return isStored;
    }

    @Override
    public boolean uses(long address, long bytes) {
      return copies.stream().anyMatch(copy -> DeviceCall.overlap(copy.of(), address, bytes));
    }

    @Override
    public String text() {
      return text;
    }

    @Override
    public boolean isDone() {
      boolean done = message.isDone();
      if (done) {
        store();
      }
      return done;
    }

    @Override
    public boolean await(long nanos) {
      try {
        boolean ended = message.await(nanos);
        if (ended) {
          store();
        }
        CommException reason = failure;
        if (reason != null) {
          throw reason;
        }
        return ended;
      } catch (ConcurrentUseException e) {
        throw e; // by a user-defined operator; it goes on
      } catch (RuntimeException e) {
        giveBack(); // it has ended, and nothing has come
        throw e;
      }
    }

    @Override
    public @Nullable Received received() {
      return message.received();
    }

    @Override
    public boolean cancel() {
      boolean cancelled = message.cancel();
      if (cancelled) {
        store();
      }
      return cancelled;
    }

    @Override
    public void onEnd(Runnable action) {
      message.onEnd(() -> {
        store();
        action.run();
      });
    }
  }
}
