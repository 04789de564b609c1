package org.comm4j.core.session;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.SortedMap;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.spi.Session.Failure;
import org.comm4j.api.spi.Session.Member;
import org.comm4j.core.session.FrameCodec.ProtocolException;
import org.jspecify.annotations.Nullable;

/// Keeps the history of sessions whose ranks are connected over TCP: it lets them join, puts their
/// events into one order, tells them to everyone, and notices who is gone. A launcher hosts it, so
/// that no rank is special; without a launcher rank 0 does, in its own process ([HostRank]), also
/// once it has left itself: until the others have, or the process ends.
///
/// One daemon thread does everything. It lets connections in ([Acceptor]) and serves one group at a
/// time ([ServedGroup]). When all ranks of a group have left, they may form the next one (each of
/// them counts its sessions, so a rank that comes too early is asked to come again). Addresses that
/// other hosts reach are served only to ranks that know the secret ([Authenticator]).
///
/// A rank is gone when its connection ends, which the kernel sees to within milliseconds of a
/// process's death, or when it is silent for longer than the liveness time. Strangers get nothing:
/// few of them at a time, each for 5 s and with a small buffer ([PendingConnections]).
public final class SessionServer implements AutoCloseable {
  /// What the owner of a server hears, on the server's thread. Must be quick and must not throw.
  public interface Listener {
    /// All ranks have joined.
    ///
    /// @param sessionId of the session that they form
    /// @param members all of them, in order
    default void formed(String sessionId, List<Member> members) {}

    /// The ranks did not come together, and know it.
    ///
    /// @param reason why
    default void notFormed(JoinException reason) {}

    /// A rank is gone without a goodbye.
    ///
    /// @param rank its world rank
    /// @param evidence how it is known
    default void failed(int rank, String evidence) {}

    /// A rank has said goodbye.
    ///
    /// @param rank its world rank
    default void left(int rank) {}

    /// A rank wants all processes to end; they do so themselves, the owner may help.
    ///
    /// @param rank its world rank
    /// @param code the exit code
    default void abortProcesses(int rank, int code) {}
  }

  private static final System.Logger LOG = System.getLogger(SessionServer.class.getName());

  /// How long who was turned away may take to close its end.
  private static final long DEPARTING_NS = TimeUnit.SECONDS.toNanos(5);

  private static final long FLUSH_NS = TimeUnit.MILLISECONDS.toNanos(400);
  private static final long MAX_TICK_NS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long CLOSE_NS = TimeUnit.MILLISECONDS.toNanos(500);

  private final Selector selector;
  private final Acceptor acceptor;
  private final String hostId = InMemorySessions.randomId();
  private final Authenticator authenticator;
  private final Listener listener;
  private final LongSupplier nanoTime;
  private final Thread thread;
  private final @Nullable HostRank hostRank; // none in a launcher
  private final CountDownLatch goodbye = new CountDownLatch(1); // said, or there is nobody to hear
  private final SortedMap<Integer, String> ended = new ConcurrentSkipListMap<>();
  private volatile boolean closing;

  // The rest is the thread's own.
  private final PendingConnections pending =
      new PendingConnections(new SplittableRandom(), this::warn);
  private final SequencedMap<Connection, Long> departing = new LinkedHashMap<>();
  private final Map<Connection, Integer> connected = new LinkedHashMap<>();
  private ServedGroup group;
  private long plannedNs;
  private long sleptNs; // when it was last noticed that this process was stopped
  private boolean servesOthers; // the rank that hosts has left
  private boolean finishing;
  private long finishedByNs;
  private boolean finished;

  /// Whoever else wanted the port takes who listens there for a stranger if it says nothing for too
  /// long ([DefaultSessionFactory]). So all that takes time in a fresh JVM comes before.
  private SessionServer(
      InetSocketAddress place,
      ServedGroup group,
      Authenticator authenticator,
      Listener listener,
      @Nullable JoinRequest ofHost,
      LongSupplier nanoTime,
      IntConsumer halt) {
    authenticator.check(place.getAddress());
    this.group = group;
    this.authenticator = authenticator;
    this.listener = listener;
    this.nanoTime = nanoTime;
    this.hostRank =
        ofHost == null
            ? null
            : new HostRank(ofHost, place.getAddress(), this::wakeUp, this::close, nanoTime, halt);
    this.thread =
        Thread.ofPlatform()
            .name("comm4j-session-server")
            .daemon()
            .inheritInheritableThreadLocals(false)
            .unstarted(this::run);
    FrameCodec.encode(greeting());
    this.acceptor = Acceptor.listen(place, this::greet, this::warn);
    this.selector = acceptor.selector();
  }

  /// Starts a server that is no rank's.
  ///
  /// @param address where to listen: exactly this one is bound
  /// @param port where to listen; 0 takes one that is free, see [#port()]
  /// @param job what ranks must ask for (`COMM_SESSION`); empty where they ask for nothing
  /// @param worldSize how many ranks there will be
  /// @param authenticator what ranks must prove
  /// @param listener hears what happens
  /// @return running; the caller closes it
  /// @throws JoinException if the address can't be bound, or other hosts reach it and nothing must
  ///   be proved (`ADDRESS`)
  public static SessionServer start(
      InetAddress address,
      int port,
      String job,
      int worldSize,
      Authenticator authenticator,
      Listener listener) {
    return new SessionServer(
            new InetSocketAddress(address, port),
            new ServedGroup(job, worldSize, 0),
            authenticator,
            listener,
            null,
            System::nanoTime,
            ReplicatedSession::haltProcess)
        .start();
  }

  /// Starts a server in the process of a rank, which joins at once.
  static SessionServer startFor(
      JoinRequest request,
      InetAddress address,
      int port,
      Authenticator authenticator,
      LongSupplier nanoTime,
      IntConsumer halt) {
    return new SessionServer(
            new InetSocketAddress(address, port),
            new ServedGroup(request.job(), request.worldSize(), request.generation()),
            authenticator,
            new Listener() {},
            request,
            nanoTime,
            halt)
        .start();
  }

  private SessionServer start() {
    thread.start();
    return this;
  }

  private Frame.Hello greeting() {
    return new Frame.Hello(FrameCodec.PROTOCOL, authenticator.nonce(), hostId);
  }

  /// The port that it listens on.
  public int port() {
    return acceptor.port();
  }

  /// Tells that a rank's process has ended. Ranks that wait for it to join, and those that join
  /// later, fail at once. A group that has formed is not concerned: it hears of a death by the
  /// connection.
  ///
  /// @param rank its world rank
  /// @param how for example `ended with exit code 1`
  public void ended(int rank, String how) {
    ended.putIfAbsent(rank, how);
    wakeUp();
  }

  /// Ends it. Ranks that are still connected see the session as lost. Idempotent, within 0.5 s.
  @Override
  public void close() {
    closing = true;
    wakeUp();
    Endings.await(thread, goodbye, CLOSE_NS);
  }

  /// The session of the rank that hosts this server, once all are there.
  CompletableFuture<ReplicatedSession> localJoin() {
    return Objects.requireNonNull(hostRank).joined();
  }

  private void wakeUp() {
    selector.wakeup();
  }

  private void run() {
    Throwable trouble = null;
    try {
      if (hostRank != null) {
        long now = nanoTime.getAsLong();
        group.admit(hostRank.request(), null, now);
        formIfComplete(now);
        hostRank.hear(hostRank.unheard());
      }
      plannedNs = nanoTime.getAsLong();
      while (!finished) {
        turn();
      }
    } catch (IOException | RuntimeException | Error e) {
      trouble = e; // no more: there may be no memory for words
    }
    boolean isOver = false;
    while (!isOver) {
      try {
        end(trouble);
        isOver = true;
      } catch (OutOfMemoryError e) {
        Endings.awaitMemory();
      } finally {
        goodbye.countDown();
      }
    }
  }

  /// Lets the ranks know first, by their connections' ends, then the one of this process. May be
  /// repeated.
  private void end(@Nullable Throwable trouble) {
    free();
    if (trouble != null) {
      tellFailure("the session's thread failed: " + trouble + OpenFiles.remedy(trouble), trouble);
    }
  }

  private void turn() throws IOException {
    long tickNs = tickNs();
    selector.select(Math.max(1, TimeUnit.NANOSECONDS.toMillis(tickNs)));
    long now = nanoTime.getAsLong();
    noticeSleep(now, tickNs);
    for (SelectionKey key : selector.selectedKeys()) {
      if (key.attachment() instanceof Connection connection) {
        if (connection.isOpen() && key.isReadable()) {
          read(connection, now);
        }
      }
    }
    if (acceptor.isSelected()) {
      accept(now); // last: whoever has said that it is a rank needs no place any more
    }
    selector.selectedKeys().clear();
    boolean ending = closing; // before this: what was handed in goes out before the goodbye
    if (hostRank != null) {
      for (Event event = hostRank.poll(); event != null; event = hostRank.poll()) {
        take(event);
      }
    }
    judge(now);
    int sent = hostRank == null ? 0 : hostRank.unheard();
    flush(now);
    if (hostRank != null) {
      hostRank.hear(sent);
    }
    end(now, ending);
    plannedNs = now;
  }

  private long tickNs() {
    return (closing && !servesOthers) || (hostRank != null && hostRank.isHalting())
        ? TimeUnit.MILLISECONDS.toNanos(10)
        : Math.min(MAX_TICK_NS, group.livenessNs() / 16);
  }

  /// If this process itself was stopped, the silence of the others says nothing: what they have
  /// sent has perhaps not been read yet. Everyone gets a new chance. Who has not heard from us
  /// either is right only if we were late for most of the liveness time; half of it is taken, since
  /// heartbeats lie a quarter apart and may be late too.
  private void noticeSleep(long now, long tickNs) {
    long lateNs = now - plannedNs - tickNs;
    if (lateNs > group.livenessNs() / 2) {
      sleptNs = now;
    }
    if (lateNs > group.livenessNs() / 4) {
      connected.keySet().forEach(connection -> connection.forgive(now));
    }
  }

  private void accept(long now) {
    IOException trouble = acceptor.accept(now);
    if (trouble != null && group.isJoining()) {
      String why = "the session's host (%s) %s".formatted(hostText(), Acceptor.text(trouble));
      giveUp(new JoinException(Reason.ADDRESS, why, trouble));
    }
  }

  private void greet(SocketChannel channel, long now) {
    try {
      InetAddress from = ((InetSocketAddress) channel.getRemoteAddress()).getAddress();
      var connection = new Connection(channel, selector, now);
      connection.greet(greeting());
      connection.flush(now);
      pending.add(connection, PendingConnections.source(from), now);
    } catch (IOException e) {
      Acceptor.closeQuietly(channel);
    }
  }

  private void read(Connection connection, long now) {
    try {
      for (Frame frame : connection.read(now)) {
        if (!connection.isOpen()) {
          return;
        }
        handle(connection, frame, now);
      }
    } catch (ProtocolException e) {
      String evidence = "it sent what is not ours: " + e.getMessage();
      pending.tell(connection, evidence, now);
      lose(connection, evidence);
    } catch (EOFException e) {
      lose(connection, "its control connection closed");
    } catch (IOException e) {
      lose(connection, "its control connection broke: " + e.getMessage());
    }
  }

  private void handle(Connection connection, Frame frame, long now)
      throws IOException, ProtocolException {
    if (connection.isFinishing()) {
      return;
    }
    Integer rank = connected.get(connection);
    if (rank == null) {
      switch (frame) {
        case Frame.Join join -> join(connection, join, now);
        case Frame.ForeignJoin foreign ->
            refuse(
                connection,
                Reason.VERSION,
                "the session speaks protocol %d, this rank %d; use the same comm4j on all ranks"
                    .formatted(FrameCodec.PROTOCOL, foreign.protocol()));
        case Frame.Control _, Event _ -> throw new ProtocolException("not a join");
      }
      return;
    }
    if (!group.isAlive(rank)) {
      return;
    }
    switch (frame) {
      case Event.Leave leave when leave.rank() == rank && group.isJoining() ->
          giveUp(new JoinException(Reason.PEER_FAILED, Roster.closed(rank)));
      case Event event -> {
        group.check(event, rank);
        take(event);
      }
      case Frame.Heartbeat _ -> {}
      case Frame.Lost lost -> givenUp(rank, lost.evidence(), now);
      case Frame.Control _ -> throw new ProtocolException("a frame out of place");
    }
  }

  // --- Joining ---

  private void join(Connection connection, Frame.Join join, long now) throws IOException {
    Frame.Hello greeting = connection.greeting();
    JoinRequest request = join.request();
    if (!authenticator.accepts(Authenticator.Role.RANK, greeting, join, join.proof())) {
      pending.tell(connection, "it does not know the secret", now);
      refuse(
          connection,
          Reason.AUTHENTICATION,
          "authentication failed; give all ranks the same COMM_SECRET_FILE");
      return;
    }
    if (request.generation() > group.generation()) {
      if (hostRank != null || group.isInUse()) {
        connection.send(new Frame.Retry("the session before this one has not ended"));
        dismiss(connection);
        return;
      }
      group = group.next(request.generation());
    }
    switch (group.admit(request, connection, now)) {
      case Roster.Verdict.Admitted _ -> {
        pending.remove(connection);
        connected.put(connection, request.rank());
        connection.accept();
        connection.send(
            new Frame.Accepted(
                hostRank == null ? Frame.NO_RANK : hostRank.request().rank(),
                hostText(),
                authenticator.proof(Authenticator.Role.HOST, greeting, join)));
        formIfComplete(now);
      }
      case Roster.Verdict.Refused no -> refuse(connection, no.reason(), no.message());
      case Roster.Verdict.Broken broken -> {
        refuse(connection, broken.reason(), broken.message());
        giveUp(new JoinException(broken.reason(), broken.message()));
      }
    }
  }

  private void formIfComplete(long now) {
    if (!group.isComplete()) {
      return;
    }
    String id = InMemorySessions.randomId();
    List<Member> members = group.form(id);
    connected.keySet().forEach(connection -> connection.forgive(now));
    if (hostRank != null) {
      hostRank.form(id, members);
      Meetings.ofThisProcess().add(hostId, hostRank.request().rank());
    }
    listener.formed(id, members);
  }

  private void refuse(Connection connection, Reason reason, String message) throws IOException {
    connection.send(new Frame.Refused(reason, message));
    dismiss(connection);
  }

  /// Has a connection end when it has been sent what is queued and the peer has seen it.
  private void dismiss(Connection connection) {
    connection.finish();
    if (connected.remove(connection) != null) {
      departing.put(connection, nanoTime.getAsLong());
    }
  }

  private void dismiss(int rank) {
    Connection connection = group.connection(rank);
    if (connection != null) {
      dismiss(connection);
    }
  }

  /// Turns everyone away who has joined.
  private void giveUp(JoinException why) {
    group.giveUp(why);
    List.copyOf(connected.keySet()).forEach(this::dismiss);
    if (hostRank != null) {
      hostRank.giveUp(why);
      closing = true;
    }
    listener.notFormed(why);
  }

  // --- The history ---

  /// Gives an event its place in the history.
  private void take(Event event) {
    if (!group.take(event)) {
      return;
    }
    if (hostRank != null) {
      hostRank.take(event);
    }
    switch (event) {
      case Event.Leave leave -> {
        dismiss(leave.rank());
        listener.left(leave.rank());
      }
      case Event.Fail fail -> {
        // Its process may only have been stopped: it will find the news and the end.
        dismiss(fail.rank());
        listener.failed(fail.rank(), fail.evidence());
      }
      case Event.Halt order -> listener.abortProcesses(order.rank(), order.code());
      case Event.Contribute _, Event.Put _, Event.Abort _ -> {}
    }
  }

  // --- Deaths ---

  /// A connection has ended.
  private void lose(Connection connection, String evidence) {
    Integer rank = connected.remove(connection);
    pending.remove(connection);
    departing.remove(connection);
    connection.close();
    if (rank != null && (acceptor.isOpen() || servesOthers)) {
      fail(rank, "%s (%s)".formatted(evidence, group.who(rank)));
    }
  }

  private void fail(int rank, String evidence) {
    if (!group.isAlive(rank)) {
      return;
    }
    if (group.isJoining()) {
      String how = "rank %d died before all had joined: %s".formatted(rank, evidence);
      giveUp(new JoinException(Reason.PEER_FAILED, how));
    } else {
      take(new Event.Fail(rank, evidence, null));
    }
  }

  /// A rank has not heard from us for too long. If we have slept it is right and we are out.
  private void givenUp(int rank, String evidence, long now) {
    if (hostRank != null && sleptNs != 0 && now - sleptNs < 2 * group.livenessNs()) {
      hostRank.evict("rank %d has given up this rank: %s".formatted(rank, evidence));
    }
    fail(rank, "it has given up the session's host: " + evidence);
  }

  /// The thread has failed. The own rank is told why, unless it has left; all others hear no more
  /// than that their connections have closed.
  private void tellFailure(String evidence, Throwable cause) {
    if (hostRank == null || !hostRank.fail(evidence, cause)) {
      LOG.log(
          System.Logger.Level.ERROR,
          "the session of job '%s' at port %d has ended for all its ranks: %s"
              .formatted(group.job(), port(), evidence),
          cause);
    }
  }

  // --- Time ---

  private void judge(long now) {
    acceptor.endPause(now);
    pending.endOld(now);
    while (!departing.isEmpty() && now - departing.firstEntry().getValue() > DEPARTING_NS) {
      departing.pollFirstEntry().getKey().close();
    }
    group.hopeless(ended, now).ifPresent(this::giveUp);
    if (group.isFormed()) {
      for (var entry : List.copyOf(connected.entrySet())) {
        judge(entry.getKey(), entry.getValue(), now);
      }
    }
  }

  private void judge(Connection connection, int rank, long now) {
    long silentNs = now - connection.heardNs();
    if (silentNs > group.livenessNs()) {
      fail(
          rank,
          "%s%s (%s)"
              .formatted(Failure.SILENT, ReplicatedSession.seconds(silentNs), group.who(rank)));
    } else if (now - connection.sentNs() > group.livenessNs() / 4) {
      try {
        connection.send(new Frame.Heartbeat());
      } catch (IOException e) {
        lose(connection, String.valueOf(e.getMessage()));
      }
    }
  }

  private void flush(long now) {
    for (Connection connection : connections()) {
      try {
        if (connection.isOpen()) {
          connection.flush(now);
        } else {
          lose(connection, Failure.UNREAD);
        }
      } catch (IOException e) {
        lose(connection, "its control connection broke: " + e.getMessage());
      }
    }
  }

  private List<Connection> connections() {
    var all = new ArrayList<>(connected.keySet());
    all.addAll(departing.keySet());
    all.addAll(pending.connections());
    return all;
  }

  /// Ends what is to end: first everything is sent, then the peers get the chance to close first,
  /// so that nothing in flight is lost to a reset.
  ///
  /// @param ending whether it was closed before the events of the rank that hosts were taken
  private void end(long now, boolean ending) {
    if (hostRank != null && hostRank.isHalting()) {
      hostRank.halt(connections().stream().allMatch(Connection::isFlushed), now);
    } else if (ending) {
      if (acceptor.isOpen()) {
        acceptor.close(); // its rank may host the next session there
        if (hostRank != null) {
          leave(hostRank, now);
        }
      }
      if (!servesOthers || !group.isInUse()) {
        finish(now);
      }
    }
  }

  /// The rank that hosts the server leaves; its process should not end before the others have left.
  private void leave(HostRank host, long now) {
    int rank = host.request().rank();
    host.joined()
        .completeExceptionally(
            new JoinException(Reason.PEER_FAILED, "the session was closed while it was joined"));
    if (group.isJoining()) {
      giveUp(new JoinException(Reason.PEER_FAILED, Roster.closed(rank)));
    }
    take(new Event.Leave(rank));
    if (group.isFormed()) {
      servesOthers = true;
      host.leave();
      flush(now);
      Endings.keepProcessUntil(thread);
      goodbye.countDown();
    }
  }

  private void finish(long now) {
    if (!finishing) {
      finishing = true;
      finishedByNs = now + FLUSH_NS;
      connections().forEach(Connection::finish);
      flush(now);
    }
    finished = connections().isEmpty() || now - finishedByNs >= 0;
  }

  private void free() {
    acceptor.close();
    connections().forEach(Connection::close);
    Acceptor.closeQuietly(selector);
  }

  private void warn(String text) {
    LOG.log(System.Logger.Level.WARNING, "session at port {0,number,#}: {1}", port(), text);
  }

  /// Names the process, for messages.
  private String hostText() {
    return hostRank == null
        ? JoinRequest.who(ProcessHandle.current().pid(), LocalHost.identity())
        : hostRank.request().who();
  }
}
