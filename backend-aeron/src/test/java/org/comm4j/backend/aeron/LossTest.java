package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.ext.DebugReceiveChannelEndpoint;
import io.aeron.driver.ext.LossGenerator;
import io.aeron.protocol.DataHeaderFlyweight;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.Operation;
import org.comm4j.api.ReduceOp;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.Transport;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.TransportContract;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What the network loses is sent again, what it delivers twice or late is put into order, and
/// nobody can tell from the results.
///
/// Which datagrams that happens to follows from a seed, though not which of them carry what: that
/// depends on the ranks' timing.
class LossTest {
  private static final String TAKES_LONG = "./verify --full runs it: it takes minutes";
  private static final long SEED = Long.getLong("comm4j.seed", 4242);

  private static final int PAYLOAD_BYTES = 1000;

  /// Each time it is lost the sender's clock goes on so much: longer together than it waits for
  /// peers that ask for nothing, and shorter than it waits at all.
  private static final long STEP_NS = TimeUnit.MILLISECONDS.toNanos(10);

  private static final int LOST_TIMES = 30;

  private static final CommConfig CONFIG =
      small(CommConfig.builder().timeout(Duration.ofSeconds(60)).build());

  @AfterAll
  static void nothingIsLeft() {
    AeronGroups.checkNothingIsLeft();
  }

  @Nested
  class OfOnePercent extends TransportContract {
    @Override
    protected List<AeronTransport> transports(int size) throws Exception {
      return losing(new Loss(0.01, SEED)).patient().transports(size);
    }

    @Override
    protected boolean closesSoon() {
      return false;
    }
  }

  @Nested
  class OfFivePercent extends TransportContract {
    @Override
    protected List<AeronTransport> transports(int size) throws Exception {
      return losing(new Loss(0.05, SEED)).patient().transports(size);
    }

    @Override
    protected boolean closesSoon() {
      return false;
    }
  }

  @Nested
  class OfDisorder extends TransportContract {
    @Override
    protected List<AeronTransport> transports(int size) throws Exception {
      return disordered(new Disorder(SEED)).patient().transports(size);
    }

    @Override
    protected boolean closesSoon() {
      return false;
    }
  }

  /// The whole contract of communicators, which has collectives of 1 to 5 ranks.
  @EnabledIfSystemProperty(named = "comm4j.full", matches = "true", disabledReason = TAKES_LONG)
  @Nested
  class OfFivePercentUnderCommunicators extends CommunicatorContract {
    @Override
    protected CommConfig config() {
      return small(super.config());
    }

    @Override
    protected LocalGroup open(int size, CommConfig config) {
      return losing(new Loss(0.05, SEED), config).communicators(size);
    }
  }

  @EnabledIfSystemProperty(named = "comm4j.full", matches = "true", disabledReason = TAKES_LONG)
  @Nested
  class OfOnePercentUnderCommunicators extends CommunicatorContract {
    @Override
    protected CommConfig config() {
      return small(super.config());
    }

    @Override
    protected LocalGroup open(int size, CommConfig config) {
      return losing(new Loss(0.01, SEED), config).communicators(size);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void collectives_datagramsAreLostOrTwiceOrLate_resultsHaveTheSameBits(int ranks)
      throws Exception {
    List<float[]> expected = results(new AeronGroups(CONFIG), ranks);
    for (double rate : new double[] {0.01, 0.05}) {
      Loss loss = new Loss(rate, SEED);
      expectSameBits(results(losing(loss), ranks), expected, "rate " + rate);
      if (ranks > 1) {
        assertThat(loss.lost()).as("lost datagrams").isPositive();
      }
    }
    Disorder disorder = new Disorder(SEED);
    expectSameBits(results(disordered(disorder), ranks), expected, "twice and late");
    if (ranks > 1) {
      assertThat(disorder.twice()).as("datagrams that came twice").isPositive();
      assertThat(disorder.late()).as("datagrams that came late").isPositive();
    }
  }

  /// As whoever runs the driver may have it: what is lost is left out, and nobody is told.
  @Test
  void collectives_driverWouldSkipWhatIsLost_resultsHaveTheSameBits() throws Exception {
    Loss loss = new Loss(0.05, SEED);
    var groups =
        new AeronGroups(
            CONFIG, _ -> context -> loss.changes().apply(context.reliableStream(false)));
    expectSameBits(results(groups, 2), results(new AeronGroups(CONFIG), 2), "rate 0.05");
    assertThat(loss.lost()).as("lost datagrams").isPositive();
  }

  /// While a rank asks for what is missing, who has sent it stays to send it again.
  @Test
  void close_peerAsksForLong_allThatWasTakenArrives() throws Exception {
    var closedNs = new AtomicLong();
    var lost = new AtomicInteger();
    LongSupplier clock =
        () -> closedNs.get() == 0 ? System.nanoTime() : closedNs.get() + lost.get() * STEP_NS;
    var isLosing = new AtomicBoolean();
    LossGenerator losing =
        (_, _, bytes) ->
            isLosing.get() && bytes > PAYLOAD_BYTES && lost.incrementAndGet() <= LOST_TIMES;
    onPair(
        losingOnRank1(losing),
        clock,
        (from, to, arrived) -> {
          isLosing.set(true);
          offerUntilTaken(from);
          closedNs.set(System.nanoTime());
          from.close();
          assertThat(lost).hasValueGreaterThan(LOST_TIMES);
          pollUntil(2, to, arrived);
        });
  }

  /// Aeron says what it has sent ten times in a second, which is too late for who closes.
  @Test
  void close_wayIsFullAndItsEndIsLost_allThatWasTakenArrives() throws Exception {
    var isLosing = new AtomicBoolean();
    LossGenerator losing =
        (_, _, bytes) -> isLosing.get() || bytes <= DataHeaderFlyweight.HEADER_LENGTH;
    onPair(
        losingOnRank1(losing).patient(),
        System::nanoTime,
        (from, to, arrived) -> {
          isLosing.set(true);
          int taken = 1 + offerUntilFull(from);
          isLosing.set(false);
          from.close();
          pollUntil(taken, to, arrived);
        });
  }

  private interface Sending {
    void run(AeronTransport from, AeronTransport to, int[] arrived);
  }

  /// Has rank 0 send to rank 1, where one payload has arrived already.
  ///
  /// @param clock of rank 0
  private static void onPair(AeronGroups groups, LongSupplier clock, Sending sending)
      throws Exception {
    try (var sessions = InMemorySessions.group(2);
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      var opening = threads.submit(() -> groups.rendezvous(sessions.session(0), clock).open());
      AeronTransport to = groups.rendezvous(sessions.session(1), System::nanoTime).open();
      AeronTransport from = opening.get();
      try {
        int[] arrived = new int[1];
        offerUntilTaken(from);
        pollUntil(1, to, arrived);
        sending.run(from, to, arrived);
      } finally {
        from.close();
        to.close();
      }
    }
  }

  /// @param losing what does not come to rank 1
  private static AeronGroups losingOnRank1(LossGenerator losing) {
    return new AeronGroups(CONFIG, rank -> rank == 1 ? losing(losing) : c -> c);
  }

  /// Offers the shortest payloads until nothing more is taken for a while, in which what was taken
  /// is sent.
  private static int offerUntilFull(AeronTransport from) {
    long[] header = new long[Transport.HEADER_LONGS];
    MemorySegment payload = MemorySegment.ofArray(new byte[0]);
    int taken = 0;
    int refused = 0;
    while (refused < 1000) {
      boolean isTaken = from.offer(1, header, payload);
      taken += isTaken ? 1 : 0;
      refused = isTaken ? 0 : refused + 1;
      from.poll((_, _, _) -> {}, 1);
    }
    return taken;
  }

  private static UnaryOperator<MediaDriver.Context> losing(LossGenerator data) {
    return context ->
        context.receiveChannelEndpointSupplier((channel, dispatcher, status, with) ->
            new DebugReceiveChannelEndpoint(
                channel, dispatcher, status, with, data, (_, _, _) -> false));
  }

  private static void offerUntilTaken(AeronTransport from) {
    long[] header = new long[Transport.HEADER_LONGS];
    MemorySegment payload = MemorySegment.ofArray(new byte[PAYLOAD_BYTES]);
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (!from.offer(1, header, payload)) {
      assertThat(System.nanoTime() - endNs).isNegative();
    }
  }

  private static void pollUntil(int count, AeronTransport to, int[] arrived) {
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    while (arrived[0] < count && System.nanoTime() - endNs < 0) {
      to.poll((_, _, _) -> arrived[0]++, 1);
    }
    assertThat(arrived[0]).isEqualTo(count);
  }

  private static void expectSameBits(List<float[]> actual, List<float[]> expected, String network) {
    assertThat(actual).hasSameSizeAs(expected);
    for (int i = 0; i < expected.size(); i++) {
      MemorySegment bits = MemorySegment.ofArray(actual.get(i));
      assertThat(bits.mismatch(MemorySegment.ofArray(expected.get(i))))
          .as("first wrong byte of result %d, %s, seed %d", i, network, SEED)
          .isEqualTo(-1);
    }
  }

  /// As between hosts: a large message is many datagrams.
  private static CommConfig small(CommConfig config) {
    return config.toBuilder().option("COMM_AERON_MTU", "1408").build();
  }

  private static AeronGroups losing(Loss loss) {
    return losing(loss, CONFIG);
  }

  private static AeronGroups losing(Loss loss, CommConfig config) {
    return new AeronGroups(config, _ -> loss.changes());
  }

  private static AeronGroups disordered(Disorder disorder) {
    return new AeronGroups(CONFIG, _ -> disorder.changes());
  }

  /// What all collectives give, rank by rank.
  private static List<float[]> results(AeronGroups groups, int ranks) throws Exception {
    try (LocalGroup group = groups.communicators(ranks)) {
      return DriverFaultTest.onEach(group.communicators(), LossTest::results).stream()
          .flatMap(List::stream)
          .toList();
    }
  }

  private static List<float[]> results(Communicator comm) {
    List<float[]> results = new ArrayList<>();
    int ranks = comm.size();
    for (int count : new int[] {1, 1_000, 30_001, (1 << 18) / ranks}) {
      int root = count % ranks;
      float[] one = values(comm.rank(), count);
      float[] each = values(comm.rank(), count * ranks);
      List<Operation> operations =
          List.of(
              new Collective.AllReduce(of(each), into(results, count * ranks), ReduceOp.SUM),
              new Collective.Reduce(of(each), into(results, count * ranks), ReduceOp.SUM, root),
              new Collective.AllGather(of(one), into(results, count * ranks)),
              new Collective.Gather(of(one), into(results, count * ranks), root),
              new Collective.Scatter(of(each), into(results, count), root),
              new Collective.ReduceScatter(of(each), into(results, count), ReduceOp.SUM),
              new Collective.AllToAll(of(each), into(results, count * ranks)),
              new Collective.Scan(of(one), into(results, count), ReduceOp.SUM),
              new Collective.ExclusiveScan(of(one), into(results, count), ReduceOp.SUM),
              new Collective.Barrier());
      operations.forEach(comm::run);
      float[] copy = values(comm.rank(), count * ranks);
      comm.broadcast(copy, root);
      results.add(copy);
    }
    return results;
  }

  private static CommData of(float[] values) {
    return CommData.of(values);
  }

  private static CommData into(List<float[]> results, int count) {
    float[] result = new float[count];
    results.add(result);
    return of(result);
  }

  private static float[] values(int rank, int count) {
    var random = new SplittableRandom(SEED + rank);
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = (float) random.nextGaussian();
    }
    return values;
  }
}
