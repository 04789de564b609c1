package org.comm4j.backend.cuda;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.comm4j.api.CommData;
import org.comm4j.api.DeviceData;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.UnsupportedException;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.jspecify.annotations.Nullable;

/// Messages of data in devices' memory, through the host, where they meet those of its memory: one
/// end of a message may be on a device and the other one not.
///
/// What is sent is copied when the send is started, behind what the communicator's stream has then;
/// what is received is in the device's memory when the receive has ended.
final class DeviceMessages {
  private static final long MOST_BYTES = 1 << 30; // of a block of the host's memory

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

  private Staged staged(PointToPoint message) {
    String text = message.label() + " of '" + communicator.name() + "'";
    return switch (message) {
      case PointToPoint.Send m -> {
        Copy sent = new Copy((DeviceData) m.data());
        sent.fetch();
        yield new Staged(
            text,
            host.submit(new PointToPoint.Send(sent.data(), m.destination(), m.tag())),
            List.of(sent),
            null);
      }
      case PointToPoint.Receive m -> {
        Copy got = new Copy((DeviceData) m.data());
        yield new Staged(
            text,
            host.submit(new PointToPoint.Receive(got.data(), m.source(), m.tag())),
            List.of(got),
            got);
      }
      case PointToPoint.SendReceive m -> {
        Copy sent = new Copy((DeviceData) m.output());
        Copy got = new Copy((DeviceData) m.input());
        sent.fetch();
        yield new Staged(
            text,
            host.submit(
                new PointToPoint.SendReceive(
                    sent.data(),
                    m.destination(),
                    m.sendTag(),
                    got.data(),
                    m.source(),
                    m.receiveTag())),
            List.of(sent, got),
            got);
      }
      case PointToPoint.Probe m -> new Staged(text, host.submit(m), List.of(), null);
    };
  }

  /// Data of a device as memory of the host.
  private final class Copy {
    private final DeviceData of;
    private final CudaDevice.@Nullable HostMemory memory; // null for no data

    Copy(DeviceData of) {
      if (of.bytes() > MOST_BYTES) {
        throw new UnsupportedException(
            "a message of %s (expected: at most %d bytes; send it in parts)"
                .formatted(of, MOST_BYTES));
      }
      this.of = of;
      this.memory = of.bytes() == 0 ? null : rank.gpu().hostMemory().take(of.bytes());
    }

    CommData data() {
      MemorySegment segment =
          memory == null
              ? MemorySegment.ofArray(new byte[0])
              : memory.segment().asSlice(0, of.bytes());
      return CommData.of(of.type(), segment);
    }

    void fetch() {
      if (memory != null) {
        communicator.awaitStream();
        rank.copy(of.address(), memory.segment().address(), of.bytes());
      }
    }

    void store(long count) {
      if (memory != null && count > 0) {
        rank.copy(memory.segment().address(), of.address(), of.type().bytes(count));
      }
    }

    void giveBack() {
      if (memory != null) {
        rank.gpu().hostMemory().giveBack(of.bytes(), memory);
      }
    }
  }

  /// A message of the host's with a copy behind it.
  private static final class Staged implements InFlight, Pending {
    private final Pending message;
    private final List<Copy> copies;
    private final @Nullable Copy got;
    private final String text;
    private volatile boolean isStored; // set under the lock

    Staged(String text, Pending message, List<Copy> copies, @Nullable Copy got) {
      this.text = text;
      this.message = message;
      this.copies = copies;
      this.got = got;
    }

    private synchronized void store() {
      if (!isStored) {
        Received received = message.received();
        if (got != null && received != null) {
          got.store(received.count());
        }
        isStored = true;
        copies.forEach(Copy::giveBack);
      }
    }

    @Override
    public boolean hasEnded() {
      return isStored;
    }

    @Override
    public boolean uses(long address, long bytes) {
      return copies.stream().anyMatch(copy -> DeviceCall.overlap(copy.of, address, bytes));
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
      boolean ended = message.await(nanos);
      if (ended) {
        store();
      }
      return ended;
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
