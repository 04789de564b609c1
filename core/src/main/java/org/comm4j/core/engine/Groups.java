package org.comm4j.core.engine;

import static org.comm4j.core.engine.CallSignature.Purpose.LANE;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.EvictedException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.spi.BackendCommunicator.Shrink;
import org.jspecify.annotations.Nullable;

/// How the ranks of a communicator make others: each says what it proposes ([Proposal]), by a
/// collective or, where some may be gone or don't take part, over the session; all make the same of
/// that, and where they share memory they agree on a lane.
final class Groups {
  private static final Duration MEETING_SLICE = Duration.ofMillis(50);
  private static final int MOST_ATTEMPTS = 64; // to get a lane that no other thread takes first

  private final EngineCommunicator parent;
  private final Engine engine;
  private final Context context;
  private int shrinks;
  private volatile @Nullable Proposal shrinking; // of a shrink() that is not decided
  private @Nullable Absentees absentees; // found in it

  Groups(EngineCommunicator parent) {
    this.parent = parent;
    this.engine = parent.engine();
    this.context = parent.context();
  }

  /// A look that a rank takes now and then while others have not come to an agreement.
  interface Look {
    /// Looks whether there is anything left to wait for.
    ///
    /// @param missing those who have not come, as world ranks
    /// @param isOver whether the time of a call is over
    /// @throws CommException if the wait is over
    void at(List<Integer> missing, boolean isOver);
  }

  /// Makes a communicator for each color.
  ///
  /// @param label of what is made, for its name
  /// @return null for [Communicator#NO_COLOR]
  @Nullable EngineCommunicator split(
      CallSignature.Purpose purpose, String label, int color, int key) {
    return propose(mine -> {
      long[][] all =
          parent.gatherInternal(purpose, mine.id(), mine.lanes(), mine.flags(), color, key);
      if (color == Communicator.NO_COLOR) {
        return null;
      }
      List<Integer> group =
          IntStream.range(0, all.length)
              .filter(rank -> all[rank][3] == color)
              .boxed()
              .sorted(Comparator.<Integer>comparingLong(rank -> all[rank][4]).thenComparing(r -> r))
              .toList();
      int[] members = group.stream().mapToInt(context::worldRank).toArray();
      long id = Arrays.stream(all).mapToLong(row -> row[0]).max().orElseThrow();
      List<Proposal> proposals = group.stream().map(rank -> Proposal.of(all[rank])).toList();
      return finished(label, child(id, label, members, proposals, context.children()::making));
    });
  }

  /// Makes one of those who are alive, over the session.
  Shrink shrink() {
    List<Integer> members = Arrays.stream(context.members()).boxed().toList();
    String key = "shrink/" + Long.toHexString(context.scope()) + "/" + shrinks;
    Proposal before = shrinking;
    Proposal mine = before == null ? proposal() : before; // ranks that are late meet the same one
    shrinking = mine;
    Absentees known = absentees;
    Absentees found =
        known == null
            ? new Absentees(context, key, context.inquiries()::askForShrink)
            : known; // as each of its keys is used once
    absentees = found;
    Map<Integer, long[]> living =
        agree(key, members, mine, (missing, isOver) -> lookAtShrink(found, missing, isOver));
    shrinks++;
    shrinking = null;
    absentees = null;
    try {
      int[] survivors = members.stream().filter(living::containsKey).mapToInt(r -> r).toArray();
      int epoch = 1 + (int) living.values().stream().mapToLong(row -> row[3]).max().orElseThrow();
      EngineCommunicator made =
          finished("shrink", child("shrunk", survivors, living, context.children()::shrinkingTo));
      try (var _ = engine.enter()) {
        engine.epoch(epoch);
      }
      List<Integer> oldRanks = Arrays.stream(survivors).mapToObj(context::rankOf).toList();
      return new Shrink(made, oldRanks, epoch);
    } finally {
      settle(mine);
    }
  }

  /// While this rank shrinks; also what is broken can.
  private void lookAtShrink(Absentees found, List<Integer> missing, boolean isOver) {
    parent.checkOpen("shrink");
    List<Integer> awaited = missing.stream().filter(each -> !engine.isGone(each)).toList();
    if (isOver) {
      List<Integer> late = awaited.stream().map(context::rankOf).toList();
      throw new CollectiveTimeoutException(
          late,
          "rank %d waited %.1f s in shrink() of '%s' for rank(s) %s, who are alive but have not called it; all survivors have to"
              .formatted(context.rank(), engine.timeoutNs() / 1e9, context.name(), late));
    }
    Optional<Integer> absent = found.find(awaited).filter(each -> !engine.isGone(each));
    if (absent.isPresent()) {
      throw context.lacking(List.of(context.rankOf(absent.get())), "shrink()");
    }
  }

  /// Makes one of the ranks of this host, without the others, over the session; it breaks with the
  /// parent. Once.
  ///
  /// @param label what the program calls
  EngineCommunicator host(String label) {
    int[] members = parent.ranksHere().map(context::worldRank).toArray();
    return propose(mine ->
        finished(
            label,
            child(
                "node",
                members,
                new HostMeeting(label, parent, this, members).hold(mine),
                context.children()::makingTogether)));
  }

  /// The parent is closed: what has not been made won't be.
  void close() {
    Proposal undecided = shrinking;
    if (undecided != null) {
      settle(undecided);
    }
  }

  // --- proposals ---

  /// Makes a communicator, or none, while this rank's proposal for it is open.
  private <T extends @Nullable Object> T propose(Function<Proposal, T> agreement) {
    Proposal mine = proposal();
    try {
      return agreement.apply(mine);
    } finally {
      settle(mine);
    }
  }

  private Proposal proposal() {
    try (var _ = engine.enter()) {
      return new Proposal(engine.propose(), engine.lanes().free(), engine.lanes().flags());
    }
  }

  private void settle(Proposal proposal) {
    try (var _ = engine.lock()) {
      engine.settle(proposal.id());
    }
  }

  /// What ranks say, by world rank; those that are gone say nothing. Unlike one wait in the
  /// session, it looks now and then whether to go on.
  ///
  /// @param members world ranks
  Map<Integer, long[]> agree(String key, List<Integer> members, Proposal proposal, Look look) {
    byte[] mine = proposal.bytes(engine.epoch());
    long sinceNs = engine.nanoTime();
    while (true) {
      try {
        return rows(members, engine.session().agree(key, members, mine, MEETING_SLICE));
      } catch (CollectiveTimeoutException e) {
        look.at(e.missing(), engine.nanoTime() - sinceNs >= engine.timeoutNs());
      } catch (PeerFailedException e) {
        throw ended(e);
      }
    }
  }

  /// What the communicator calls the end of the session with the rank that hosted it.
  private CommException ended(PeerFailedException host) {
    int rank = context.rankOf(host.worldRanks().getFirst());
    return rank < 0
        ? new EvictedException(String.valueOf(engine.session().news().evicted()))
        : new PeerFailedException(
            List.of(rank), host.worldRanks(), host.evidence(), host.getCause());
  }

  private static Map<Integer, long[]> rows(List<Integer> members, List<byte @Nullable []> answers) {
    Map<Integer, long[]> rows = new HashMap<>();
    for (int i = 0; i < answers.size(); i++) {
      byte[] answer = answers.get(i);
      if (answer != null) {
        rows.put(members.get(i), Proposal.longs(answer));
      }
    }
    return rows;
  }

  // --- what is made ---

  private EngineCommunicator child(
      String label, int[] members, Map<Integer, long[]> rows, Consumer<Context> bond) {
    List<Proposal> proposals = rows.values().stream().map(Proposal::of).toList();
    long id = proposals.stream().mapToLong(Proposal::id).max().orElseThrow();
    return child(id, label, members, proposals, bond);
  }

  /// @param proposals of all members
  /// @param bond makes it break when the parent does, if it should
  private EngineCommunicator child(
      long id,
      String label,
      int[] members,
      Collection<Proposal> proposals,
      Consumer<Context> bond) {
    EngineCommunicator child;
    try (var _ = engine.enter()) {
      String name = ChildName.of(context.name(), label, engine.number(id));
      child = parent.child(engine.addContext(id, name, members));
      bond.accept(child.context());
    }
    if (child.context().failure() == null
        && !(engine.lanes().areOfUse(members) && agreeOnLane(child, proposals))) {
      meet(child);
    }
    return child;
  }

  /// Waits until all ranks know of a new communicator. One that the parent's break has got out of
  /// the agreement before that can't tell those who have it that it never will.
  private static void meet(EngineCommunicator made) {
    try {
      made.barrierInternal(LANE);
    } catch (CommException _) {
      // whoever uses it gets to know
    }
  }

  /// {@return what is made, unless the communicator that it is made of was closed meanwhile}
  private EngineCommunicator finished(String label, EngineCommunicator made) {
    boolean isClosed;
    try (var _ = engine.lock()) {
      context.children().finished(made.context());
      isClosed = context.isClosed();
    }
    if (isClosed) {
      made.close();
      parent.checkOpen(label);
    }
    return made;
  }

  /// Lets the ranks of a new communicator take a lane, the same on all of them. Where a rank has no
  /// memory for it, or other threads that make communicators take it first, all try another one.
  /// The agreement goes by messages; if the communicator breaks over it, whoever uses it gets to
  /// know.
  ///
  /// @return whether ranks have met in it, so that all know of it
  private boolean agreeOnLane(EngineCommunicator made, Collection<Proposal> proposals) {
    Collection<Proposal> latest = proposals;
    for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      long lanes = latest.stream().mapToLong(Proposal::lanes).reduce(-1, (a, b) -> a & b);
      if (lanes == 0) {
        tellOfNoLane(made);
        return attempt > 0;
      }
      long base = latest.stream().mapToLong(Proposal::flags).max().orElseThrow();
      int lane = pick(lanes, attempt == 0 ? 0 : made.context().id() + attempt);
      boolean taken;
      Proposal next;
      try (var _ = engine.lock()) {
        taken = engine.lanes().take(lane, base);
        long free = engine.lanes().free() | (taken ? 1L << lane : 0);
        next = new Proposal(taken ? 1 : 0, free, engine.lanes().flags());
      }
      long[][] all = new long[0][];
      try {
        all = made.gatherInternal(LANE, next.id(), next.lanes(), next.flags());
      } catch (CommException _) {
        // others may have heard of everybody: so the lane stays taken as long as the communicator
      }
      boolean agreed = Arrays.stream(all).allMatch(row -> row[0] == 1);
      if (taken) {
        try (var _ = engine.lock()) {
          if (agreed) {
            engine.lanes().use(made.context(), lane, base);
          } else {
            engine.lanes().giveBack(lane);
          }
        }
      }
      if (agreed) {
        return true;
      }
      latest = Arrays.stream(all).map(Proposal::of).toList();
    }
    // others were always faster; nobody can do anything about that, so it goes by messages silently
    return true;
  }

  private void tellOfNoLane(EngineCommunicator made) {
    try (var _ = engine.lock()) {
      engine.lanes().tellOfNone(made.name());
    }
  }

  /// One of the bits that are set: the first, or another one, so that communicators that are made
  /// at the same time try different ones.
  private static int pick(long bits, long which) {
    long left = bits;
    for (long skip = which % Long.bitCount(bits); skip > 0; skip--) {
      left &= left - 1;
    }
    return Long.numberOfTrailingZeros(left);
  }
}
