package org.comm4j.core.session;

import java.net.InetAddress;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import org.comm4j.api.JoinException;
import org.comm4j.api.spi.Session.Member;
import org.jspecify.annotations.Nullable;

/// The rank that hosts a [SessionServer] in its own process, and needs no connection to it.
///
/// Its threads hand events in, wait for the join, and close; the rest is for the server's thread.
/// What the rank is to hear waits here until the others have been sent the same: it may end its
/// process because of it.
final class HostRank implements ReplicatedSession.History {
  /// How long an order to halt may take to be sent to the others.
  private static final long ORDER_NS = TimeUnit.MILLISECONDS.toNanos(400);

  private final JoinRequest request;
  private final InetAddress address;
  private final Runnable wakeUp;
  private final Runnable close;
  private final LongSupplier nanoTime;
  private final IntConsumer halt;
  private final CompletableFuture<ReplicatedSession> joined = new CompletableFuture<>();
  private final Queue<Event> handedIn = new ConcurrentLinkedQueue<>();

  // The rest is the thread's own.
  private final ArrayDeque<BooleanSupplier> unheard = new ArrayDeque<>(); // each says: it is news
  private @Nullable ReplicatedSession session; // from when all are there until this rank leaves
  private Event.@Nullable Halt order;
  private long orderNs;

  /// @param address at which the server listens
  /// @param wakeUp has the server's thread look at what was handed in
  /// @param close closes the server
  HostRank(
      JoinRequest request,
      InetAddress address,
      Runnable wakeUp,
      Runnable close,
      LongSupplier nanoTime,
      IntConsumer halt) {
    this.request = request;
    this.address = address;
    this.wakeUp = wakeUp;
    this.close = close;
    this.nanoTime = nanoTime;
    this.halt = halt;
  }

  JoinRequest request() {
    return request;
  }

  /// The session, once all are there.
  CompletableFuture<ReplicatedSession> joined() {
    return joined;
  }

  @Override
  public void append(Event event) {
    handedIn.add(event);
    wakeUp.run();
  }

  @Override
  public void close() {
    close.run();
  }

  @Override
  public Optional<InetAddress> ownAddress() {
    return Optional.of(address);
  }

  /// The next event that this rank adds to the history, if there is one.
  @Nullable Event poll() {
    return handedIn.poll();
  }

  /// All are there: this rank's session begins.
  void form(String id, List<Member> members) {
    var formed = new ReplicatedSession(request.rank(), id, members, this, nanoTime, halt);
    session = formed;
    unheard.add(() -> {
      joined.complete(formed);
      return false;
    });
  }

  /// They are not, and will not be.
  void giveUp(JoinException why) {
    unheard.add(() -> {
      joined.completeExceptionally(why);
      return false;
    });
  }

  /// Takes the next event of the history.
  void take(Event event) {
    if (session != null && event instanceof Event.Halt first) {
      if (order == null) {
        order = first; // The others must hear it before this process ends.
        orderNs = nanoTime.getAsLong();
      }
    } else if (session != null) {
      unheard.add(() -> session != null && session.deliver(event));
    }
  }

  /// The others are right to have given this rank up.
  void evict(String why) {
    ReplicatedSession local = session;
    if (local != null) {
      unheard.add(() -> {
        local.evict(why);
        return true;
      });
    }
  }

  /// How much this rank has not heard yet.
  int unheard() {
    return unheard.size();
  }

  /// Lets it hear what the others have been sent.
  ///
  /// @param count how much; who is lost while it is sent is told with what comes next
  void hear(int count) {
    boolean isNews = false;
    for (int i = 0; i < count; i++) {
      isNews |= unheard.remove().getAsBoolean();
    }
    if (isNews && session != null) {
      session.tellNews();
    }
    if (!unheard.isEmpty()) {
      wakeUp.run();
    }
  }

  /// Whether there is an order to end all processes, this one when the others have been sent it.
  boolean isHalting() {
    return order != null;
  }

  /// Obeys that order.
  ///
  /// @param isSent to all
  void halt(boolean isSent, long now) {
    if (session != null && order != null && (isSent || now - orderNs >= ORDER_NS)) {
      Event.Halt due = order;
      order = null;
      session.deliver(due);
    }
  }

  /// This rank hears nothing more.
  void leave() {
    session = null;
  }

  /// The server's thread has failed, and with it all that waits here.
  ///
  /// @return whether the rank knows; else it has left
  boolean fail(String evidence, Throwable cause) {
    boolean isKnown =
        joined.completeExceptionally(
            new JoinException(JoinException.Reason.PEER_FAILED, evidence, cause));
    if (session != null) {
      session.evict(evidence);
      session.tellNews();
      isKnown = true;
    }
    return isKnown;
  }
}
