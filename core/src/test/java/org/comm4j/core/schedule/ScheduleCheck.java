package org.comm4j.core.schedule;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntFunction;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;

/// Proves for one shape that the plans of all ranks do what the collective promises, by executing
/// them with symbols for values ([Expressions]).
///
/// A send here ends only when its receive has taken it, so a plan that passes needs no buffering in
/// a transport. Since a rank's rounds are executed one behind the other, messages of a pair are
/// matched in order, and the messages of a round touch disjoint memory, the values do not depend on
/// the order in which ranks advance: one execution stands for all. Proved:
/// - every send has its receive, with equal count and type; nobody waits for ever;
/// - all slices are inside their buffers; the messages of a round are disjoint as [Round] says;
///   local steps work on equal counts, on the same memory or on disjoint memory;
/// - nothing is read that was not written; the input is not written;
/// - every element of the output is what the collective says: moved from the right place, or each
///   contribution once, in rank order if that was promised, else equal on all ranks, finished once
///   with the right divisor; and no element else is touched;
/// - no rank leaves a barrier without having heard, directly or not, of all others;
/// - where the accumulation type is a wider one, partial reductions are never kept or sent in the
///   data's type;
/// - the rules of peer memory: stages ascend, are awaited before they are read and read before they
///   are done, fit the window, and every rank has done every stage. A rank publishes stage `s` when
///   all ranks have done `s - 2` (little data goes before that, which is not looked at), and what
///   it published of its output it does not write before all have done that stage. Where ranks are
///   on several hosts, "all" are those of its host, and it reads no others.
///
/// Costs memory for every element on every rank.
public final class ScheduleCheck {
  private final boolean leftFold;
  private final int size;
  private final Shape[] shapes;
  private final RankState[] ranks;
  private final Expressions expressions;
  private final Map<Long, Channel> channels = new HashMap<>();
  private final Deque<RankState> ready = new ArrayDeque<>();
  private final List<RankState> waitingForPeers = new ArrayList<>();

  private final int stages;

  /// How many ranks of a host have not done a stage.
  private final int[][] notDone;

  /// Says what is wrong, and at which rank, round and step.
  public static final class Fault extends RuntimeException {
    private static final long serialVersionUID = 1;

    Fault(String message) {
      super(message);
    }
  }

  /// What one rank is doing.
  private final class RankState {
    final int rank;
    final Schedule plan;
    final RankMemory memory;
    final Map<Integer, Published> published = new HashMap<>();
    final Set<Long> awaited = new HashSet<>();
    int round = -1;
    List<Step> steps = List.of();

    /// The next of the round's steps that is no message.
    int next;

    boolean posted = true;

    /// The messages of this round that have not ended.
    final List<Step.Message> pending = new ArrayList<>();

    boolean ended;
    int lastPublished = -1;
    int lastDone = -1;

    /// In a barrier: the ranks of which this one knows that they have entered.
    final BitSet heardOf = new BitSet();

    RankState(int rank, Schedule plan, boolean inPlace) {
      this.rank = rank;
      this.plan = plan;
      this.memory = new RankMemory(shapes[rank], rank, plan, expressions, inPlace);
      heardOf.set(rank);
    }
  }

  /// What a rank lets the others read.
  private static final class Published {
    final Slice slice;
    final int[] values;
    final boolean wide;
    final BitSet heardOf;

    Published(Slice slice, int[] values, boolean wide, BitSet heardOf) {
      this.slice = slice;
      this.heardOf = heardOf;
      this.values = values;
      this.wide = wide;
    }
  }

  /// A message of which one side is there.
  ///
  /// @param heardOf what the sender knew when it sent
  private record Posted(RankState state, Step.Message step, BitSet heardOf) {}

  /// The messages from one rank to another that wait for their other side.
  private record Channel(Deque<Posted> sends, Deque<Posted> receives) {}

  private ScheduleCheck(
      int size,
      IntFunction<Shape> shapes,
      IntFunction<Schedule> plans,
      boolean leftFold,
      boolean inPlace) {
    this.size = size;
    this.leftFold = leftFold;
    this.shapes = new Shape[size];
    long[] inputCounts = new long[size];
    for (int rank = 0; rank < size; rank++) {
      this.shapes[rank] = shapes.apply(rank);
      inputCounts[rank] = Buffers.of(this.shapes[rank], rank).inputCount();
    }
    expressions = new Expressions(size, inputCounts);
    ranks = new RankState[size];
    for (int rank = 0; rank < size; rank++) {
      ranks[rank] = new RankState(rank, plans.apply(rank), inPlace);
    }
    stages = ranks[0].plan.stages();
    Hosts hosts = this.shapes[0].hosts();
    notDone = new int[hosts == null ? 1 : hosts.count()][stages];
    for (int host = 0; host < notDone.length; host++) {
      Arrays.fill(notDone[host], hosts == null ? size : hosts.ranks(host));
    }
  }

  /// Checks a shape that is the same on all ranks.
  ///
  /// @param plans each rank's plan
  /// @param leftFold whether a reduction must be the left fold over ranks
  /// @param inPlace whether the output is the input's memory, where the collective has such a form
  /// @throws Fault for the first thing that is wrong
  public static void check(
      Shape shape, IntFunction<Schedule> plans, boolean leftFold, boolean inPlace) {
    check(shape.size(), _ -> shape, plans, leftFold, inPlace);
  }

  /// Checks a shape of which ranks know different parts: GATHER_V, SCATTER_V, ALL_TO_ALL_V.
  ///
  /// @param shapes each rank's shape
  /// @param plans each rank's plan
  /// @param leftFold whether a reduction must be the left fold over ranks
  /// @param inPlace whether the output is the input's memory, where the collective has such a form
  /// @throws Fault for the first thing that is wrong
  public static void check(
      int size,
      IntFunction<Shape> shapes,
      IntFunction<Schedule> plans,
      boolean leftFold,
      boolean inPlace) {
    new ScheduleCheck(size, shapes, plans, leftFold, inPlace).run();
  }

  private int host(int rank) {
    Hosts hosts = shapes[0].hosts();
    return hosts == null ? 0 : hosts.of(rank);
  }

  /// Whether all who could read what a rank published in a stage have done it.
  private boolean isDone(RankState state, int stage) {
    return notDone[host(state.rank)][stage] == 0;
  }

  private void run() {
    for (RankState state : ranks) {
      if (state.plan.stages() != stages) {
        throw new Fault(
            "rank %d has %d stages but rank 0 has %d (expected: the same on all ranks)"
                .formatted(state.rank, state.plan.stages(), stages));
      }
      ready.add(state);
    }
    while (!ready.isEmpty()) {
      advance(ready.remove());
    }
    for (RankState state : ranks) {
      if (!state.ended) {
        throw new Fault(deadlock());
      }
    }
    for (RankState state : ranks) {
      if (isBarrier() && state.heardOf.cardinality() < size) {
        throw new Fault(
            "rank %d leaves without having heard of rank %d"
                .formatted(state.rank, state.heardOf.nextClearBit(0)));
      }
    }
    new Results(expressions, List.of(shapes), leftFold).check(rank -> ranks[rank].memory);
  }

  /// Goes on with a rank until it waits for another one or has ended.
  private void advance(RankState state) {
    while (!state.ended) {
      if (!state.posted) {
        while (state.next < state.steps.size()) {
          Step step = state.steps.get(state.next);
          if (!(step instanceof Step.Message) && !execute(state, step)) {
            waitingForPeers.add(state);
            return;
          }
          state.next++;
        }
        post(state);
      }
      if (!state.pending.isEmpty()) {
        return;
      }
      nextRound(state);
    }
  }

  private void nextRound(RankState state) {
    state.round++;
    if (state.round == state.plan.rounds()) {
      state.ended = true;
      if (state.lastDone != stages - 1) {
        throw new Fault(
            "rank %d ended after Done of stage %d (expected: Done of every stage, the last is %d)"
                .formatted(state.rank, state.lastDone, stages - 1));
      }
      return;
    }
    state.steps = state.plan.round(state.round).steps();
    state.next = 0;
    state.posted = false;
    for (Step step : state.steps) {
      checkBounds(state, step);
    }
    checkDisjoint(state);
  }

  // Messages

  private void post(RankState state) {
    state.posted = true;
    for (Step step : state.steps) {
      if (step instanceof Step.Message message) {
        state.pending.add(message);
      }
    }
    BitSet heardOf = news(state);
    // Not over `pending`: a match removes from it.
    for (Step step : state.steps) {
      if (step instanceof Step.Message message) {
        boolean send = message instanceof Step.Send;
        int from = send ? state.rank : message.peer();
        int to = send ? message.peer() : state.rank;
        Channel channel =
            channels.computeIfAbsent(
                (long) from * size + to, _ -> new Channel(new ArrayDeque<>(), new ArrayDeque<>()));
        (send ? channel.sends : channel.receives).add(new Posted(state, message, heardOf));
        if (!channel.sends.isEmpty() && !channel.receives.isEmpty()) {
          deliver(channel.sends.remove(), channel.receives.remove());
        }
      }
    }
  }

  private void deliver(Posted sent, Posted taken) {
    Slice from = ((Step.Send) sent.step).slice();
    RankState to = taken.state;
    Step.Arriving step = (Step.Arriving) taken.step;
    if (step instanceof Step.ReceiveFold fold) {
      checkLocal(to, fold, fold.own(), fold.to(), true);
    }
    checkMatch(sent, taken, step);
    int[] values = read(sent.state, sent.step, from);
    switch (step) {
      case Step.Receive _ -> store(to, step, values, isWide(from), step.to());
      case Step.ReceiveReduce _ -> reduce(to, step, values, step.to(), false);
      case Step.ReceiveReduceBefore _ -> reduce(to, step, values, step.to(), true);
      case Step.ReceiveFold fold -> {
        store(to, fold, read(to, fold, fold.own()), isWide(fold.own()), fold.to());
        reduce(to, fold, values, fold.to(), !fold.ownFirst());
      }
    }
    to.heardOf.or(sent.heardOf);
    end(sent);
    end(taken);
  }

  private void end(Posted posted) {
    List<Step.Message> pending = posted.state.pending;
    pending.remove(posted.step);
    if (pending.isEmpty()) {
      ready.add(posted.state);
    }
  }

  private void checkMatch(Posted sent, Posted taken, Step.Arriving step) {
    Slice from = ((Step.Send) sent.step).slice();
    if (from.count() != step.to().count()) {
      throw new Fault(
          "%s sends %d elements but %s takes %d"
              .formatted(at(sent), from.count(), at(taken), step.to().count()));
    }
    checkWire(taken.state, step, step.wire(), isWide(from));
  }

  private void checkWire(RankState state, Step step, Step.Wire wire, boolean wide) {
    if (shapes[state.rank].widened() && (wire == Step.Wire.ACCUMULATOR) != wide) {
      throw fault(
          state,
          step,
          "expects the %s type but gets the %s type"
              .formatted(
                  wire == Step.Wire.ACCUMULATOR ? "accumulation" : "data's",
                  wide ? "accumulation" : "data's"));
    }
  }

  // Local and peer steps

  /// @return false if the rank must wait for a peer and try again
  private boolean execute(RankState state, Step step) {
    switch (step) {
      case Step.Copy copy -> {
        checkLocal(state, step, copy.from(), copy.to(), true);
        store(state, step, read(state, step, copy.from()), isWide(copy.from()), copy.to());
      }
      case Step.Reduce reduce -> {
        checkLocal(state, step, reduce.from(), reduce.to(), false);
        reduce(state, step, read(state, step, reduce.from()), reduce.to(), false);
      }
      case Step.Finish finish -> {
        checkLocal(state, step, finish.from(), finish.to(), true);
        finish(state, finish);
      }
      case Step.Publish publish -> {
        return publish(state, publish);
      }
      case Step.AwaitPeer await -> {
        checkStage(state, step, await.stage());
        if (host(await.peer()) != host(state.rank)) {
          throw fault(state, step, "a rank of another host (expected: one of this host)");
        }
        Published published = ranks[await.peer()].published.get(await.stage());
        if (published == null) {
          return false;
        }
        state.heardOf.or(published.heardOf);
        state.awaited.add(awaitKey(await.peer(), await.stage()));
      }
      case Step.ReadPeer read -> {
        Published published = published(state, read);
        store(state, read, part(state, read, published), published.wide, read.to());
      }
      case Step.ReducePeer reduce ->
          reduce(state, reduce, part(state, reduce, published(state, reduce)), reduce.to(), false);
      case Step.FoldPeer fold -> {
        checkLocal(state, fold, fold.own(), fold.to(), true);
        int[] values = part(state, fold, published(state, fold));
        store(state, fold, read(state, fold, fold.own()), isWide(fold.own()), fold.to());
        reduce(state, fold, values, fold.to(), !fold.ownFirst());
      }
      case Step.FinishPeer finish -> {
        checkLocal(state, finish, finish.own(), finish.to(), true);
        finishPeer(state, finish, part(state, finish, published(state, finish)));
      }
      case Step.Done done -> {
        if (done.stage() != state.lastDone + 1) {
          throw fault(state, step, "after stage " + state.lastDone + " (expected: the next stage)");
        }
        checkStage(state, step, done.stage());
        state.lastDone = done.stage();
        notDone[host(state.rank)][done.stage()]--;
        wakeWaiting();
      }
      case Step.Message _ -> throw new AssertionError("messages are posted");
    }
    return true;
  }

  private boolean publish(RankState state, Step.Publish publish) {
    int stage = publish.stage();
    checkStage(state, publish, stage);
    if (stage <= state.lastPublished) {
      throw fault(state, publish, "after stage " + state.lastPublished + " was published");
    }
    Shape shape = shapes[state.rank];
    long bytes =
        publish.slice().count()
            * (isWide(publish.slice()) ? shape.accumulatorBytes() : shape.valueBytes());
    if (bytes > shape.stageBytes()) {
      throw fault(
          state,
          publish,
          "%d bytes (expected: at most the window's %d)".formatted(bytes, shape.stageBytes()));
    }
    if (stage >= 2 && !isDone(state, stage - 2)) {
      return false;
    }
    int[] values = read(state, publish, publish.slice());
    state.published.put(
        stage, new Published(publish.slice(), values, isWide(publish.slice()), news(state)));
    state.lastPublished = stage;
    wakeWaiting();
    return true;
  }

  private BitSet news(RankState state) {
    return isBarrier() ? (BitSet) state.heardOf.clone() : state.heardOf;
  }

  private boolean isBarrier() {
    return shapes[0].kind() == CollectiveKind.BARRIER;
  }

  private void wakeWaiting() {
    ready.addAll(waitingForPeers);
    waitingForPeers.clear();
  }

  private void checkStage(RankState state, Step step, int stage) {
    if (stage < 0 || stage >= stages) {
      throw fault(state, step, "the plan has %d stages".formatted(stages));
    }
    if (!(step instanceof Step.Done) && stage <= state.lastDone) {
      throw fault(state, step, "after this rank has done stage " + state.lastDone);
    }
  }

  private Published published(RankState state, Step.Reading step) {
    int stage = step.stage();
    checkStage(state, step, stage);
    if (!state.awaited.contains(awaitKey(step.peer(), stage))) {
      throw fault(state, step, "without AwaitPeer before it");
    }
    if (stage < state.lastPublished) {
      throw fault(
          state,
          step,
          "after publishing stage %d, which tells the others that this rank is done with stage %d"
              .formatted(state.lastPublished, stage));
    }
    Published published = ranks[step.peer()].published.get(stage);
    if (published == null) {
      throw new AssertionError("awaited");
    }
    checkWire(state, step, step.wire(), published.wide);
    return published;
  }

  private long awaitKey(int peer, int stage) {
    return (long) peer * stages + stage;
  }

  private int[] part(RankState state, Step.Reading step, Published published) {
    long count = step.to().count();
    if (step.from() < 0 || step.from() + count > published.values.length) {
      throw fault(
          state, step, "the peer has published %d elements".formatted(published.values.length));
    }
    return Arrays.copyOfRange(published.values, (int) step.from(), (int) (step.from() + count));
  }

  // Values

  private int[] read(RankState state, Step step, Slice from) {
    int[] values = new int[(int) from.count()];
    for (int index = 0; index < values.length; index++) {
      values[index] = state.memory.get(from.space(), from.from() + index);
      if (values[index] == Expressions.UNWRITTEN) {
        throw fault(
            state,
            step,
            "reads %s[%d], which nothing was written to"
                .formatted(ScheduleText.of(from.space()), from.from() + index));
      }
    }
    return values;
  }

  private void store(RankState state, Step step, int[] values, boolean wide, Slice to) {
    if (wide && !isWide(to)) {
      throw fault(state, step, "narrows to the data's type (expected: only Finish does)");
    }
    write(state, step, to, values);
  }

  /// @param before whether the values are from lower ranks than what is there
  private void reduce(RankState state, Step step, int[] values, Slice to, boolean before) {
    if (shapes[state.rank].widened() && !isWide(to)) {
      throw fault(state, step, "reduces in the data's type (expected: the accumulation type)");
    }
    int[] there = read(state, step, to);
    compute(state, step, to, index -> combine(there[index], values[index], !before));
  }

  private void finish(RankState state, Step.Finish finish) {
    if (shapes[state.rank].widened() && (!isWide(finish.from()) || isWide(finish.to()))) {
      throw fault(
          state, finish, "(expected: from the accumulation type in WORK to the data's type)");
    }
    int[] values = read(state, finish, finish.from());
    compute(
        state, finish, finish.to(), index -> expressions.finish(values[index], finish.divisor()));
  }

  private void finishPeer(RankState state, Step.FinishPeer finish, int[] theirs) {
    if (isWide(finish.own()) || isWide(finish.to())) {
      throw fault(state, finish, "(expected: from the data's type to the data's type)");
    }
    int[] values = read(state, finish, finish.own());
    compute(
        state,
        finish,
        finish.to(),
        index ->
            expressions.finish(
                combine(values[index], theirs[index], finish.ownFirst()), finish.divisor()));
  }

  private int combine(int own, int other, boolean ownFirst) {
    return ownFirst ? expressions.combine(own, other) : expressions.combine(other, own);
  }

  /// Writes a value for each element of a slice.
  private void compute(RankState state, Step step, Slice to, IntUnaryOperator value) {
    int[] values = new int[(int) to.count()];
    try {
      Arrays.setAll(values, value);
    } catch (IllegalArgumentException wrong) {
      throw fault(state, step, wrong);
    }
    write(state, step, to, values);
  }

  private void write(RankState state, Step step, Slice to, int[] values) {
    if (to.space() == Space.INPUT && to.count() > 0) {
      throw fault(state, step, "writes the input");
    }
    for (int stage = Math.max(0, state.lastPublished - 1); stage <= state.lastPublished; stage++) {
      Published published = state.published.get(stage);
      if (published != null
          && published.slice.space() == Space.OUTPUT
          && !isDone(state, stage)
          && state.memory.overlap(published.slice, to)) {
        throw fault(
            state,
            step,
            "writes a part of the output that others may read: it was published in stage " + stage);
      }
    }
    for (int index = 0; index < values.length; index++) {
      state.memory.set(to.space(), to.from() + index, values[index]);
    }
  }

  /// Whether a slice is in an accumulation type that is not the data's.
  private boolean isWide(Slice slice) {
    return slice.space() == Space.WORK && shapes[0].widened();
  }

  // Slices

  private void checkBounds(RankState state, Step step) {
    switch (step) {
      case Step.Copy copy -> checkBounds(state, step, copy.from(), copy.to());
      case Step.Reduce reduce -> checkBounds(state, step, reduce.from(), reduce.to());
      case Step.Finish finish -> checkBounds(state, step, finish.from(), finish.to());
      case Step.Send send -> checkBounds(state, step, send.slice());
      case Step.ReceiveFold fold -> checkBounds(state, step, fold.own(), fold.to());
      case Step.Arriving receive -> checkBounds(state, step, receive.to());
      case Step.Publish publish -> checkBounds(state, step, publish.slice());
      case Step.AwaitPeer await -> checkPeer(state, step, await.peer());
      case Step.FoldPeer fold -> checkBounds(state, step, fold.own(), fold.to());
      case Step.FinishPeer finish -> checkBounds(state, step, finish.own(), finish.to());
      case Step.Reading read -> checkBounds(state, step, read.to());
      case Step.Done _ -> {}
    }
    if (step instanceof Step.Message message) {
      checkPeer(state, step, message.peer());
    } else if (step instanceof Step.Reading read) {
      checkPeer(state, step, read.peer());
    }
  }

  private void checkBounds(RankState state, Step step, Slice... slices) {
    for (Slice slice : slices) {
      if (slice.count() > 0 && slice.end() > state.memory.count(slice.space())) {
        throw fault(
            state,
            step,
            "%s is outside the buffer, which has %d elements"
                .formatted(slice, state.memory.count(slice.space())));
      }
    }
  }

  private void checkPeer(RankState state, Step step, int peer) {
    if (peer < 0 || peer >= size || peer == state.rank) {
      throw fault(state, step, "peer %d (expected: another rank)".formatted(peer));
    }
  }

  private void checkLocal(RankState state, Step step, Slice from, Slice to, boolean sameAllowed) {
    if (from.count() != to.count()) {
      throw fault(state, step, "%d elements to %d".formatted(from.count(), to.count()));
    }
    if (state.memory.overlap(from, to) && !(sameAllowed && state.memory.same(from, to))) {
      throw fault(state, step, "its slices overlap");
    }
  }

  /// What a message of a round reads or writes.
  private record Touched(Space array, long from, long end, boolean written, Step step) {}

  private static void touch(
      List<Touched> touched, RankState state, Step step, Slice slice, boolean written) {
    if (slice.count() > 0) {
      long from = state.memory.address(slice);
      touched.add(
          new Touched(state.memory.array(slice), from, from + slice.count(), written, step));
    }
  }

  private void checkDisjoint(RankState state) {
    List<Touched> touched = new ArrayList<>();
    for (Step step : state.steps) {
      switch (step) {
        case Step.Send send -> touch(touched, state, step, send.slice(), false);
        case Step.ReceiveFold fold -> {
          touch(touched, state, step, fold.to(), true);
          if (!state.memory.same(fold.own(), fold.to())) {
            touch(touched, state, step, fold.own(), false);
          }
        }
        case Step.Arriving receive -> touch(touched, state, step, receive.to(), true);
        case Step.Local _, Step.Peer _ -> {}
      }
    }
    touched.sort(Comparator.comparing(Touched::array).thenComparingLong(Touched::from));
    // The slices that reach furthest so far, of all and of the written ones.
    @Nullable Touched furthest = null;
    @Nullable Touched furthestWritten = null;
    for (Touched here : touched) {
      Touched other = here.written ? furthest : furthestWritten;
      if (other != null && other.array == here.array && here.from < other.end) {
        throw fault(
            state,
            here.step,
            "overlaps another message of its round: " + ScheduleText.of(other.step));
      }
      if (furthest == null || furthest.array != here.array || furthest.end < here.end) {
        furthest = here;
      }
      if (here.written
          && (furthestWritten == null
              || furthestWritten.array != here.array
              || furthestWritten.end < here.end)) {
        furthestWritten = here;
      }
    }
  }

  // Messages for people

  private String deadlock() {
    StringBuilder text = new StringBuilder("deadlock:");
    int shown = 0;
    for (RankState state : ranks) {
      if (state.ended) {
        continue;
      }
      if (shown++ == 4) {
        return text.append(" …").toString();
      }
      Step step = state.posted ? state.pending.getFirst() : state.steps.get(state.next);
      text.append(shown == 1 ? " " : "; ").append(at(state, step)).append(" waits");
      int peer =
          switch (step) {
            case Step.Message message -> message.peer();
            case Step.AwaitPeer await -> await.peer();
            case Step.Local _, Step.Peer _ -> -1;
          };
      if (peer >= 0) {
        RankState other = ranks[peer];
        text.append(other.ended ? ", but rank " : ", and rank ")
            .append(peer)
            .append(other.ended ? " has ended" : " is in round " + other.round);
      } else if (step instanceof Step.Publish publish) {
        text.append(" for all ranks' Done of stage ").append(publish.stage() - 2);
      }
    }
    return text.toString();
  }

  private static Fault fault(RankState state, Step step, String what) {
    return new Fault(at(state, step) + ": " + what);
  }

  private static Fault fault(RankState state, Step step, IllegalArgumentException cause) {
    Fault fault = new Fault(at(state, step) + ": " + cause.getMessage());
    fault.initCause(cause);
    return fault;
  }

  private static String at(Posted posted) {
    return at(posted.state, posted.step);
  }

  private static String at(RankState state, Step step) {
    return "rank %d, round %d, %s".formatted(state.rank, state.round, ScheduleText.of(step));
  }
}
