package org.comm4j.core.session;

import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.spi.Session.Failure;
import org.comm4j.api.spi.Session.Member;
import org.comm4j.core.session.FrameCodec.ProtocolException;
import org.jspecify.annotations.Nullable;

/// A rank's connection to a [SessionServer]: joins, brings events there and takes the history from
/// there. Its one daemon thread does all of it, since a thread of the user's that is interrupted
/// would close the channel.
final class TcpSession implements ReplicatedSession.History {
  static final long FIRST_BACK_OFF_NS = TimeUnit.MILLISECONDS.toNanos(5);
  static final long MAX_BACK_OFF_NS = TimeUnit.MILLISECONDS.toNanos(200);

  private static final long GOODBYE_NS = TimeUnit.MILLISECONDS.toNanos(400);
  private static final long CLOSE_NS = TimeUnit.MILLISECONDS.toNanos(500);
  private static final long MAX_TICK_NS = TimeUnit.MILLISECONDS.toNanos(100);

  /// Failures after which the same group may still form; [Reason#ADDRESS] only where it is this
  /// rank's own, and no host has given the group up with it.
  private static final Set<Reason> NOT_MET =
      EnumSet.of(
          Reason.ADDRESS,
          Reason.AUTHENTICATION,
          Reason.DUPLICATE_RANK,
          Reason.OTHER_JOB,
          Reason.PROTOCOL,
          Reason.VERSION);

  /// With them somebody answers who hosts another session, or none.
  private static final Set<Reason> ANOTHERS =
      EnumSet.of(Reason.AUTHENTICATION, Reason.OTHER_JOB, Reason.PROTOCOL, Reason.VERSION);

  /// Whoever listens answers sooner: later nothing comes but what the system sends again, ever more
  /// rarely, and who was not there may be there now.
  private static final long ATTEMPT_NS = TimeUnit.SECONDS.toNanos(3);

  /// How long the server may take beyond this rank's own patience before it counts as mute. It
  /// counts that patience from when it reads the join, looks at the clock at each of its turns, and
  /// its host may be busy. One that lives answers: nobody waits for all of this.
  private static final long GRACE_NS = TimeUnit.SECONDS.toNanos(5);

  private final Places places;
  private final JoinRequest request;
  private final Authenticator authenticator;
  private final long helloNs;
  private final boolean awaitsHost;
  private final LongSupplier nanoTime;
  private final IntConsumer halt;
  private final long livenessNs;
  private final Selector selector;
  private final Thread thread;
  private final CompletableFuture<ReplicatedSession> joined = new CompletableFuture<>();
  private final Queue<Event> outgoing = new ConcurrentLinkedQueue<>();
  private volatile boolean closing;
  private volatile @Nullable InetAddress ownAddress; // once it is in

  // The rest is the thread's own.
  private final ArrayDeque<Frame> incoming = new ArrayDeque<>();
  private final List<Member> members = new ArrayList<>();
  private Frame.@Nullable Accepted accepted;
  private boolean refused;
  private @Nullable JoinException aside; // what one of several places said
  private boolean isEarly; // the host has answered last, but its group before this one lives
  private boolean isOfFirst; // that
  private @Nullable ReplicatedSession session;
  private String hostId = "";
  private boolean slept;
  private long sleptNs;

  private TcpSession(
      Places places,
      JoinRequest request,
      Authenticator authenticator,
      long helloNs,
      boolean awaitsHost,
      LongSupplier nanoTime,
      IntConsumer halt)
      throws IOException {
    this.authenticator = authenticator;
    this.places = places;
    this.request = request;
    this.helloNs = helloNs;
    this.awaitsHost = awaitsHost;
    this.nanoTime = nanoTime;
    this.halt = halt;
    this.livenessNs = TimeUnit.MILLISECONDS.toNanos(request.livenessMillis());
    this.selector = Selector.open();
    this.thread =
        Thread.ofPlatform()
            .name("comm4j-session-" + request.rank())
            .daemon()
            .inheritInheritableThreadLocals(false)
            .unstarted(this::run);
  }

  /// Starts to join.
  ///
  /// @param helloNs how long whoever listens may take to say that it is a session
  /// @param awaitsHost whether to try until somebody listens; if not, and nobody does, the
  ///   failure's cause is a [ConnectException]
  static TcpSession start(
      Places places,
      JoinRequest request,
      Authenticator authenticator,
      long helloNs,
      boolean awaitsHost,
      LongSupplier nanoTime,
      IntConsumer halt) {
    authenticator.check(places.current().getAddress());
    try {
      var session =
          new TcpSession(places, request, authenticator, helloNs, awaitsHost, nanoTime, halt);
      session.thread.start();
      return session;
    } catch (IOException e) {
      throw new JoinException(
          Reason.ADDRESS, "can't open a selector: " + e.getMessage() + OpenFiles.remedy(e), e);
    }
  }

  /// The session, once all are there; fails with a [JoinException].
  CompletableFuture<ReplicatedSession> joined() {
    return joined;
  }

  @Override
  public void append(Event event) {
    outgoing.add(event);
    selector.wakeup();
  }

  @Override
  public void close() {
    closing = true;
    selector.wakeup();
    Endings.await(thread, CLOSE_NS);
  }

  @Override
  public Optional<InetAddress> ownAddress() {
    return Optional.ofNullable(ownAddress);
  }

  private void run() {
    Connection connection = null;
    Throwable trouble = null;
    try {
      connection = join();
      if (connection != null) {
        serve(connection);
      }
    } catch (IOException | RuntimeException | Error e) {
      trouble = e; // no more: there may be no memory for words
    }
    boolean isOver = false;
    while (!isOver) {
      try {
        end(connection, trouble);
        isOver = true;
      } catch (OutOfMemoryError e) {
        Endings.awaitMemory();
      }
    }
  }

  /// Lets the others know first, by the connection's end, then this rank. May be repeated.
  private void end(@Nullable Connection connection, @Nullable Throwable trouble) {
    if (connection != null) {
      connection.close();
    }
    Acceptor.closeQuietly(selector);
    if (trouble != null) {
      tell(trouble);
    }
  }

  private void tell(Throwable trouble) {
    if (trouble instanceof JoinException e) {
      if (!NOT_MET.contains(e.reason()) || (refused && e.reason() == Reason.ADDRESS)) {
        Meetings.ofThisProcess().add(hostId, request.rank());
      }
      joined.completeExceptionally(e);
      return;
    }
    String why = "the session's thread failed: " + trouble + OpenFiles.remedy(trouble);
    joined.completeExceptionally(new JoinException(Reason.ADDRESS, why, trouble));
    failHere(why);
  }

  // --- Joining ---

  /// Tries until it is in, refused, or out of patience. Who listens may start later than this rank.
  private @Nullable Connection join() throws IOException {
    long start = nanoTime.getAsLong();
    long deadline = start + TimeUnit.MILLISECONDS.toNanos(request.patienceMillis());
    long backOffNs = FIRST_BACK_OFF_NS;
    while (!closing) {
      Connection connection = join(start, deadline);
      if (connection != null) {
        return connection;
      }
      if (aside != null && isOfFirst && places.isFirst()) {
        throw aside;
      }
      if (nanoTime.getAsLong() - deadline >= 0) {
        throw tooLate(deadline - start);
      }
      incoming.clear();
      pause(backOffNs);
      backOffNs = Math.min(MAX_BACK_OFF_NS, 2 * backOffNs);
    }
    failClosed();
    return null;
  }

  /// Tries once.
  ///
  /// @return null when to try again
  private @Nullable Connection join(long start, long deadline) throws IOException {
    Connection connection = null;
    boolean keep = false;
    try {
      long limitNs = awaitsHost ? ATTEMPT_NS : helloNs;
      connection = connect(Math.min(deadline, nanoTime.getAsLong() + limitNs));
      if (connection == null) {
        if (!closing) {
          checkAwaitsHost("it does not answer");
          failed("it does not answer (let TCP through to that port)", deadline);
        }
        return null;
      }
      keep = shakeHands(connection, deadline);
      return keep ? connection : null;
    } catch (JoinException e) {
      setAside(e);
    } catch (IOException e) {
      if (accepted != null) {
        throw hostGone(e);
      }
      if (!awaitsHost && e instanceof ConnectException) {
        throw new JoinException(Reason.ADDRESS, "nobody listens at " + place(), e);
      }
      checkMayOpenFiles(e);
      boolean mayBeGoing = nanoTime.getAsLong() - start < helloNs;
      if (!awaitsHost && connection != null && hostId.isEmpty() && !mayBeGoing) {
        throw stranger("it closes the connection");
      }
      note(String.valueOf(e.getMessage()));
      places.next();
    } finally {
      if (connection != null && !keep) {
        connection.close();
      }
    }
    return null;
  }

  private void checkAwaitsHost(String what) {
    if (!awaitsHost) {
      throw stranger(what);
    }
  }

  private void note(String trouble) {
    isEarly = false;
    places.note(trouble);
  }

  /// Nothing has come in time; what came before says more, where the time was over.
  private void failed(String why, long deadline) {
    if (nanoTime.getAsLong() - deadline >= 0) {
      places.noteUnlessKnown(why);
    } else {
      note(why);
    }
    places.next();
  }

  /// What listens at one of several places may be another's, and the host elsewhere. Where it is at
  /// the first, at which rank 0 listens if it can, it counts when the others have been tried; else
  /// the host may come there yet.
  private void setAside(JoinException e) {
    boolean mayBeAnothers = awaitsHost && accepted == null && ANOTHERS.contains(e.reason());
    if (!mayBeAnothers || places.count() == 1) {
      throw e;
    }
    refused = false;
    note(String.valueOf(e.getMessage()));
    if (places.isFirst() || aside == null) {
      aside = e;
      isOfFirst = places.isFirst();
    }
    places.next();
  }

  private JoinException tooLate(long patienceNs) {
    return new JoinException(
        aside == null ? Reason.ADDRESS : aside.reason(),
        "rank %d could not join at %s within %s: %s; %s"
            .formatted(
                request.rank(),
                places,
                ReplicatedSession.seconds(patienceNs),
                places.troubles(),
                isEarly
                    ? "close it on all ranks first, or give this one another COMM_MASTER_PORT"
                    : "start the host of the session (rank 0, or the launcher), or correct COMM_MASTER_ADDR and COMM_MASTER_PORT"));
  }

  private void failClosed() {
    joined.completeExceptionally(
        new JoinException(Reason.PEER_FAILED, "the session was closed while it was joined"));
  }

  /// What this process may not do is no matter of who listens, and of patience.
  private void checkMayOpenFiles(IOException e) {
    String remedy = OpenFiles.remedy(e);
    if (!remedy.isEmpty()) {
      throw new JoinException(
          Reason.ADDRESS,
          "rank %d could not join at %s: %s%s"
              .formatted(request.rank(), place(), e.getMessage(), remedy),
          e);
    }
  }

  private @Nullable Connection connect(long deadline) throws IOException {
    SocketChannel channel = SocketChannel.open();
    boolean keep = false;
    try {
      channel.configureBlocking(false);
      if (!channel.connect(places.current())) {
        channel.register(selector, SelectionKey.OP_CONNECT);
        boolean isLast = false; // look: this process may have been stopped
        while (!channel.finishConnect()) {
          if (closing || isLast) {
            return null;
          }
          long now = nanoTime.getAsLong();
          isLast = now - deadline >= 0;
          if (!isLast) {
            select(now, deadline);
          }
        }
        channel.keyFor(selector).interestOps(0);
      }
      if (channel.getLocalAddress().equals(channel.getRemoteAddress())) {
        throw new ConnectException("nobody listens"); // TCP connected the free port to itself.
      }
      var connection = new Connection(channel, selector, nanoTime.getAsLong());
      keep = true;
      return connection;
    } finally {
      if (!keep) {
        channel.close();
      }
    }
  }

  /// @return whether the session has formed, or this rank has closed and says goodbye; else it is
  ///   to try again
  private boolean shakeHands(Connection connection, long deadline) throws IOException {
    long helloDeadline = Math.min(deadline, nanoTime.getAsLong() + helloNs);
    try {
      Frame hello = next(connection, helloDeadline);
      if (hello == null) {
        checkAwaitsHost("it says nothing");
        failed("what listens there says nothing", deadline); // out of descriptors it accepts nobody
        return false;
      }
      if (!(hello instanceof Frame.Hello greeting)) {
        throw new ProtocolException("not a greeting");
      }
      if (greeting.protocol() != FrameCodec.PROTOCOL) {
        throw new JoinException(
            Reason.VERSION,
            "the session at %s speaks protocol %d, this rank %d; use the same comm4j on all ranks"
                .formatted(place(), greeting.protocol(), FrameCodec.PROTOCOL));
      }
      checkAsks(greeting.nonce().length != 0);
      hostId = greeting.hostId();
      Frame.Join join = join(greeting, deadline);
      connection.accept(); // what others say in the session may come with the answer
      connection.send(join);
      connection.flush(nanoTime.getAsLong());
      while (true) {
        Frame answer = next(connection, deadline + GRACE_NS);
        switch (answer) {
          case Frame.Accepted in -> {
            if (!authenticator.accepts(Authenticator.Role.HOST, greeting, join, in.proof())) {
              throw new JoinException(
                  Reason.AUTHENTICATION,
                  "what listens at %s does not know the secret; give all ranks the same COMM_SECRET_FILE"
                      .formatted(place()));
            }
            accepted = in;
            ownAddress = connection.ownAddress();
          }
          case Frame.Refused no -> {
            refused = true;
            throw new JoinException(no.reason(), no.message());
          }
          case Frame.Retry retry -> {
            note(retry.why()); // and stay: there is the host
            isEarly = true;
            aside = null;
            return false;
          }
          case Frame.Joined one -> members.add(one.member());
          case Frame.Welcome welcome -> {
            welcome(welcome);
            return true;
          }
          case null -> {
            if (closing) {
              Meetings.ofThisProcess().add(hostId, request.rank());
              failClosed();
              return true;
            }
            throw new JoinException(
                Reason.MISSING_RANKS,
                "the group did not form within %d ms, and its host at %s does not say why"
                    .formatted(request.patienceMillis(), place()));
          }
          default -> throw new ProtocolException("not an answer to a join");
        }
      }
    } catch (ProtocolException e) {
      throw stranger(e.getMessage());
    }
  }

  private void checkAsks(boolean hostHasSecret) {
    if (hostHasSecret != authenticator.isOn()) {
      throw new JoinException(
          Reason.AUTHENTICATION,
          "the session at %s %s a secret, but this rank has %s; give all ranks the same COMM_SECRET_FILE"
              .formatted(
                  place(), hostHasSecret ? "asks for" : "has not", hostHasSecret ? "none" : "one"));
    }
  }

  private Frame.Join join(Frame.Hello greeting, long deadline) {
    JoinRequest own =
        request.forHost(
            Meetings.ofThisProcess().count(hostId, request.rank()),
            deadline - nanoTime.getAsLong());
    var join = new Frame.Join(own, authenticator.nonce(), new byte[0]);
    return join.withProof(authenticator.proof(Authenticator.Role.RANK, greeting, join));
  }

  private void welcome(Frame.Welcome welcome) throws ProtocolException {
    boolean inOrder = members.size() == request.worldSize();
    for (int rank = 0; inOrder && rank < members.size(); rank++) {
      inOrder = members.get(rank).rank() == rank;
    }
    if (!inOrder || accepted == null) {
      throw new ProtocolException("a welcome with %d members".formatted(members.size()));
    }
    session =
        new ReplicatedSession(request.rank(), welcome.sessionId(), members, this, nanoTime, halt);
    Meetings.ofThisProcess().add(hostId, request.rank());
    joined.complete(session);
  }

  private JoinException stranger(@Nullable String what) {
    return new JoinException(
        Reason.PROTOCOL,
        "what listens at %s is not a comm4j session: %s; choose another COMM_MASTER_PORT"
            .formatted(place(), what));
  }

  private JoinException hostGone(IOException e) {
    Frame.Accepted in = accepted;
    String host = in == null ? "?" : in.host();
    return new JoinException(
        Reason.PEER_FAILED,
        "%s (%s) died before all had joined: %s"
            .formatted(
                in == null || in.hostRank() == Frame.NO_RANK
                    ? "the launcher"
                    : "rank " + in.hostRank(),
                host,
                ended(e)),
        e);
  }

  /// The next frame, or null at the deadline if none has come: this process may have been stopped.
  private @Nullable Frame next(Connection connection, long deadline)
      throws IOException, ProtocolException {
    while (incoming.isEmpty()) {
      long now = nanoTime.getAsLong();
      boolean isLast = now - deadline >= 0;
      if (closing) {
        return null;
      }
      if (!isLast) {
        select(now, deadline);
      }
      connection.flush(nanoTime.getAsLong());
      incoming.addAll(connection.read(nanoTime.getAsLong()));
      if (isLast && incoming.isEmpty()) {
        return null;
      }
    }
    return incoming.removeFirst();
  }

  private void pause(long backOffNs) throws IOException {
    long until = nanoTime.getAsLong() + backOffNs;
    for (long now = nanoTime.getAsLong(); !closing && now - until < 0; now = nanoTime.getAsLong()) {
      select(now, until);
    }
  }

  private void select(long now, long deadline) throws IOException {
    long waitNs = Math.min(MAX_TICK_NS, deadline - now);
    selector.select(Math.max(1, TimeUnit.NANOSECONDS.toMillis(waitNs)));
    selector.selectedKeys().clear();
  }

  // --- The session ---

  private void serve(Connection connection) {
    long tickNs = Math.min(MAX_TICK_NS, livenessNs / 16);
    long last = nanoTime.getAsLong();
    long goodbyeDeadline = 0;
    boolean left = false;
    while (true) {
      try {
        handleAll();
        boolean ending = closing; // before this: what was handed in goes out before the goodbye
        for (Event event = outgoing.poll(); event != null; event = outgoing.poll()) {
          connection.send(event);
        }
        if (ending && !left) {
          left = true;
          goodbyeDeadline = nanoTime.getAsLong() + GOODBYE_NS;
          connection.send(new Event.Leave(request.rank()));
          connection.finish();
        }
        long now = nanoTime.getAsLong();
        if (now - connection.sentNs() > livenessNs / 4) {
          connection.send(new Frame.Heartbeat());
        }
        connection.flush(now);
        if (left && now - goodbyeDeadline >= 0) {
          return;
        }
        sleep(left ? tickNs / 4 : tickNs);
        now = nanoTime.getAsLong();
        if (now - last - tickNs > livenessNs / 4) {
          slept = now - last > livenessNs;
          sleptNs = now;
          connection.forgive(now);
        }
        last = now;
        incoming.addAll(connection.read(now));
        if (now - connection.heardNs() > livenessNs) {
          giveUpHost(connection, now);
          return;
        }
      } catch (EOFException e) {
        handleAll();
        lose(left ? "this rank has left" : ended(e));
        return;
      } catch (IOException e) {
        drain(connection);
        lose(ended(e));
        return;
      } catch (ProtocolException e) {
        lose("its host sent what is not ours: " + e.getMessage());
        return;
      }
    }
  }

  /// Until something comes. If that fails it is this process's own trouble, not the connection's.
  private void sleep(long waitNs) {
    try {
      selector.select(Math.max(1, TimeUnit.NANOSECONDS.toMillis(waitNs)));
    } catch (IOException e) {
      throw new UncheckedIOException(e.getMessage(), e);
    }
    selector.selectedKeys().clear();
  }

  /// What the host has said before the connection broke while we were writing.
  private void drain(Connection connection) {
    try {
      for (List<Frame> more = connection.read(0); !more.isEmpty(); more = connection.read(0)) {
        incoming.addAll(more);
      }
    } catch (IOException | ProtocolException e) {
      // That was all.
    }
    handleAll();
  }

  private void handleAll() {
    ReplicatedSession session = this.session;
    boolean isNews = false;
    for (Frame frame = incoming.poll(); frame != null; frame = incoming.poll()) {
      if (frame instanceof Event event && session != null) {
        isNews |= session.deliver(event);
      }
    }
    if (isNews && session != null) {
      session.tellNews();
    }
  }

  private void giveUpHost(Connection connection, long now) {
    String evidence = Failure.SILENT + ReplicatedSession.seconds(now - connection.heardNs());
    try {
      connection.send(new Frame.Lost(evidence));
      connection.flush(now);
    } catch (IOException e) {
      // It will see the connection's end.
    }
    lose(evidence);
  }

  /// This rank can't follow the history any more, and nobody else is to blame.
  private void failHere(String why) {
    ReplicatedSession session = this.session;
    if (session != null) {
      session.evict(why);
      session.tellNews();
    }
  }

  /// The history has ended for this rank.
  private void lose(String evidence) {
    ReplicatedSession session = this.session;
    Frame.Accepted in = accepted;
    if (session == null || in == null || closing) {
      return;
    }
    if (slept && nanoTime.getAsLong() - sleptNs < livenessNs) {
      session.evict(
          "rank %d was stopped for longer than %s, and the session went on without it"
              .formatted(request.rank(), ReplicatedSession.seconds(livenessNs)));
    } else if (in.hostRank() == Frame.NO_RANK) {
      session.evict("the launcher (%s) is gone: %s".formatted(in.host(), evidence));
    } else {
      session.loseHost(in.hostRank(), "%s (%s)".formatted(evidence, in.host()));
    }
    session.tellNews();
  }

  private static String ended(IOException e) {
    return e instanceof EOFException
        ? "its control connection closed"
        : "its control connection broke: " + e.getMessage();
  }

  private String place() {
    InetSocketAddress place = places.current();
    return place.getAddress().getHostAddress() + " port " + place.getPort();
  }
}
