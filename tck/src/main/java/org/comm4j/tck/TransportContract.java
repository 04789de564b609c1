package org.comm4j.tck;

import static java.util.concurrent.TimeUnit.NANOSECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What the engine expects of a [Transport]: messages arrive unchanged, once, in order per pair,
/// and whoever sleeps is woken. A wire backend extends it.
///
/// Most tests drive all ranks from one thread, as no method of a transport blocks. Each test has a
/// thread of its own, so that one that blocks is left and named; randomness comes from a seed that
/// failures print (`-Dcomm4j.seed=…` repeats it).
@Timeout(value = 3, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
public abstract class TransportContract {
  /// Parks are so much longer than a test may take: what has to end them is not their time.
  private static final int LONG_PARK = 3;

  /// What the engine parks for at most.
  private static final long LONGEST_PARK_NANOS = 100_000_000;

  private static final long SILENCE_NANOS = 200_000_000;

  /// In that time: 0.2 ms each.
  private static final int MOST_PARKS = 1_000;

  /// How many payloads go one way before all room has to come back, as far as there is time for
  /// them, and how many at a time.
  private static final int MANY = 20_000;

  private static final long STREAM_NANOS = 1_000_000_000;
  private static final int PIECE = 16;

  /// So often in turn there is no room, while a transport gives back what it will.
  private static final int REFUSALS = 1000;

  /// How long the session may take to say that a rank has died, with what a busy machine adds.
  private static final long UNKNOWN_DEATH_NANOS = 1_000_000_000;

  /// More messages than any transport may keep for a peer that does not poll.
  private static final int TOO_MANY = 2_000_000;

  private final long seed = Long.getLong("comm4j.seed", System.nanoTime());

  /// Every failure has the seed.
  @RegisterExtension
  final TestExecutionExceptionHandler withSeed =
      (context, failure) -> {
        failure.addSuppressed(new AssertionError("seed " + seed));
        throw failure;
      };

  private final List<Transport> open = new ArrayList<>();

  /// Makes a new group; called from one thread.
  ///
  /// @param size how many ranks, at least 2
  /// @return each rank's end, in the order of the ranks; the contract closes them
  /// @throws Exception if it can't; the test fails
  protected abstract List<? extends Transport> transports(int size) throws Exception;

  /// Ends a rank as a crash of its process would, once what it was offered has left: sockets are
  /// shut without a goodbye. Where the others then notice nothing, as in shared memory, there is
  /// nothing to do but to say so.
  ///
  /// @param rank of a group of [#transports]; of its methods only [Transport#close] is called
  ///   afterwards
  /// @return false if it can't, as by default; what is tested with it is skipped
  /// @throws Exception if it fails; the test does, too
  protected boolean kill(Transport rank) throws Exception {
    return false;
  }

  /// {@return where transports make files that no other process makes; none by default, and then
  /// nobody looks whether some are left}
  protected List<Path> folders() {
    return List.of();
  }

  /// Whether a transport closes as soon as in use. Tests that lose much may have theirs wait longer
  /// for what is sent again.
  protected boolean closesSoon() {
    return true;
  }

  /// For subclasses.
  protected TransportContract() {}

  private List<? extends Transport> group(int size) throws Exception {
    List<? extends Transport> group = transports(size);
    open.addAll(group);
    return group;
  }

  /// {@return how long anything may take, on a busy machine too: so long a test waits for what
  /// never comes; less than a minute and a half, as a test has three}
  protected Duration bound() {
    return Duration.ofSeconds(20);
  }

  private long longNanos() {
    return bound().multipliedBy(LONG_PARK).toNanos();
  }

  @AfterEach
  final void closeAll() throws Exception {
    closeAll(open, bound().plusSeconds(open.size())); // a close may take 0.4 s
  }

  /// Closes one after the other.
  static void closeAll(List<Transport> open, Duration bound) throws Exception {
    Bounded.call(
        "close()",
        bound,
        () -> {
          open.forEach(Transport::close);
          return open;
        });
  }

  @Test
  final void rankAndSize_areThoseOfTheGroup() throws Exception {
    var group = group(3);
    for (int rank = 0; rank < 3; rank++) {
      assertThat(group.get(rank).rank()).isEqualTo(rank);
      assertThat(group.get(rank).size()).isEqualTo(3);
      int first = group.get(rank).maxPayloadBytes((rank + 1) % 3);
      assertThat(first).isGreaterThanOrEqualTo(256);
      assertThat(group.get(rank).maxPayloadBytes((rank + 1) % 3)).isEqualTo(first);
    }
  }

  @Test
  final void poll_nothingOffered_returnsZero() throws Exception {
    var group = group(2);
    assertThat(group.get(0).poll(new Inbox(), 10)).isZero();
    assertThat(group.get(1).poll(new Inbox(), 10)).isZero();
  }

  @Test
  final void offer_anySize_arrivesUnchanged() throws Exception {
    var group = group(2);
    int most = group.get(0).maxPayloadBytes(1);
    for (int bytes : sizes(most)) {
      for (Message message : kindsOf(bytes)) {
        assertThat(transfer(group.get(0), group.get(1), message))
            .as("%d bytes, seed %d", bytes, seed)
            .isEqualTo(message);
      }
    }
  }

  @Test
  final void offer_nativeAndReadOnlyPayloads_arriveUnchanged() throws Exception {
    var group = group(2);
    try (var arena = Arena.ofConfined()) {
      for (int bytes : sizes(group.get(0).maxPayloadBytes(1))) {
        Message message = message(0, bytes, bytes);
        var outside = arena.allocate(bytes + 1L, 1).asSlice(1);
        outside.copyFrom(MemorySegment.ofArray(message.payload));
        assertThat(transfer(group.get(0), group.get(1), message.header, outside))
            .isEqualTo(message);
        assertThat(transfer(group.get(0), group.get(1), message.header, outside.asReadOnly()))
            .isEqualTo(message);
      }
    }
  }

  @Test
  final void offer_payloadOfWiderElements_arrivesUnchanged() throws Exception {
    var group = group(2);
    long[] values = new SplittableRandom(seed).longs(21).toArray();
    var payload = MemorySegment.ofArray(values).asSlice(8, 19 * 8);
    byte[] expected = payload.toArray(ValueLayout.JAVA_BYTE);
    var inbox = new Inbox();
    send(group.get(0), 1, new long[Transport.HEADER_LONGS], payload);
    receive(group.get(1), inbox, 1);
    assertThat(inbox.messages.getFirst().payload).isEqualTo(expected);
  }

  /// A mistake of one call, whose memory is gone: what comes after it goes on.
  @Test
  final void offer_payloadClosed_throwsAndHarmsNothing() throws Exception {
    var group = group(2);
    for (int bytes : sizes(group.get(0).maxPayloadBytes(1))) {
      Message message = message(0, bytes, bytes);
      assertThat(transfer(group.get(0), group.get(1), message)).isEqualTo(message);
      MemorySegment closed;
      try (var arena = Arena.ofShared()) {
        closed = arena.allocate(Math.max(1, bytes));
      }
      assertThatThrownBy(() -> send(group.get(0), 1, message.header, closed))
          .isInstanceOf(IllegalStateException.class);
      assertThat(transfer(group.get(0), group.get(1), message)).isEqualTo(message);
    }
  }

  @Test
  final void offer_buffersOverwrittenAfterwards_arriveAsOffered() throws Exception {
    var group = group(2);
    for (int bytes : new int[] {8, 16, 100, 200}) {
      var header = new long[Transport.HEADER_LONGS];
      var payload = new byte[bytes];
      var inbox = new Inbox();
      for (byte i = 1; i <= 20; i++) {
        Arrays.fill(header, i);
        Arrays.fill(payload, (byte) -i);
        send(group.get(0), 1, header, MemorySegment.ofArray(payload));
      }
      Arrays.fill(header, 77);
      Arrays.fill(payload, (byte) 77);
      receive(group.get(1), inbox, 20);
      for (byte i = 1; i <= 20; i++) {
        assertThat(inbox.messages.get(i - 1).header).containsOnly(i);
        assertThat(inbox.messages.get(i - 1).payload).containsOnly(-i);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 8, 100, Integer.MAX_VALUE})
  final void offer_noRoom_returnsFalseAndLosesNothing(int wanted) throws Exception {
    var group = group(2);
    int bytes = Math.min(wanted, group.get(0).maxPayloadBytes(1));
    for (int lap = 0; lap < 3; lap++) {
      send(group.get(0), 1, message(lap, 0, bytes)); // the way may have to be opened
      int sent = 1;
      while (offer(group.get(0), 1, message(lap, sent, bytes))) {
        assertThat(++sent).as("messages without back-pressure").isLessThan(TOO_MANY);
      }
      var inbox = new Inbox();
      receive(group.get(1), inbox, sent);
      for (int i = 0; i < sent; i++) {
        assertThat(inbox.messages.get(i)).isEqualTo(message(lap, i, bytes));
      }
      assertThat(group.get(1).poll(inbox, 10)).isZero();
    }
  }

  @Test
  final void offer_noRoomForOnePeer_doesNotStopAnother() throws Exception {
    var group = group(3);
    for (int sent = 0; offer(group.get(0), 1, message(0, sent, 200)); sent++) {
      assertThat(sent).isLessThan(TOO_MANY);
    }
    Message message = message(0, 0, 100);
    send(group.get(0), 2, message);
    var inbox = new Inbox();
    receive(group.get(2), inbox, 1);
    assertThat(inbox.messages).containsExactly(message);
  }

  /// Where one payload in some hundred leaves room taken, a program stops after hours; one in a
  /// thousand is seen where there is room for no more than some hundred. Room may be given back in
  /// portions, so what there is after all was polled differs: now and then it is as much as at
  /// first.
  @Test
  final void offer_roomUsedForLong_isGivenBack() throws Exception {
    var group = group(2);
    Transport from = group.get(0);
    Transport to = group.get(1);
    var random = new SplittableRandom(seed);
    transfer(from, to, message(0, 0, 8)); // the way may have to be opened
    int room = roomOf(from, to);
    assertThat(room).as("payloads that were taken while nobody polled").isPositive();
    stream(from, to, random);
    var most = new AtomicInteger();
    waitFor(
        () -> {
          for (int left = random.nextInt(room); left > 0; left -= PIECE) {
            pass(from, to, Math.min(left, PIECE), 8);
          }
          most.accumulateAndGet(roomOf(from, to), Math::max);
          return most.get() >= room - room / 20;
        },
        () ->
            "rank 0 took no more than %d payloads for rank 1, who had polled all (expected: %d, as at first)"
                .formatted(most.get(), room));
  }

  /// {@return how many small payloads are taken until there is no room, which all arrive}
  private int roomOf(Transport from, Transport to) {
    Message small = message(0, 0, 8);
    int sent = 0;
    for (int refused = 0; refused < REFUSALS; refused++) {
      int more = fill(from, 1, small);
      if (more > 0) {
        sent += more;
        refused = 0; // there was room on its way
      }
      assertThat(sent).as("messages without back-pressure").isLessThan(TOO_MANY);
      from.poll((_, _, _) -> {}, 1);
      Thread.yield();
    }
    take(to, sent);
    return sent;
  }

  /// Of all sizes, most of them small.
  private void stream(Transport from, Transport to, SplittableRandom random) {
    int most = from.maxPayloadBytes(1);
    long endNanos = System.nanoTime() + STREAM_NANOS;
    int sent = 0;
    while (sent < MANY && System.nanoTime() - endNanos < 0) {
      sent += pass(from, to, PIECE, random.nextInt(random.nextInt(4) == 0 ? most + 1 : 65));
    }
  }

  /// Offers some payloads, as many as there is room for, and polls them.
  ///
  /// @return how many
  private int pass(Transport from, Transport to, int payloads, int bytes) {
    var header = new long[Transport.HEADER_LONGS];
    MemorySegment payload = MemorySegment.ofArray(new byte[bytes]);
    int sent = 0;
    while (sent < payloads && from.offer(1, header, payload)) {
      sent++;
    }
    take(to, sent);
    from.poll((_, _, _) -> {}, 1);
    return sent;
  }

  /// Offers until there is no room.
  ///
  /// @return how many were taken
  private static int fill(Transport from, int peer, Message message) {
    int sent = 0;
    while (offer(from, peer, message)) {
      assertThat(++sent).as("messages without back-pressure").isLessThan(TOO_MANY);
    }
    return sent;
  }

  private void take(Transport to, int messages) {
    var left = new AtomicInteger(messages);
    waitFor(
        () -> left.addAndGet(-to.poll((_, _, _) -> {}, Math.min(64, left.get()))) == 0,
        () ->
            "rank %d received %d of %d from rank 0"
                .formatted(to.rank(), messages - left.get(), messages));
  }

  @Test
  final void poll_limit_isKept() throws Exception {
    var group = group(2);
    var inbox = new Inbox();
    for (int i = 0; i < 10; i++) {
      send(group.get(0), 1, message(0, i, 8 * i));
    }
    assertThat(group.get(1).poll(inbox, 0)).isZero();
    for (int i = 0; i < 10; i++) {
      receive(group.get(1), inbox, 1);
      assertThat(inbox.messages).hasSize(i + 1);
    }
    assertThat(group.get(1).poll(inbox, 1)).isZero();
  }

  /// All ways are kept full. A fair transport gives each of the four peers a quarter of the turns,
  /// or more where the others' payloads come late.
  @Test
  final void poll_onePayloadAtATime_noPeerTakesAllTurns() throws Exception {
    int size = 5;
    int turns = 2_000;
    var group = group(size);
    var opening = new Inbox();
    for (int peer = 1; peer < size; peer++) {
      send(group.get(peer), 0, message(peer, 0, 0));
      receive(group.get(0), opening, 1);
    }
    int[] sent = new int[size];
    int[] served = new int[size];
    PayloadHandler check =
        (peer, header, payload) ->
            assertThat(new Message(header.clone(), bytes(payload)))
                .isEqualTo(message(peer, served[peer]++, 64));
    waitFor(
        () -> {
          for (int peer = 1; peer < size; peer++) {
            while (offer(group.get(peer), 0, message(peer, sent[peer], 64))) {
              assertThat(++sent[peer]).as("messages without back-pressure").isLessThan(TOO_MANY);
            }
          }
          group.get(0).poll(check, 1);
          return Arrays.stream(served).sum() == turns;
        },
        () ->
            "rank 0 received %s of the %s that each rank has sent it"
                .formatted(Arrays.toString(served), Arrays.toString(sent)));
    assertThat(Arrays.stream(served).max().orElseThrow()).isLessThan(turns * 3 / 4);
  }

  @Test
  final void poll_handlerOffers_answersArrive() throws Exception {
    var group = group(2);
    var answers = new Inbox();
    send(group.get(1), 0, message(1, 0, 0)); // opens the way
    receive(group.get(0), answers, 1);
    for (int i = 0; i < 200; i++) {
      Message question = message(0, i, i);
      send(group.get(0), 1, question);
      int number = i;
      waitFor(
          () ->
              group
                      .get(1)
                      .poll(
                          (peer, header, payload) ->
                              assertThat(group.get(1).offer(peer, header, payload)).isTrue(),
                          10)
                  > 0,
          () -> "rank 1 has not received question %d of rank 0".formatted(number));
      receive(group.get(0), answers, 1);
      assertThat(answers.messages.getLast()).isEqualTo(question);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 7, 16})
  final void offer_everyRankToEveryRank_arrivesInOrder(int size) throws Exception {
    var group = group(size);
    for (int i = 0; i < 8; i++) {
      for (Transport from : group) {
        for (int peer = 0; peer < size; peer++) {
          if (peer != from.rank()) {
            send(from, peer, message(from.rank() * size + peer, i, 31 * i));
          }
        }
      }
    }
    for (Transport to : group) {
      var inbox = new Inbox();
      receive(to, inbox, 8 * (size - 1));
      for (int peer = 0; peer < size; peer++) {
        var expected = new ArrayList<Message>();
        for (int i = 0; i < 8 && peer != to.rank(); i++) {
          expected.add(message(peer * size + to.rank(), i, 31 * i));
        }
        assertThat(inbox.from(peer)).isEqualTo(expected);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  final void offer_ranksOnTheirOwnThreads_arriveInOrder(int size) throws Exception {
    var group = group(size);
    int messages = 1_500;
    inParallel(
        group.stream()
            .<Callable<?>>map(transport -> () -> talkToAll(transport, messages, true))
            .toList());
  }

  @Test
  final void park_offers_endIt() throws Exception {
    var group = group(2);
    int rounds = 1_000;
    inParallel(
        group.stream()
            .<Callable<?>>map(transport -> () -> playPingPong(transport, rounds))
            .toList());
  }

  @Test
  final void park_roomComesFree_endsIt() throws Exception {
    var group = group(2);
    int messages = 2_000;
    Callable<?> sender =
        () -> {
          Transport transport = group.get(0);
          long end = end();
          for (int i = 0; i < messages; i++) {
            Message message = message(0, i, transport.maxPayloadBytes(1));
            int sent = i;
            while (!offer(transport, 1, message)) {
              Bounded.goOn(end, () -> "sent %d of %d".formatted(sent, messages));
              transport.park(longNanos());
            }
          }
          return null;
        };
    Callable<?> receiver =
        () -> {
          long end = end();
          var received = new AtomicInteger();
          while (received.get() < messages) {
            Bounded.goOn(end, () -> "received %d of %d".formatted(received.get(), messages));
            if (group.get(1).poll((peer, header, payload) -> received.getAndIncrement(), 3) == 0) {
              group.get(1).park(longNanos());
            }
          }
          return null;
        };
    inParallel(List.of(sender, receiver));
  }

  @Test
  final void wakeUp_duringOrBeforePark_endsIt() throws Exception {
    Transport transport = group(2).get(0);
    int rounds = 500;
    var asked = new AtomicInteger();
    var seen = new AtomicInteger();
    Callable<?> sleeper =
        () -> {
          long end = end();
          while (seen.get() < rounds) {
            Bounded.goOn(
                end,
                () -> "asked %d times, seen %d of %d".formatted(asked.get(), seen.get(), rounds));
            if (seen.get() < asked.get()) {
              seen.getAndIncrement();
            } else {
              transport.park(longNanos());
            }
          }
          return null;
        };
    Callable<?> waker =
        () -> {
          for (int i = 1; i <= rounds; i++) {
            asked.set(i);
            transport.wakeUp();
            int round = i;
            waitFor(
                () -> seen.get() >= round,
                () -> "no park has ended for wake-up %d".formatted(round));
          }
          return null;
        };
    inParallel(List.of(sleeper, waker));
  }

  @Test
  final void wakeUp_beforePark_endsThatPark() throws Exception {
    Transport transport = group(2).get(0);
    for (int round = 0; round < 3; round++) {
      Bounded.call(
          "park() after wakeUp() of the same thread",
          bound(),
          () -> {
            transport.wakeUp();
            transport.park(longNanos());
            return transport;
          });
    }
  }

  /// Nobody has looked for what comes before the park, and its wake-up finds nobody asleep.
  @Test
  final void park_somethingHasCome_endsIt() throws Exception {
    var group = group(2);
    Transport to = group.get(0);
    var inbox = new Inbox();
    Bounded.call(
        "park() after a peer's offer",
        bound(),
        () -> {
          for (int i = 0; i < 50; i++) {
            send(group.get(1), 0, message(1, i, 8));
            do {
              to.park(longNanos());
            } while (to.poll(inbox, 1) == 0);
          }
          return inbox;
        });
    for (int i = 0; i < 50; i++) {
      assertThat(inbox.messages.get(i)).isEqualTo(message(1, i, 8));
    }
  }

  /// As with two communicators: who waits on one sleeps, while a thread of the other one goes on.
  @Test
  final void park_anotherThreadPollsAndOffers_everythingArrivesInOrder() throws Exception {
    var group = group(2);
    Transport transport = group.get(0);
    int messages = 3_000;
    var isOver = new AtomicBoolean();
    Callable<?> sleeper =
        () -> {
          while (!isOver.get()) {
            transport.park(LONGEST_PARK_NANOS);
          }
          return null;
        };
    Callable<?> other =
        () -> {
          try {
            return talkToAll(transport, messages, false);
          } finally {
            isOver.set(true);
            transport.wakeUp();
          }
        };
    inParallel(List.of(sleeper, other, () -> talkToAll(group.get(1), messages, false)));
  }

  /// It holds no lock that they need.
  @Test
  final void park_anotherThreadPollsAndOffers_isNotWaitedFor() throws Exception {
    var group = group(2);
    Transport transport = group.get(0);
    transfer(transport, group.get(1), message(0, 0, 8));
    transfer(group.get(1), transport, message(1, 0, 8));
    var sleeping = new AtomicReference<Thread>();
    var isOver = new AtomicBoolean();
    Callable<?> sleeper =
        () -> {
          sleeping.set(Thread.currentThread());
          while (!isOver.get()) {
            transport.park(longNanos());
          }
          return null;
        };
    Callable<?> other =
        () -> {
          long start = System.nanoTime();
          waitFor(
              () -> ThreadChecks.sleeps(sleeping.get(), start), () -> "nobody sleeps in park()");
          try {
            assertThat(transport.poll(new Inbox(), 1)).isZero(); // before anything ends the park
            return transfer(transport, group.get(1), message(0, 1, 8));
          } finally {
            isOver.set(true);
            transport.wakeUp();
          }
        };
    Bounded.run("poll() and offer() while another thread parks", bound(), List.of(sleeper, other));
  }

  /// One that comes back early now and then is as good; one that comes back at once takes a
  /// processor. A busy machine only makes it fewer.
  @Test
  final void park_nothingHappens_sleeps() throws Exception {
    Transport transport = group(2).get(0);
    long start = System.nanoTime();
    int parks = 0;
    while (System.nanoTime() - start < SILENCE_NANOS) {
      transport.park(LONGEST_PARK_NANOS);
      parks++;
    }
    assertThat(parks)
        .as("parks of 100 ms in 200 ms in which nothing has come")
        .isLessThan(MOST_PARKS);
  }

  @Test
  final void park_nothingHappens_endsInTime() throws Exception {
    Transport transport = group(2).get(0);
    long start = System.nanoTime();
    for (int i = 0; i < 100; i++) {
      transport.park(1_000_000);
    }
    assertThat(System.nanoTime() - start).isLessThan(bound().toNanos());
  }

  @Test
  final void park_interrupted_keepsTheFlag() throws Exception {
    Transport transport = group(2).get(0);
    var sleeping = new AtomicReference<Thread>();
    var ended = new CountDownLatch(1);
    var isOver = new AtomicBoolean();
    Callable<?> sleeper =
        () -> {
          sleeping.set(Thread.currentThread());
          while (!Thread.currentThread().isInterrupted() && !isOver.get()) {
            transport.park(LONGEST_PARK_NANOS);
          }
          ended.countDown();
          return null;
        };
    Callable<?> interrupter =
        () -> {
          long start = System.nanoTime();
          waitFor(
              () -> ThreadChecks.sleeps(sleeping.get(), start), () -> "nobody sleeps in park()");
          sleeping.get().interrupt();
          boolean isSoon = ended.await(Promise.AT_ONCE.allowed().toNanos(), NANOSECONDS);
          isOver.set(true);
          transport.wakeUp();
          assertThat(isSoon).as("the flag is set after a park that was interrupted").isTrue();
          return null;
        };
    inParallel(List.of(sleeper, interrupter));
  }

  @Test
  final void close_twice_isQuiet() throws Exception {
    var group = group(2);
    send(group.get(0), 1, message(0, 0, 100));
    for (Transport transport : group) {
      assertThatCode(transport::close).doesNotThrowAnyException();
      assertThatCode(transport::close).doesNotThrowAnyException();
      assertThatCode(transport::wakeUp).doesNotThrowAnyException();
    }
  }

  /// A communicator's close has a bound (L1): 0.4 s of it are the transport's, however busy peers
  /// are.
  @Test
  final void close_peerPollsNothing_endsSoon() throws Exception {
    assumeTrue(closesSoon(), "these wait longer than in use, for what was lost on its way");
    var group = group(2);
    send(group.get(0), 1, message(0, 0, 100)); // the way may have to be opened
    send(group.get(1), 0, message(1, 0, 100));
    fill(group.get(0), 1, message(0, 1, 100));
    fill(group.get(1), 0, message(1, 1, 100));
    long start = System.nanoTime();
    Bounded.call(
        "close() while the peer does not poll",
        bound(),
        () -> {
          group.get(0).close();
          return group;
        });
    Promise.CLOSED.keep("L1", "close() while the peer does not poll", start);
  }

  @Test
  final void close_all_leavesNoFiles() throws Exception {
    assumeFalse(folders().isEmpty(), "folders() names none where there could be files");
    Set<Path> before = files();
    var group = group(3);
    transfer(group.get(0), group.get(1), message(0, 0, 100));
    transfer(group.get(1), group.get(2), message(1, 0, 100));
    closeAll();
    waitFor(
        () -> before.containsAll(files()),
        () -> {
          Set<Path> left = files();
          left.removeAll(before);
          return "there are files that were not there before: " + left;
        });
  }

  private Set<Path> files() {
    var files = new TreeSet<Path>();
    for (Path folder : folders()) {
      try (var entries = Files.list(folder)) {
        entries.forEach(files::add);
      } catch (NoSuchFileException e) {
        // then there is nothing in it
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
    return files;
  }

  /// Until the session says that the rank has died, the others know no more than that nothing comes
  /// from it. Who throws breaks their communicators, for a reason that is not the true one.
  @Test
  final void kill_onePeer_isNoFailureOfTheOthers() throws Exception {
    var group = group(3);
    for (int peer = 1; peer < 3; peer++) {
      transfer(group.get(0), group.get(peer), message(0, peer, 8));
      transfer(group.get(peer), group.get(0), message(peer, 0, 8));
    }
    int last = 10;
    for (int i = 0; i < last; i++) {
      send(group.get(0), 1, message(0, i, 100));
    }
    assumeTrue(kill(group.get(0)), "kill() can't end a rank as if its process had died");
    var inboxes = List.of(new Inbox(), new Inbox(), new Inbox());
    long start = System.nanoTime();
    int sent = 0;
    while (System.nanoTime() - start < UNKNOWN_DEATH_NANOS) {
      sent += sent < 500 && offer(group.get(1), 2, message(1, sent, 100)) ? 1 : 0;
      for (int peer = 1; peer < 3; peer++) {
        offer(group.get(peer), 0, message(peer, 0, 100));
        group.get(peer).poll(inboxes.get(peer), 10);
        group.get(peer).park(1_000_000);
      }
    }
    Inbox ofNext = inboxes.get(1);
    waitFor(
        () -> {
          group.get(1).poll(ofNext, 10);
          return ofNext.messages.size() >= last;
        },
        () ->
            "rank 1 received %d of the %d that rank 0 had sent before it died"
                .formatted(ofNext.messages.size(), last));
    receive(group.get(2), inboxes.get(2), sent - inboxes.get(2).messages.size());
    for (int i = 0; i < last; i++) {
      assertThat(ofNext.messages.get(i)).isEqualTo(message(0, i, 100));
    }
    for (int i = 0; i < sent; i++) {
      assertThat(inboxes.get(2).messages.get(i)).isEqualTo(message(1, i, 100));
    }
  }

  @Test
  final void close_onePeer_leavesTheOthersUsable() throws Exception {
    var group = group(3);
    for (int peer = 1; peer < 3; peer++) {
      send(group.get(0), peer, message(0, 0, 100));
    }
    group.get(0).close();
    Message message = message(1, 0, 200);
    send(group.get(1), 2, message);
    var inbox = new Inbox();
    waitFor(
        () -> {
          group.get(2).poll(inbox, 1);
          return inbox.from(1).size() == 1;
        },
        () -> "rank 2 has not received what rank 1 sent it after rank 0 had closed");
    assertThat(inbox.from(1)).containsExactly(message);
  }

  /// A full way of each size, to a peer that has polled before and to one that never has.
  @ParameterizedTest
  @ValueSource(ints = {0, 8, 100, Integer.MAX_VALUE})
  final void close_wayFull_whatWasTakenArrives(int wanted) throws Exception {
    for (boolean hasPolled : new boolean[] {false, true}) {
      var group = group(2);
      int bytes = Math.min(wanted, group.get(0).maxPayloadBytes(1));
      var inbox = new Inbox();
      send(group.get(0), 1, message(0, 0, bytes)); // the way may have to be opened
      if (hasPolled) {
        receive(group.get(1), inbox, 1);
      }
      int sent = 1;
      while (offer(group.get(0), 1, message(0, sent, bytes))) {
        assertThat(++sent).as("messages without back-pressure").isLessThan(TOO_MANY);
      }
      group.get(0).close();
      receive(group.get(1), inbox, sent - inbox.messages.size());
      for (int i = 0; i < sent; i++) {
        assertThat(inbox.messages.get(i)).isEqualTo(message(0, i, bytes));
      }
      assertThat(group.get(1).poll(inbox, 10)).isZero();
    }
  }

  /// One rank's part of a stress: messages of random sizes to random peers, and as many from them.
  private @Nullable Object talkToAll(Transport transport, int messages, boolean parks) {
    int rank = transport.rank();
    int size = transport.size();
    long end = end();
    var random = new SplittableRandom(seed + rank);
    int[] sent = new int[size];
    int[] received = new int[size];
    PayloadHandler check =
        (peer, header, payload) -> {
          Message expected = ofStress(peer, rank, received[peer]++, transport);
          assertThat(new Message(header.clone(), bytes(payload)))
              .as("seed %d", seed)
              .isEqualTo(expected);
        };
    boolean unfinished = true;
    while (unfinished) {
      Bounded.goOn(
          end,
          () ->
              "of %d for each peer, rank %d sent %s and received %s"
                  .formatted(messages, rank, Arrays.toString(sent), Arrays.toString(received)));
      boolean moved = transport.poll(check, 1 + random.nextInt(8)) > 0;
      int peer = (rank + 1 + random.nextInt(size - 1)) % size;
      for (int burst = random.nextInt(6); burst > 0 && sent[peer] < messages; burst--) {
        if (!offer(transport, peer, ofStress(rank, peer, sent[peer], transport))) {
          break;
        }
        sent[peer]++;
        moved = true;
      }
      unfinished = false;
      boolean toSend = false;
      for (int other = 0; other < size; other++) {
        toSend |= other != rank && sent[other] < messages;
        unfinished |= other != rank && (sent[other] < messages || received[other] < messages);
      }
      if (!moved && unfinished && !toSend && parks) {
        transport.park(longNanos());
      }
    }
    return null;
  }

  /// Many small messages and some of any size, so that everything wraps at every alignment.
  private Message ofStress(int from, int to, int number, Transport transport) {
    var random = new SplittableRandom(seed ^ (from * 1_000_003L + to) * 1_000_003L + number);
    int most = transport.maxPayloadBytes(transport.rank() == to ? from : to);
    int bytes = random.nextInt(4) == 0 ? random.nextInt(most + 1) : random.nextInt(65);
    return message(from * 64 + to, number, bytes);
  }

  private @Nullable Object playPingPong(Transport transport, int rounds) {
    long end = end();
    int peer = 1 - transport.rank();
    var inbox = new Inbox();
    for (int round = 0; round < rounds; round++) {
      if (transport.rank() == 0) {
        send(transport, peer, message(0, round, 8));
      }
      while (inbox.messages.size() <= round) {
        Bounded.goOn(
            end,
            () ->
                "rank %d received %d of %d"
                    .formatted(transport.rank(), inbox.messages.size(), rounds));
        if (transport.poll(inbox, 1) == 0) {
          transport.park(longNanos());
        }
      }
      if (transport.rank() == 1) {
        send(transport, peer, message(0, round, 8));
      }
    }
    return null;
  }

  private Message transfer(Transport from, Transport to, Message message) {
    return transfer(from, to, message.header, MemorySegment.ofArray(message.payload));
  }

  private Message transfer(Transport from, Transport to, long[] header, MemorySegment payload) {
    send(from, to.rank(), header, payload);
    var inbox = new Inbox();
    receive(to, inbox, 1);
    assertThat(inbox.peers).containsExactly(from.rank());
    return inbox.messages.getFirst();
  }

  private static boolean offer(Transport from, int peer, Message message) {
    return from.offer(peer, message.header, MemorySegment.ofArray(message.payload));
  }

  private void send(Transport from, int peer, Message message) {
    send(from, peer, message.header, MemorySegment.ofArray(message.payload));
  }

  private void send(Transport from, int peer, long[] header, MemorySegment payload) {
    waitFor(
        () -> from.offer(peer, header, payload),
        () ->
            "rank %d took no payload of %d bytes for rank %d"
                .formatted(from.rank(), payload.byteSize(), peer));
  }

  private void receive(Transport to, Inbox inbox, int more) {
    int first = inbox.messages.size();
    int wanted = first + more;
    waitFor(
        () -> {
          int before = inbox.messages.size();
          int most = Math.min(7, wanted - before);
          assertThat(to.poll(inbox, most))
              .isEqualTo(inbox.messages.size() - before)
              .isLessThanOrEqualTo(most);
          return inbox.messages.size() == wanted;
        },
        () ->
            "rank %d received %d of %d; so far from %s"
                .formatted(to.rank(), inbox.messages.size() - first, more, inbox.senders()));
  }

  /// @param progress how far it is, for the message
  private void waitFor(BooleanSupplier step, Supplier<String> progress) {
    long end = end();
    while (!step.getAsBoolean()) {
      Bounded.goOn(end, progress);
      Thread.yield();
    }
  }

  private long end() {
    return System.nanoTime() + bound().toNanos();
  }

  private void inParallel(List<Callable<?>> ranks) throws Exception {
    Bounded.run("what ranks do on their own threads", bound().multipliedBy(2), ranks);
  }

  private List<Message> kindsOf(int bytes) {
    var zeros = new Message(new long[Transport.HEADER_LONGS], new byte[bytes]);
    var ones = new Message(new long[Transport.HEADER_LONGS], new byte[bytes]);
    Arrays.fill(ones.header, -1);
    Arrays.fill(ones.payload, (byte) -1);
    return List.of(message(0, bytes, bytes), zeros, ones);
  }

  private static List<Integer> sizes(int most) {
    var sizes = new ArrayList<Integer>();
    for (int bytes = 0; bytes <= 130; bytes++) {
      sizes.add(bytes);
    }
    for (int bytes = 256; bytes <= most; bytes *= 2) {
      sizes.addAll(List.of(bytes - 1, bytes));
      if (bytes < most) {
        sizes.add(bytes + 1);
      }
    }
    sizes.addAll(List.of(most - 1, most));
    return sizes;
  }

  /// A message whose header tells its stream and number, and whose bytes follow from these.
  private Message message(int stream, int number, int bytes) {
    var random = new SplittableRandom(seed + stream * 31L + number);
    var header = new long[Transport.HEADER_LONGS];
    var payload = new byte[bytes];
    Arrays.setAll(header, _ -> random.nextLong());
    random.nextBytes(payload);
    header[0] = stream;
    header[1] = number;
    return new Message(header, payload);
  }

  private static byte[] bytes(MemorySegment segment) {
    return segment.toArray(ValueLayout.JAVA_BYTE);
  }

  /// What one offer carries.
  private record Message(long[] header, byte[] payload) {
    @Override
    public boolean equals(@Nullable Object other) {
      return other instanceof Message that
          && Arrays.equals(header, that.header)
          && Arrays.equals(payload, that.payload);
    }

    @Override
    public int hashCode() {
      return Arrays.hashCode(header) * 31 + Arrays.hashCode(payload);
    }

    @Override
    public String toString() {
      return "stream %d, number %d, %d bytes".formatted(header[0], header[1], payload.length);
    }
  }

  /// Keeps copies of what is delivered.
  private static final class Inbox implements PayloadHandler {
    final List<Message> messages = new ArrayList<>();
    final List<Integer> peers = new ArrayList<>();

    @Override
    public void onPayload(int peer, long[] header, MemorySegment payload) {
      assertThat(header).hasSize(Transport.HEADER_LONGS);
      messages.add(new Message(header.clone(), bytes(payload)));
      peers.add(peer);
    }

    /// How many have come from whom.
    String senders() {
      return peers.isEmpty()
          ? "nobody"
          : new TreeSet<>(peers)
              .stream()
                  .map(peer -> "rank %d: %d".formatted(peer, Collections.frequency(peers, peer)))
                  .collect(Collectors.joining(", "));
    }

    List<Message> from(int peer) {
      var theirs = new ArrayList<Message>();
      for (int i = 0; i < messages.size(); i++) {
        if (peers.get(i) == peer) {
          theirs.add(messages.get(i));
        }
      }
      return theirs;
    }
  }
}
