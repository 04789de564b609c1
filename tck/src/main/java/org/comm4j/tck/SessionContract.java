package org.comm4j.tck;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.comm4j.api.ClosedException;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.api.spi.Session.Abort;
import org.comm4j.api.spi.Session.Failure;
import org.comm4j.api.spi.Session.News;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Every promise of [Session], for every kind of session: extend it and say how a group is made.
///
/// Ranks are threads here, except the last one of a group with a victim, which is whatever can die:
/// a process that is killed, or a thread that is said to have failed.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
public abstract class SessionContract {
  private static final Duration SOON = Duration.ofSeconds(20);
  private static final Duration SHORT = Duration.ofMillis(100);

  private final List<AutoCloseable> opened = new ArrayList<>();

  /// For subclasses.
  protected SessionContract() {}

  /// Ranks that have joined.
  ///
  /// @param sessions in order of rank; without the victim's, which is the last rank
  /// @param victim the last rank, or null
  public record Group(List<Session> sessions, @Nullable Victim victim) {
    /// Of all ranks here, in order.
    public Group {
      sessions = List.copyOf(sessions);
    }
  }

  /// A rank that does as it is told, and dies.
  public interface Victim extends AutoCloseable {
    /// Contributes to an exchange and does not wait.
    ///
    /// @param key of the exchange
    /// @param bytes its part
    void exchange(String key, byte[] bytes);

    /// Contributes to an agreement and does not wait.
    ///
    /// @param key of the agreement
    /// @param members of the agreement
    /// @param bytes its part
    void agree(String key, List<Integer> members, byte[] bytes);

    /// Dies without a goodbye.
    void kill();

    /// Whether it can be stopped for a while.
    ///
    /// @return false for a thread
    boolean canStop();

    /// Is silent until [#resume()], for longer than the liveness time.
    void stop();

    /// Goes on.
    void resume();

    /// Waits until the rank knows that the others have given it up.
    ///
    /// @return its [News#evicted()]
    String awaitEvicted();

    @Override
    void close();
  }

  /// Has ranks join that are threads.
  ///
  /// @param size how many, at least 1
  /// @return all of them; closed by the caller
  protected abstract Group open(int size);

  /// Has ranks join that are threads, and one more.
  ///
  /// @param size how many, the victim included, at least 2
  /// @param liveness after which a silent rank is given up
  /// @return all of them; closed by the caller
  protected abstract Group openWithVictim(int size, Duration liveness);

  @AfterEach
  void closeAll() throws Exception {
    for (AutoCloseable resource : opened) {
      resource.close();
    }
  }

  @Test
  void join_allRanks_knowEachOther() {
    List<Session> sessions = group(3);
    for (int rank = 0; rank < 3; rank++) {
      Session session = sessions.get(rank);
      assertThat(session.rank()).isEqualTo(rank);
      assertThat(session.size()).isEqualTo(3);
      assertThat(session.id()).matches("[0-9a-f]{16,32}").isEqualTo(sessions.get(0).id());
      assertThat(session.news()).isSameAs(News.NONE);
      for (int other = 0; other < 3; other++) {
        assertThat(session.member(other).rank()).isEqualTo(other);
        assertThat(session.member(other).pid()).isEqualTo(ProcessHandle.current().pid());
        assertThat(session.member(other).host()).isEqualTo(session.member(rank).host());
      }
      assertThatThrownBy(() -> session.member(3)).isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void join_twoGroups_haveDifferentIds() {
    assertThat(group(1).get(0).id()).isNotEqualTo(group(1).get(0).id());
  }

  @Test
  void exchange_allRanks_giveEveryoneEverything() {
    List<Session> sessions = group(4);
    for (int round = 0; round < 5; round++) {
      String key = "round-" + round;
      List<List<byte[]>> answers =
          onAll(sessions, session -> session.exchange(key, bytes("r" + session.rank()), SOON));
      for (List<byte[]> answer : answers) {
        assertThat(texts(answer)).containsExactly("r0", "r1", "r2", "r3");
      }
    }
  }

  @Test
  void exchange_groupOfOne_isTheIdentity() {
    Session session = group(1).get(0);
    assertThat(texts(session.exchange("k", bytes("me"), SOON))).containsExactly("me");
    session.barrier("b", SOON);
  }

  @Test
  void exchange_largestAndEmpty_arrive() {
    List<Session> sessions = group(2);
    var largest = new byte[64 * 1024];
    largest[largest.length - 1] = 7;
    List<List<byte[]>> answers =
        onAll(
            sessions,
            session -> session.exchange("k", session.rank() == 0 ? largest : new byte[0], SOON));
    for (List<byte[]> answer : answers) {
      assertThat(answer.get(0)).isEqualTo(largest);
      assertThat(answer.get(1)).isEmpty();
    }
  }

  @Test
  void exchange_wrongArguments_areRefusedHere() {
    Session session = group(1).get(0);
    assertThatThrownBy(() -> session.exchange("k", new byte[64 * 1024 + 1], SOON))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> session.exchange("", new byte[0], SOON))
        .isInstanceOf(IllegalArgumentException.class);
    session.exchange("k", new byte[0], SOON);
    assertThatThrownBy(() -> session.exchange("k", new byte[0], SOON))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void exchange_answersAreTheCallersOwn() {
    List<Session> sessions = group(2);
    byte[] mine = bytes("same");
    List<List<byte[]>> answers = onAll(sessions, session -> session.exchange("k", mine, SOON));
    answers.get(0).get(0)[0] = 'X';
    assertThat(texts(answers.get(1))).containsExactly("same", "same");
    assertThat(mine).isEqualTo(bytes("same"));
  }

  @Test
  void exchange_rankDoesNotCome_timesOutNamingIt() {
    List<Session> sessions = group(3);
    List<CollectiveTimeoutException> failures =
        onAll(
            sessions.subList(0, 2),
            session -> {
              assertThat(late(session, "k").missing()).contains(2);
              // behind what these two have given: both know of it, and may go on waiting
              session.agree("given", List.of(0, 1), new byte[0], SOON);
              return late(session, "k");
            });
    assertThat(failures).allSatisfy(e -> assertThat(e.missing()).containsExactly(2));
    assertThat(sessions.get(0).news()).isSameAs(News.NONE);
  }

  private static CollectiveTimeoutException late(Session session, String key) {
    return catchThrowableOfType(
        CollectiveTimeoutException.class, () -> session.exchange(key, new byte[0], SHORT));
  }

  @Test
  void barrier_releasesNobodyBeforeTheLast() {
    List<Session> sessions = group(2);
    var early = new AtomicReference<Thread>();
    var isReleased = new AtomicBoolean();
    onAll(
        sessions,
        session -> {
          if (session.rank() == 0) {
            early.set(Thread.currentThread());
            session.barrier("b", SOON);
            isReleased.set(true);
          } else {
            long start = System.nanoTime();
            assertThat(
                    eventually(() -> isReleased.get() || ThreadChecks.sleeps(early.get(), start)))
                .isTrue();
            assertThat(isReleased).isFalse();
            session.barrier("b", SOON);
          }
          return session;
        });
  }

  @Test
  void agree_everyoneAlive_givesMembersEverything() {
    List<Session> sessions = group(4);
    List<Integer> members = List.of(3, 1);
    List<List<byte[]>> answers =
        onAll(
            List.of(sessions.get(1), sessions.get(3)),
            session -> present(session.agree("k", members, bytes("r" + session.rank()), SOON)));
    assertThat(answers).allSatisfy(answer -> assertThat(texts(answer)).containsExactly("r3", "r1"));
  }

  /// What it gave before stands, also for those who come later.
  @Test
  void agree_leftByATimeoutAndAnInterrupt_mayBeGoneOnWith() {
    List<Session> sessions = group(2);
    List<Integer> members = List.of(0, 1);
    Session early = sessions.get(0);
    assertThatThrownBy(() -> early.agree("k", members, bytes("first"), Duration.ofMillis(1)))
        .isInstanceOf(CollectiveTimeoutException.class);
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> early.agree("k", members, bytes("second"), SOON))
        .isInstanceOf(InterruptedCallException.class);
    assertThat(Thread.interrupted()).isTrue();

    List<List<byte[]>> answers =
        onAll(sessions, session -> present(session.agree("k", members, bytes("late"), SOON)));

    assertThat(answers)
        .allSatisfy(answer -> assertThat(texts(answer)).containsExactly("first", "late"));
    assertThatThrownBy(() -> early.agree("k", members, bytes("again"), SOON))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void agree_disjointMembers_mayUseOneKey() {
    List<Session> sessions = group(4);
    List<List<byte[]>> answers =
        onAll(
            sessions,
            session -> {
              int even = session.rank() % 2;
              return present(
                  session.agree("k", List.of(even, even + 2), bytes("r" + session.rank()), SOON));
            });
    assertThat(texts(answers.get(0))).containsExactly("r0", "r2");
    assertThat(texts(answers.get(3))).containsExactly("r1", "r3");
  }

  @Test
  void agree_wrongMembers_areRefusedHere() {
    List<Session> sessions = group(2);
    for (List<Integer> members : List.of(List.of(1), List.of(0, 0), List.of(0, 2))) {
      assertThatThrownBy(() -> sessions.get(0).agree("k", members, new byte[0], SOON))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void get_waitsForTheFirstValue() {
    List<Session> sessions = group(3);
    List<String> values =
        onAll(
            sessions,
            session -> {
              if (session.rank() == 1) {
                session.put("k", bytes("first"));
                session.put("k", bytes("second"));
              }
              return text(session.get("k", SOON));
            });
    assertThat(values).containsOnly("first");
    assertThat(text(sessions.get(0).get("k", SOON))).isEqualTo("first");
  }

  @Test
  void get_nobodyPuts_timesOut() {
    Session session = group(1).get(0);
    assertThatThrownBy(() -> session.get("nothing", SHORT))
        .isInstanceOf(CollectiveTimeoutException.class)
        .hasMessageContaining("nothing");
  }

  @Test
  void abort_reachesEveryoneInOneOrder() {
    List<Session> sessions = group(3);
    sessions.get(0).abort(17, bytes("why"));
    sessions.get(2).abort(Long.MIN_VALUE, new byte[4096]);
    for (Session session : sessions) {
      assertThat(eventually(() -> session.news().aborts().size() == 2)).isTrue();
    }
    List<Abort> order = sessions.get(0).news().aborts();
    for (Session session : sessions) {
      List<Abort> aborts = session.news().aborts();
      assertThat(aborts).extracting(Abort::scope).isEqualTo(scopes(order));
      assertThat(aborts).extracting(Abort::rank).containsExactlyInAnyOrder(0, 2);
      assertThat(session.news().failures()).isEmpty();
    }
    Abort first = order.get(order.get(0).rank() == 0 ? 0 : 1);
    assertThat(first.scope()).isEqualTo(17);
    assertThat(text(first.reason())).isEqualTo("why");
    assertThatThrownBy(() -> sessions.get(0).abort(1, new byte[4097]))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void onNews_runsAtEveryChange() {
    List<Session> sessions = group(2);
    var once = new CountDownLatch(1);
    var twice = new CountDownLatch(2);
    sessions.get(1).onNews(once::countDown);
    sessions.get(1).onNews(twice::countDown);
    sessions.get(0).abort(1, new byte[0]);
    assertThat(await(once)).isTrue();
    assertThat(sessions.get(1).news().aborts()).hasSize(1);
    sessions.get(0).abort(2, new byte[0]);
    assertThat(await(twice)).isTrue();
  }

  @Test
  void onNews_closed_runsNoMore() {
    List<Session> sessions = group(2);
    var forgotten = new AtomicInteger();
    var heard = new CountDownLatch(1);
    Session.NewsAction first = sessions.get(1).onNews(forgotten::incrementAndGet);
    sessions.get(1).onNews(heard::countDown);
    first.close();
    first.close();
    sessions.get(0).abort(1, new byte[0]);
    assertThat(await(heard)).isTrue();
    assertThat(forgotten.get()).isZero();
  }

  @Test
  void onNews_actionThrows_harmsNobody() {
    List<Session> sessions = group(2);
    sessions
        .get(1)
        .onNews(() -> {
          throw new IllegalStateException("thrown on purpose");
        });
    var after = new CountDownLatch(1);
    sessions.get(1).onNews(after::countDown);
    sessions.get(0).abort(1, new byte[0]);
    assertThat(await(after)).isTrue();
    onAll(sessions, session -> session.exchange("k", new byte[0], SOON));
  }

  @Test
  void interrupt_inACall_endsTheCallOnly() throws Exception {
    List<Session> sessions = group(2);
    for (boolean isBefore : new boolean[] {true, false}) {
      String key = isBefore ? "before" : "while it waits";
      var flag = new boolean[1];
      var thrown = new Throwable[1];
      var waiter =
          new Thread(() -> {
            if (isBefore) {
              Thread.currentThread().interrupt();
            }
            thrown[0] =
                catchThrowableOfType(
                    InterruptedCallException.class,
                    () -> sessions.get(0).exchange(key, new byte[0], SOON));
            flag[0] = Thread.currentThread().isInterrupted();
          });
      waiter.start();
      if (!isBefore) {
        awaitWaiting(waiter);
        waiter.interrupt();
      }
      waiter.join(SOON.toMillis());
      assertThat(thrown[0]).isInstanceOf(InterruptedCallException.class);
      assertThat(flag[0]).isTrue();
    }
    onAll(sessions, session -> session.exchange("after", new byte[0], SOON));
  }

  @Test
  void close_twice_isQuickAndFinal() {
    List<Session> sessions = group(2);
    long start = System.nanoTime();
    sessions.get(1).close();
    sessions.get(1).close();
    Promise.CLOSED.keep("L1", "to close a session twice", start);
    Session closed = sessions.get(1);
    assertThatThrownBy(() -> closed.exchange("k", new byte[0], SOON))
        .isInstanceOf(ClosedException.class);
    assertThatThrownBy(() -> closed.put("k", new byte[0])).isInstanceOf(ClosedException.class);
    assertThatThrownBy(() -> closed.get("k", SOON)).isInstanceOf(ClosedException.class);
    closed.abort(1, new byte[0]);
  }

  @Test
  void close_whileAnotherThreadWaits_wakesIt() throws Exception {
    List<Session> sessions = group(2);
    var waiter =
        new FutureTask<>(() ->
            catchThrowableOfType(
                ClosedException.class, () -> sessions.get(0).exchange("k", new byte[0], SOON)));
    awaitWaiting(Thread.ofPlatform().daemon().start(waiter));
    sessions.get(0).close();
    assertThat(waiter.get(20, TimeUnit.SECONDS)).isInstanceOf(ClosedException.class);
  }

  @Test
  void exchange_withOneWhoHasLeft_failsNamingIt() {
    List<Session> sessions = group(3);
    sessions.get(2).close();
    List<PeerFailedException> failures =
        onAll(
            sessions.subList(0, 2),
            session ->
                catchThrowableOfType(
                    PeerFailedException.class, () -> session.exchange("k", new byte[0], SOON)));
    for (PeerFailedException failure : failures) {
      assertThat(failure.worldRanks()).containsExactly(2);
      assertThat(failure.evidence()).contains("left the session");
    }
    for (Session session : sessions.subList(0, 2)) {
      assertThat(session.news().failures())
          .singleElement()
          .satisfies(failure -> assertThat(failure.evidence()).isEqualTo("left the session"));
      assertThat(session.news().isGone(2)).isTrue();
      assertThat(session.news().isGone(1)).isFalse();
      assertThat(session.news().evicted()).isNull();
    }
  }

  /// The first one may be who keeps the session for the others.
  @Test
  void close_ofRank0_leavesTheOthersTheSession() {
    Group group = groupWithVictim(4, Duration.ofSeconds(10));
    List<Session> others = group.sessions().subList(1, 3);
    group.sessions().get(0).close();
    for (Session session : others) {
      assertThat(eventually(() -> session.news().isGone(0))).isTrue();
    }
    onAll(others, session -> session.agree("k", List.of(1, 2), new byte[1], SOON));
    others.get(0).abort(7, bytes("why"));
    for (Session session : others) { // before the death, which does not wait for it
      assertThat(eventually(() -> session.news().aborts().size() == 1)).isTrue();
    }
    victim(group).kill();
    for (Session session : others) {
      assertThat(eventually(() -> session.news().isGone(3))).isTrue();
      assertThat(scopes(session.news().aborts())).containsExactly(7L);
      assertThat(session.news().evicted()).isNull();
    }
    assertThat(onAll(others, session -> session.agree("end", List.of(1, 2), new byte[1], SOON)))
        .allSatisfy(answer -> assertThat(answer).hasSize(2));
  }

  @Test
  void exchange_isBrokenForThoseWhoComeLaterToo() {
    List<Session> sessions = group(3);
    sessions.get(2).close();
    for (Session session : sessions.subList(0, 2)) {
      assertThatThrownBy(() -> session.exchange("k", new byte[0], SOON))
          .isInstanceOf(PeerFailedException.class);
    }
  }

  @Test
  void agree_withOneWhoHasLeft_goesOnWithout() {
    List<Session> sessions = group(3);
    sessions.get(2).close();
    List<List<byte @Nullable []>> answers =
        onAll(
            sessions.subList(0, 2),
            session -> session.agree("k", List.of(0, 1, 2), bytes("r" + session.rank()), SOON));
    for (var answer : answers) {
      assertThat(answer).hasSize(3);
      assertThat(answer.get(0)).isEqualTo(bytes("r0"));
      assertThat(answer.get(1)).isEqualTo(bytes("r1"));
      assertThat(answer.get(2)).isNull();
    }
  }

  @Test
  void close_rightAfterTheLastExchange_disturbsNobody() {
    for (int round = 0; round < 10; round++) {
      List<Session> sessions = group(4);
      List<Integer> sizes =
          onAll(
              sessions,
              session -> {
                int answers = session.exchange("last", new byte[1000], SOON).size();
                session.close();
                return answers;
              });
      assertThat(sizes).containsOnly(4);
    }
  }

  @Test
  void kill_whileOthersWait_isKnownByNameSoon() {
    Group group = groupWithVictim(3, Duration.ofSeconds(10));
    onAll(
        group.sessions(),
        session -> {
          if (session.rank() == 0) {
            victim(group).kill();
          }
          long start = System.nanoTime();
          PeerFailedException failure =
              catchThrowableOfType(
                  PeerFailedException.class, () -> session.exchange("k", new byte[0], SOON));
          assertThat(failure.worldRanks()).containsExactly(2);
          assertThat(failure.evidence()).isNotBlank();
          Promise.DEATH_KNOWN.keep("F5", "to hear of a death", start);
          assertThat(session.news().failures()).extracting(Failure::rank).containsExactly(2);
          assertThat(session.news().evicted()).isNull();
          return "";
        });
  }

  @Test
  void kill_afterItsContribution_letsTheExchangeComplete() {
    Group group = groupWithVictim(3, Duration.ofSeconds(10));
    victim(group).exchange("k", bytes("last words"));
    victim(group).kill();
    List<List<byte[]>> answers =
        onAll(
            group.sessions(),
            session -> {
              assertThat(eventually(() -> session.news().isGone(2))).isTrue();
              return session.exchange("k", bytes("r" + session.rank()), SOON);
            });
    for (List<byte[]> answer : answers) {
      assertThat(texts(answer)).containsExactly("r0", "r1", "last words");
    }
  }

  @Test
  void agree_memberIsKilled_givesAllTheSameWithoutIt() {
    Group group = groupWithVictim(4, Duration.ofSeconds(10));
    List<Integer> members = List.of(0, 1, 2, 3);
    victim(group).agree("contributed", members, bytes("dead"));
    List<String> outcomes =
        onAll(
            group.sessions(),
            session -> {
              if (session.rank() == 1) {
                victim(group).kill();
              }
              var waited = session.agree("waits", members, bytes("r" + session.rank()), SOON);
              var late = session.agree("contributed", members, bytes("r" + session.rank()), SOON);
              assertThat(waited.get(3)).isNull();
              assertThat(waited.subList(0, 3)).doesNotContainNull();
              assertThat(late.get(3)).isNull();
              return session.news().failures().toString();
            });
    assertThat(outcomes).hasSize(3);
    assertThat(outcomes.stream().distinct()).hasSize(1);
  }

  @Test
  void kill_betweenTwoAborts_isCountedByTheLaterOne() {
    Group group = groupWithVictim(3, Duration.ofSeconds(10));
    List<Session> sessions = group.sessions();
    sessions.get(0).abort(1, new byte[0]);
    for (Session session : sessions) {
      assertThat(eventually(() -> session.news().aborts().size() == 1)).isTrue();
    }
    victim(group).kill();
    for (Session session : sessions) {
      assertThat(eventually(() -> session.news().isGone(2))).isTrue();
    }
    sessions.get(1).abort(2, new byte[0]);
    for (Session session : sessions) {
      assertThat(eventually(() -> session.news().aborts().size() == 2)).isTrue();
      assertThat(session.news().aborts()).extracting(Abort::failuresBefore).containsExactly(0, 1);
    }
  }

  @Test
  void kill_survivorsGoOn() {
    Group group = groupWithVictim(3, Duration.ofSeconds(10));
    victim(group).kill();
    onAll(
        group.sessions(),
        session -> {
          assertThat(eventually(() -> session.news().isGone(2))).isTrue();
          session.put("from-" + session.rank(), bytes("v"));
          session.get("from-" + (1 - session.rank()), SOON);
          return session.agree("k", List.of(0, 1), new byte[0], SOON);
        });
  }

  @Test
  void stop_forLongerThanLiveness_evicts() {
    Group group = groupWithVictim(3, Duration.ofSeconds(2));
    assumeTrue(victim(group).canStop(), "the ranks of this kind of session can't be stopped");
    victim(group).stop();
    onAll(
        group.sessions(),
        session -> {
          assertThat(eventually(() -> session.news().isGone(2))).isTrue();
          assertThat(session.news().failures().get(0).evidence()).contains("silent for");
          assertThat(session.news().evicted()).isNull();
          return session.agree("k", List.of(0, 1), new byte[0], SOON);
        });
    victim(group).resume();
    assertThat(victim(group).awaitEvicted()).isNotBlank();
  }

  /// Nor is it held against the rank later, when the others have watched for longer than that.
  @Test
  void stop_forLessThanLiveness_isForgiven() throws Exception {
    Group group = groupWithVictim(2, Duration.ofSeconds(6));
    assumeTrue(victim(group).canStop(), "the ranks of this kind of session can't be stopped");
    Session session = group.sessions().get(0);
    var news = new CountDownLatch(1);
    session.onNews(news::countDown);
    victim(group).stop();
    assertThat(news.await(2, TimeUnit.SECONDS)).isFalse();
    victim(group).resume();
    assertThat(news.await(5, TimeUnit.SECONDS)).isFalse();
    victim(group).exchange("k", bytes("alive"));
    assertThat(texts(session.exchange("k", bytes("too"), SOON))).containsExactly("too", "alive");
  }

  @Test
  void openAndClose_manyTimes_leavesNothing() {
    onAll(group(2), session -> session.exchange("warm up", new byte[0], SOON));
    closeQuietly();
    int threads = sessionThreads();
    long descriptors = descriptors();
    for (int i = 0; i < 50; i++) {
      onAll(
          group(2),
          session -> {
            session.barrier("b", SOON);
            session.close();
            return "";
          });
    }
    closeQuietly();
    assertThat(eventually(() -> sessionThreads() <= threads)).isTrue();
    assertThat(eventually(() -> descriptors() <= descriptors + 4)).isTrue();
  }

  // --- Tools ---

  private List<Session> group(int size) {
    List<Session> sessions = open(size).sessions();
    opened.addAll(sessions.reversed());
    return sessions;
  }

  private Group groupWithVictim(int size, Duration liveness) {
    Group group = openWithVictim(size, liveness);
    opened.add(victim(group));
    opened.addAll(group.sessions().reversed());
    return group;
  }

  private static Victim victim(Group group) {
    return Objects.requireNonNull(group.victim());
  }

  private void closeQuietly() {
    try {
      closeAll();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
    opened.clear();
  }

  /// Runs something on every rank at once.
  private <T> List<T> onAll(List<Session> sessions, Function<Session, T> action) {
    ExecutorService executor = Executors.newFixedThreadPool(sessions.size());
    try {
      List<Future<T>> futures =
          sessions.stream().map(session -> executor.submit(() -> action.apply(session))).toList();
      var results = new ArrayList<T>();
      for (Future<T> future : futures) {
        results.add(future.get(40, TimeUnit.SECONDS));
      }
      return results;
    } catch (ExecutionException e) {
      throw new AssertionError(e.getCause());
    } catch (Exception e) {
      throw new AssertionError(e);
    } finally {
      executor.shutdownNow();
    }
  }

  private static boolean eventually(BooleanSupplier condition) {
    long start = System.nanoTime();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - start > SOON.toNanos()) {
        return false;
      }
      LockSupport.parkNanos(1_000_000);
    }
    return true;
  }

  /// Returns when a thread is in a call that waits.
  private static void awaitWaiting(Thread thread) {
    Set<Thread.State> waiting = EnumSet.of(Thread.State.WAITING, Thread.State.TIMED_WAITING);
    assertThat(eventually(() -> waiting.contains(thread.getState()))).isTrue();
  }

  private static boolean await(CountDownLatch latch) {
    try {
      return latch.await(SOON.toSeconds(), TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static int sessionThreads() {
    return (int)
        Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> thread.getName().startsWith("comm4j-session"))
            .count();
  }

  private static long descriptors() {
    String[] open = new File("/proc/self/fd").list();
    return open == null ? 0 : open.length;
  }

  private static List<byte[]> present(List<byte @Nullable []> answers) {
    return IntStream.range(0, answers.size())
        .mapToObj(i -> Objects.requireNonNull(answers.get(i)))
        .toList();
  }

  private static List<Long> scopes(List<Abort> aborts) {
    return aborts.stream().map(Abort::scope).toList();
  }

  private static byte[] bytes(String text) {
    return text.getBytes(UTF_8);
  }

  private static String text(byte[] bytes) {
    return new String(bytes, UTF_8);
  }

  private static List<String> texts(List<byte[]> all) {
    return all.stream().map(SessionContract::text).toList();
  }
}
