package org.comm4j.core.session;

import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;
import java.util.function.IntFunction;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.comm4j.api.ClosedException;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommException;
import org.comm4j.api.EvictedException;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.api.spi.ThreadRanks;
import org.jspecify.annotations.Nullable;

/// A rank's session, made by replaying the common history of events.
///
/// Calls turn into events that are handed to the [History]; the history hands every rank all events
/// in one order ([#deliver]); waiters look at what the events have made of the state. An exchange
/// is decided by the event that completes it, or by the one after which it can't be completed any
/// more; so all ranks see the same outcome, also those that ask later. Since a rank has heard of
/// everything that came before its own contribution, none can miss a failure that another one has
/// seen decide.
final class ReplicatedSession implements Session {
  /// How long a waiter sleeps at most before it looks at the clock again, which may be virtual.
  private static final long SLICE_NS = TimeUnit.MILLISECONDS.toNanos(20);

  private static final long HALT_PATIENCE_NS = TimeUnit.SECONDS.toNanos(2);

  /// How many topics, and how many aborts, a session remembers. A topic that is forgotten has been
  /// answered, or nobody here has asked; a rank that has not looked at the news for so many aborts
  /// may miss one.
  private static final int MOST_REMEMBERED = 4096;

  /// How many values a session remembers: enough for some of each rank of a large launch.
  private static final int MOST_VALUES = 16 * 1024;

  private static final System.Logger LOG = System.getLogger(ReplicatedSession.class.getName());

  /// Keeps the events in order.
  interface History {
    /// Adds an event of this rank. Callable from any thread; does not block for long.
    void append(Event event);

    /// Adds the rank's goodbye and frees everything, within 2 s.
    void close();

    /// Where the rank's end of its connection is, or where it lets the others in; nowhere without
    /// connections.
    default Optional<InetAddress> ownAddress() {
      return Optional.empty();
    }
  }

  private final int rank;
  private final String id;
  private final List<Member> members;
  private final History history;
  private final LongSupplier nanoTime;
  private final IntConsumer halt;

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final List<OwnNewsAction> newsActions = new CopyOnWriteArrayList<>();
  private volatile News news = News.NONE;
  private volatile boolean closed;
  private final AtomicInteger waiters = new AtomicInteger();

  // Guarded by the lock.
  private final Map<Topic, Gathering> gatherings = latest(MOST_REMEMBERED);
  private final Set<Topic> used = Collections.newSetFromMap(latest(MOST_REMEMBERED));
  private final Set<Topic> left = Collections.newSetFromMap(latest(MOST_REMEMBERED));
  private final Set<Topic> answered = Collections.newSetFromMap(latest(MOST_REMEMBERED));
  private final Map<String, byte[]> values = latest(MOST_VALUES);
  private final Map<Integer, Gone> gone = new LinkedHashMap<>();
  private boolean halted;
  private int told;
  private @Nullable Supplier<CommException> lost;

  /// @param members of all ranks, in order
  /// @param nanoTime monotonic
  /// @param halt ends this process with an exit code
  ReplicatedSession(
      int rank,
      String id,
      List<Member> members,
      History history,
      LongSupplier nanoTime,
      IntConsumer halt) {
    this.rank = rank;
    this.id = id;
    this.members = List.copyOf(members);
    this.history = history;
    this.nanoTime = nanoTime;
    this.halt = halt;
  }

  /// Ends this process at once; says so first.
  static void haltProcess(int code) {
    System.err.println("comm4j: a rank has ended all processes of the session, exit code " + code);
    System.err.flush();
    ThreadRanks.abort(code);
  }

  /// What the history says of it.
  Optional<InetAddress> ownAddress() {
    return history.ownAddress();
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return members.size();
  }

  @Override
  public String id() {
    return id;
  }

  @Override
  public Member member(int rank) {
    if (rank < 0 || rank >= size()) {
      throw new IllegalArgumentException(
          "rank: %d (expected: 0..%d, the session has %d ranks)"
              .formatted(rank, size() - 1, size()));
    }
    return members.get(rank);
  }

  @Override
  public List<byte[]> exchange(String key, byte[] mine, Duration timeout) {
    Topic topic = Topic.exchange(checkedKey(key));
    return switch (gather(topic, mine, timeout)) {
      case Outcome.Complete complete -> {
        var all = new ArrayList<byte[]>();
        for (byte @Nullable [] bytes : complete.bytes()) {
          all.add(Objects.requireNonNull(bytes));
        }
        yield all;
      }
      case Outcome.Broken broken -> throw failed(broken.missing());
    };
  }

  @Override
  public List<byte @Nullable []> agree(
      String key, List<Integer> members, byte[] mine, Duration timeout) {
    Topic topic = Topic.agreement(checkedKey(key), members);
    checkMembers(topic.members());
    return switch (gather(topic, mine, timeout)) {
      case Outcome.Complete complete -> complete.bytes();
      case Outcome.Broken broken -> throw failed(broken.missing());
    };
  }

  @Override
  public void put(String key, byte[] value) {
    checkedKey(key);
    checkBytes("value", value, FrameCodec.MAX_VALUE_BYTES);
    lock.lock();
    try {
      checkUsable("put '" + key + "'");
    } finally {
      lock.unlock();
    }
    history.append(new Event.Put(rank, key, value.clone()));
  }

  @Override
  public byte[] get(String key, Duration timeout) {
    checkedKey(key);
    String what = "get '" + key + "'";
    return await(
            what,
            timeout,
            () -> values.get(key),
            () ->
                new CollectiveTimeoutException(
                    List.of(), what + ": nobody put a value within " + seconds(timeout)))
        .clone();
  }

  @Override
  public void abort(long scope, byte[] reason) {
    checkBytes("reason", reason, FrameCodec.MAX_REASON_BYTES);
    if (!closed) {
      history.append(new Event.Abort(rank, scope, reason.clone()));
    }
  }

  @Override
  public void abortProcesses(int code) {
    if (code < 1 || code > 255) {
      throw new IllegalArgumentException("code: %d (expected: 1..255)".formatted(code));
    }
    if (!closed) {
      history.append(new Event.Halt(rank, code));
      awaitHalt();
    }
    boolean already;
    lock.lock();
    try {
      already = halted;
      halted = true;
    } finally {
      lock.unlock();
    }
    if (!already) {
      halt.accept(code);
    }
  }

  /// Waits until the order to halt has come back, so that it has not been lost with this process.
  /// An interrupt is kept for later: it may be why the processes are to end.
  private void awaitHalt() {
    long start = System.nanoTime();
    boolean interrupted = false;
    lock.lock();
    try {
      while (!halted && lost == null && System.nanoTime() - start < HALT_PATIENCE_NS) {
        try {
          changed.awaitNanos(SLICE_NS);
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      lock.unlock();
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  @Override
  public News news() {
    return news;
  }

  @Override
  public NewsAction onNews(Runnable action) {
    var own = new OwnNewsAction(action);
    newsActions.add(own);
    return own;
  }

  @Override
  public void close() {
    lock.lock();
    try {
      closed = true;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
    history.close();
  }

  @Override
  public String toString() {
    return "session %s, rank %d of %d".formatted(id, rank, size());
  }

  /// How many calls wait now. Histories that poll look more often then.
  int waiters() {
    return waiters.get();
  }

  /// Takes the next event in.
  ///
  /// @return whether there is news; the caller then calls [#tellNews()], holding no lock
  boolean deliver(Event event) {
    lock.lock();
    try {
      int before = told;
      take(event);
      changed.signalAll();
      return before != told;
    } finally {
      lock.unlock();
    }
  }

  /// Runs the actions that wait for news.
  void tellNews() {
    for (OwnNewsAction each : newsActions) {
      try {
        each.action.run();
      } catch (RuntimeException | Error e) {
        LOG.log(System.Logger.Level.ERROR, "an action for the news of a session failed", e);
      }
    }
  }

  /// The history can't go on without the rank that keeps it, which may have left in order before.
  /// That is the end of all communicators: nobody hears any more of deaths and of what others
  /// break.
  void loseHost(int host, String evidence) {
    String hosted = evidence + Failure.HOSTED;
    lock.lock();
    try {
      if (lost != null) {
        return; // this rank was out before
      }
      boolean hadLeft = gone.containsKey(host);
      lost = () -> new PeerFailedException(List.of(host), List.of(host), hosted, null);
      fail(host, hosted, null); // first: its communicators break by the peer that has failed
      publishEviction(
          "rank %d, which hosted the session%s, is gone: %s"
              .formatted(host, hadLeft ? " and had left it" : "", evidence));
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /// This rank is out: the others have given it up, or the session is no more.
  void evict(String why) {
    lock.lock();
    try {
      publishEviction(why);
      if (lost == null) {
        lost = () -> new EvictedException(why);
      }
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  private void publishEviction(String why) {
    if (news.evicted() == null) {
      publish(new News(news.failures(), news.aborts(), why));
    }
  }

  private void take(Event event) {
    if (gone.containsKey(event.rank())) {
      return; // It does not know yet that it is out.
    }
    switch (event) {
      case Event.Contribute contribute -> contribute(contribute);
      case Event.Put put -> values.putIfAbsent(put.key(), put.value());
      case Event.Abort abort -> {
        List<Abort> known = news.aborts();
        var aborts =
            new ArrayList<>(
                known.subList(Math.max(0, known.size() + 1 - MOST_REMEMBERED), known.size()));
        int before = news.failures().size();
        aborts.add(new Abort(abort.scope(), abort.rank(), abort.reason(), before));
        publish(new News(news.failures(), aborts, news.evicted()));
      }
      case Event.Fail fail -> {
        if (fail.rank() == rank) {
          evict("the others have given up rank %d: %s".formatted(rank, fail.evidence()));
        }
        fail(fail.rank(), fail.evidence(), fail.cause());
      }
      case Event.Leave leave -> leave(leave.rank());
      case Event.Halt order -> {
        if (!halted) {
          halted = true;
          changed.signalAll();
          halt.accept(order.code());
        }
      }
    }
  }

  /// A map that forgets its oldest entries.
  private static <K, V> Map<K, V> latest(int most) {
    return new LinkedHashMap<>() {
      @Override
      protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
        return size() > most;
      }
    };
  }

  private void contribute(Event.Contribute event) {
    if (event.topic().includes(rank) && !answered.contains(event.topic())) {
      gathering(event.topic()).add(event.rank(), event.bytes());
    }
  }

  private void fail(int failed, String evidence, @Nullable Throwable cause) {
    if (gone.putIfAbsent(failed, new Gone(evidence, cause, false)) == null) {
      tell(new Failure(failed, evidence, cause));
    }
  }

  private void leave(int leaver) {
    if (gone.putIfAbsent(leaver, new Gone(Failure.LEFT, null, true)) == null && leaver != rank) {
      tell(new Failure(leaver, Failure.LEFT, null));
    }
  }

  private void tell(Failure failure) {
    var failures = new ArrayList<>(news.failures());
    failures.add(failure);
    publish(new News(failures, news.aborts(), news.evicted()));
    gatherings.values().forEach(Gathering::decide);
  }

  private void publish(News next) {
    told++;
    news = next;
  }

  private Gathering gathering(Topic topic) {
    return gatherings.computeIfAbsent(topic, Gathering::new);
  }

  private Outcome gather(Topic topic, byte[] mine, Duration timeout) {
    checkBytes("mine", mine, FrameCodec.MAX_VALUE_BYTES);
    boolean isNew;
    lock.lock();
    try {
      checkUsable(topic.toString());
      isNew = used.add(topic);
      if (!isNew && !left.remove(topic)) {
        throw new IllegalArgumentException("key: " + topic + " (expected: one not used before)");
      }
    } finally {
      lock.unlock();
    }
    if (isNew) {
      history.append(new Event.Contribute(rank, topic, mine.clone()));
    }
    try {
      return await(
          topic.toString(),
          timeout,
          () -> {
            Outcome outcome = gathering(topic).outcome;
            if (outcome != null) {
              gatherings.remove(topic);
              answered.add(topic);
            }
            return outcome;
          },
          () -> late(topic, timeout));
    } catch (CollectiveTimeoutException | InterruptedCallException e) {
      mayComeBack(topic);
      throw e;
    }
  }

  private void mayComeBack(Topic topic) {
    lock.lock();
    try {
      left.add(topic);
    } finally {
      lock.unlock();
    }
  }

  private CollectiveTimeoutException late(Topic topic, Duration timeout) {
    List<Integer> missing = gathering(topic).missing();
    return new CollectiveTimeoutException(
        missing, "%s: ranks %s did not come within %s".formatted(topic, missing, seconds(timeout)));
  }

  /// Waits until there is an answer. Looks at it, and makes the exception, with the lock held.
  private <T> T await(
      String what,
      Duration timeout,
      Supplier<@Nullable T> answer,
      Supplier<CollectiveTimeoutException> late) {
    long timeoutNs = nanos(timeout);
    lock.lock();
    try {
      waiters.incrementAndGet();
      long start = nanoTime.getAsLong();
      while (true) {
        T found = answer.get();
        if (found != null) {
          return found;
        }
        checkUsable(what);
        long remaining = timeoutNs - (nanoTime.getAsLong() - start);
        if (remaining <= 0) {
          throw late.get();
        }
        changed.awaitNanos(Math.min(remaining, SLICE_NS));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedCallException(what + " was interrupted on rank " + rank);
    } finally {
      waiters.decrementAndGet();
      lock.unlock();
    }
  }

  private void checkUsable(String what) {
    if (closed) {
      throw new ClosedException(what + ": rank " + rank + " has closed the session");
    }
    if (lost != null) {
      throw lost.get();
    }
  }

  private PeerFailedException failed(Map<Integer, Gone> missing) {
    List<Integer> ranks = List.copyOf(missing.keySet());
    Gone first = missing.values().iterator().next();
    String evidence =
        missing.size() == 1
            ? first.evidence()
            : missing.entrySet().stream()
                .map(entry -> "rank " + entry.getKey() + " " + entry.getValue().evidence())
                .reduce((a, b) -> a + "; " + b)
                .orElseThrow();
    return new PeerFailedException(ranks, ranks, evidence, first.cause());
  }

  private void checkMembers(List<Integer> members) {
    for (int member : members) {
      member(member);
    }
    if (Set.copyOf(members).size() != members.size() || !members.contains(rank)) {
      throw new IllegalArgumentException(
          "members: %s (expected: each once, rank %d among them)".formatted(members, rank));
    }
  }

  private static String checkedKey(String key) {
    int bytes = key.getBytes(StandardCharsets.UTF_8).length;
    if (bytes == 0 || bytes > FrameCodec.MAX_KEY_BYTES) {
      throw new IllegalArgumentException(
          "key: %d bytes (expected: 1..%d)".formatted(bytes, FrameCodec.MAX_KEY_BYTES));
    }
    return key;
  }

  private static void checkBytes(String what, byte[] bytes, int limit) {
    if (bytes.length > limit) {
      throw new IllegalArgumentException(
          "%s: %d bytes (expected: at most %d)".formatted(what, bytes.length, limit));
    }
  }

  private static long nanos(Duration timeout) {
    return timeout.compareTo(Duration.ofNanos(Long.MAX_VALUE)) > 0
        ? Long.MAX_VALUE
        : timeout.toNanos();
  }

  static String seconds(Duration time) {
    return seconds(nanos(time));
  }

  static String seconds(long nanos) {
    return String.format(Locale.ROOT, "%.1f s", nanos / 1e9);
  }

  /// How a rank went.
  private record Gone(String evidence, @Nullable Throwable cause, boolean goodbye) {}

  private sealed interface Outcome {
    record Complete(List<byte @Nullable []> bytes) implements Outcome {}

    record Broken(Map<Integer, Gone> missing) implements Outcome {}
  }

  /// Compared by identity: one action may be given twice.
  private final class OwnNewsAction implements NewsAction {
    private final Runnable action;

    OwnNewsAction(Runnable action) {
      this.action = action;
    }

    @Override
    public void close() {
      newsActions.remove(this);
    }
  }

  /// What has come for one topic. Guarded by the lock.
  private final class Gathering {
    private final Topic topic;
    private final Map<Integer, byte[]> contributions = new HashMap<>();
    private @Nullable Outcome outcome;

    Gathering(Topic topic) {
      this.topic = topic;
    }

    void add(int from, byte[] bytes) {
      if (outcome == null) {
        contributions.putIfAbsent(from, bytes);
        decide();
      }
    }

    /// An exchange needs everyone's bytes; an agreement does without those who are gone. Who has
    /// given its bytes before it left is as good as there, who has failed is not. A rank that has
    /// lost the history decides nothing: the host that it misses may go on without it, and a group
    /// that is agreed on without this rank is none of its own.
    void decide() {
      if (outcome != null || lost != null || isEarly()) {
        return;
      }
      List<Integer> missing = missing();
      switch (topic.kind()) {
        case EXCHANGE -> {
          var broken = new LinkedHashMap<Integer, Gone>();
          gone.forEach((rank, how) -> {
            if (!contributions.containsKey(rank)) {
              broken.put(rank, how);
            }
          });
          if (!broken.isEmpty()) {
            outcome = new Outcome.Broken(Collections.unmodifiableMap(broken));
          } else if (missing.isEmpty()) {
            outcome = new Outcome.Complete(answers(contributions::get));
          }
        }
        case AGREEMENT -> {
          if (missing.stream().allMatch(gone::containsKey)) {
            outcome = new Outcome.Complete(answers(this::agreed));
          }
        }
      }
    }

    /// Asked for each of what may be many contributions, as the rest would take too long.
    private boolean isEarly() {
      int all = topic.kind() == Topic.Kind.EXCHANGE ? size() : topic.members().size();
      return gone.isEmpty() && contributions.size() < all;
    }

    private byte @Nullable [] agreed(int member) {
      Gone how = gone.get(member);
      return how == null || how.goodbye() ? contributions.get(member) : null;
    }

    List<Integer> missing() {
      return everyone().stream().filter(member -> !contributions.containsKey(member)).toList();
    }

    private List<byte @Nullable []> answers(IntFunction<byte @Nullable []> of) {
      var answers = new ArrayList<byte @Nullable []>();
      for (int member : everyone()) {
        byte[] bytes = of.apply(member);
        answers.add(bytes == null ? null : bytes.clone());
      }
      return Collections.unmodifiableList(answers);
    }

    private List<Integer> everyone() {
      return switch (topic.kind()) {
        case EXCHANGE -> members.stream().map(Member::rank).toList();
        case AGREEMENT -> topic.members();
      };
    }
  }
}
