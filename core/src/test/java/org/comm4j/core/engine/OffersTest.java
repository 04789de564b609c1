package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.PointToPoint;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.PeerMemory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Messages that are read where they lie: rank 0 sends, rank 1 receives, both on this thread.
@Timeout(60)
class OffersTest {
  private static final int BYTES = 64 << 10;
  private static final int TAG = 3;
  private static final boolean AWAITED = true;

  private final Arena shared = Arena.ofShared();
  private final List<Queue<Frames>> queues = List.of(new ArrayDeque<>(), new ArrayDeque<>());
  private final TwoWindows windows = new TwoWindows(Arena.ofAuto());
  private final MemorySegment[][] loans = new MemorySegment[2][PeerMemory.LOANS];
  private boolean isCopied; // by the kernel
  private final InMemorySessions sessions = InMemorySessions.group(2);
  private final Rank sender = new Rank(0);
  private final Rank receiver = new Rank(1);
  private final byte[] data = new byte[BYTES];

  @AfterEach
  void close() {
    sessions.close();
    shared.close();
  }

  @Test
  void receive_messageThatStays_endsBeforeTheSenderIsHeard() {
    SendCall send = sender.send(filled(Arena.ofAuto(), 1), !AWAITED);
    ReceiveCall receive = receiver.receive();
    assertThat(receive.hasEnded()).isTrue();
    assertThat(data).containsOnly(1);
    assertThat(send.hasEnded()).isFalse();

    sender.poll();
    assertThat(send.hasEnded()).isTrue();
    assertThat(queues.get(1)).as("an answer that nobody needs").isEmpty();
  }

  /// A sender that has ended in the meantime may have written something else there.
  @Test
  void receive_messageWithdrawn_neverEnds() {
    MemorySegment message = filled(Arena.ofAuto(), 1);
    SendCall send = sender.send(message, AWAITED);
    sender.fails(send);
    message.fill((byte) 2);

    ReceiveCall receive = receiver.receive();
    sender.poll();
    receiver.poll();
    assertThat(receive.hasEnded()).isFalse();
  }

  @Test
  void receive_shorterMessageLentInPlaceOfOneWithdrawn_breaksNothing() {
    SendCall send = sender.send(filled(Arena.ofAuto(), 1), AWAITED);
    sender.fails(send);
    sender.sendAgain(filled(Arena.ofAuto(), 2).asSlice(0, BYTES / 2), AWAITED);

    ReceiveCall receive = receiver.receive();
    assertThat(receive.hasEnded()).isFalse();
    assertThat(receiver.context.failure()).isNull();
  }

  @Test
  void receive_afterAnotherMessageWasWithdrawn_endsWhenTheSenderConfirms() {
    sender.fails(sender.send(filled(Arena.ofAuto(), 1), AWAITED));
    queues.get(1).clear();
    SendCall send = sender.sendAgain(filled(Arena.ofAuto(), 2), AWAITED);

    ReceiveCall receive = receiver.receiveAgain();
    assertThat(receive.hasEnded()).isFalse();
    sender.poll();
    assertThat(send.hasEnded()).isTrue();
    receiver.poll();
    assertThat(receive.hasEnded()).isTrue();
    assertThat(data).containsOnly(2);
  }

  /// It was read before; the sender, which does not know that yet, confirms it.
  @Test
  void withdrawal_afterAMessageWasRead_changesNothing() {
    SendCall read = sender.send(filled(Arena.ofAuto(), 1), AWAITED);
    ReceiveCall receive = receiver.receive();
    SendCall other = sender.sendAgain(filled(Arena.ofAuto(), 2), AWAITED);
    sender.fails(other);

    sender.poll();
    receiver.poll();
    assertThat(read.hasEnded()).isTrue();
    assertThat(read.failure()).isNull();
    assertThat(receive.hasEnded()).isTrue();
    assertThat(receiver.context.failure()).isNull();
  }

  /// The sender, which had not withdrawn anything when it heard that this one was read, confirms
  /// nothing.
  @Test
  void receive_anotherMessageWithdrawnAsSoonAsTheSenderHears_ends() {
    SendCall read = sender.send(filled(Arena.ofAuto(), 1), AWAITED);
    SendCall other = sender.sendAgain(filled(Arena.ofAuto(), 2), AWAITED);
    receiver.afterOffer =
        () -> {
          sender.poll();
          sender.fails(other);
        };

    ReceiveCall receive = receiver.receive();
    receiver.poll();
    assertThat(read.hasEnded()).isTrue();
    assertThat(receive.hasEnded()).isTrue();
    assertThat(data).containsOnly(1);
  }

  /// Nobody would see that it has been closed, and is another program's memory now.
  @Test
  void receive_memoryThatCouldBeClosedUnseen_endsWhenTheSenderConfirms() {
    isCopied = true;
    SendCall send = sender.send(filled(shared, 1), !AWAITED);
    ReceiveCall receive = receiver.receive();
    assertThat(receive.hasEnded()).isFalse();

    sender.poll();
    receiver.poll();
    assertThat(send.hasEnded()).isTrue();
    assertThat(receive.hasEnded()).isTrue();
    assertThat(data).containsOnly(1);
  }

  @Test
  void receive_memoryOfABlockingSend_endsBeforeTheSenderIsHeard() {
    isCopied = true;
    SendCall send = sender.send(filled(shared, 1), AWAITED);
    ReceiveCall receive = receiver.receive();
    assertThat(receive.hasEnded()).isTrue();
    assertThat(data).containsOnly(1);
    assertThat(send.hasEnded()).isFalse();
  }

  /// Else the sender of a message that was received would wait for ever.
  @Test
  void receive_noRoomToSayThatItIsRead_endsWhenThereIs() {
    SendCall send = sender.send(filled(Arena.ofAuto(), 1), AWAITED);
    receiver.isFull = true;
    ReceiveCall receive = receiver.receive();
    assertThat(receive.hasEnded()).isFalse();

    receiver.isFull = false;
    receiver.poll();
    assertThat(receive.hasEnded()).isTrue();
    sender.poll();
    assertThat(send.hasEnded()).isTrue();
  }

  private static MemorySegment filled(Arena arena, int value) {
    return arena.allocate(BYTES, 64).fill((byte) value);
  }

  private record Frames(int from, long[] header, byte[] payload) {}

  /// A rank, as its transport and its calls; two communicators, so that one may be broken.
  private final class Rank extends OneOfTwo {
    private final Engine engine;
    private final Context context;
    private final Context other;
    private boolean isFull;
    private Runnable afterOffer = () -> {};

    Rank(int rank) {
      super(rank);
      this.engine =
          new Engine(
              "test",
              sessions.session(rank),
              this,
              new Lending(rank),
              CommConfig.builder().build(),
              new Selector(Tuning.none()),
              System::nanoTime);
      engine.lock();
      this.context = engine.addContext(0, "world", new int[] {0, 1});
      this.other = engine.addContext(2, "copy", new int[] {0, 1});
    }

    SendCall send(MemorySegment message, boolean awaited) {
      return send(context, message, awaited);
    }

    SendCall sendAgain(MemorySegment message, boolean awaited) {
      return send(other, message, awaited);
    }

    private SendCall send(Context in, MemorySegment message, boolean awaited) {
      PointToPoint.Send send = new PointToPoint.Send(CommData.of(DataType.INT8, message), 1, TAG);
      SendCall call = in.messages().send(send, awaited, null);
      in.start(call, false);
      return call;
    }

    ReceiveCall receive() {
      return receive(context);
    }

    ReceiveCall receiveAgain() {
      return receive(other);
    }

    private ReceiveCall receive(Context in) {
      PointToPoint.Receive receive = new PointToPoint.Receive(CommData.of(data), 0, TAG);
      ReceiveCall call = ReceiveCall.of(in, receive);
      in.messages().post(call);
      in.start(call, false);
      poll();
      return call;
    }

    /// As at the deadline, and before the other rank hears of it.
    void fails(SendCall call) {
      call.fail(new IllegalStateException("too late"));
    }

    void poll() {
      engine.poll();
      context.advance();
      other.advance();
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      if (isFull) {
        return false;
      }
      queues
          .get(peer)
          .add(new Frames(rank(), header.clone(), payload.toArray(ValueLayout.JAVA_BYTE)));
      afterOffer.run();
      return true;
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      int polled = 0;
      for (Frames next = queues.get(rank()).poll();
          next != null;
          next = queues.get(rank()).poll()) {
        handler.onPayload(next.from(), next.header(), MemorySegment.ofArray(next.payload()));
        polled++;
      }
      return polled;
    }
  }

  /// A rank's view of the windows, and what both have lent.
  private final class Lending extends TwoWindows {
    private final int rank;

    Lending(int rank) {
      super(windows);
      this.rank = rank;
    }

    @Override
    public boolean lend(int loan, MemorySegment lent, long bytes, int readers, Lender lender) {
      loans[rank][loan] = lent;
      return true;
    }

    @Override
    public boolean copiesLoans() {
      return isCopied;
    }

    @Override
    public MemorySegment lent(int owner, int loan) {
      return loans[owner][loan];
    }

    @Override
    public boolean copyLent(
        int owner, int loan, long offset, MemorySegment target, long targetOffset, long bytes) {
      MemorySegment.copy(loans[owner][loan], offset, target, targetOffset, bytes);
      return true;
    }
  }
}
