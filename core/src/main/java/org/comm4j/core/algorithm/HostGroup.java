package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.comm4j.core.schedule.Hosts;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.AwaitPeer;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Done;
import org.comm4j.core.schedule.Step.FoldPeer;
import org.comm4j.core.schedule.Step.Publish;
import org.comm4j.core.schedule.Step.ReadPeer;
import org.comm4j.core.schedule.Step.ReducePeer;
import org.comm4j.core.schedule.Step.Wire;

/// The ranks of one host in a collective of several: what they do among themselves, over peer
/// memory. Each host has a leader, which speaks with those of the other hosts: the root if it is
/// there, else the lowest rank.
///
/// Hosts have the same stages, however many ranks they have.
///
/// @param members of this rank's host, ascending, but the leader first
/// @param index of this rank among them
/// @param leaders of all hosts
record HostGroup(Shape shape, Hosts hosts, int[] members, int index, int[] leaders, Cut cut) {
  /// Below, the leader folds everything: a stage costs as much as reading so many bytes.
  private static final long ONE_STAGE_TOTAL = 32 << 10;

  static HostGroup of(Shape shape, int rank, Cut cut) {
    Hosts hosts = Objects.requireNonNull(shape.hosts(), "hosts");
    int[] leaders = new int[hosts.count()];
    for (int host = 0; host < leaders.length; host++) {
      leaders[host] = hosts.of(shape.root()) == host ? shape.root() : hosts.rank(host, 0);
    }
    int host = hosts.of(rank);
    int[] members = new int[hosts.ranks(host)];
    members[0] = leaders[host];
    int next = 1;
    for (int i = 0; i < members.length; i++) {
      if (hosts.rank(host, i) != leaders[host]) {
        members[next++] = hosts.rank(host, i);
      }
    }
    int index = 0;
    while (members[index] != rank) {
      index++;
    }
    return new HostGroup(shape, hosts, members, index, leaders, cut);
  }

  /// Whether a shape has hosts of which one has several ranks, with windows that hold an element.
  static boolean isIn(Shape shape) {
    Hosts hosts = shape.hosts();
    return hosts != null
        && hosts.mostRanks() > 1
        && hosts.windowBytes() >= Math.max(1, shape.accumulatorBytes());
  }

  int host() {
    return hosts.of(members[0]);
  }

  int leader() {
    return members[0];
  }

  boolean isLeader() {
    return index == 0;
  }

  /// Where the root is, among the leaders.
  int rootsHost() {
    return hosts.of(shape.root());
  }

  private boolean isAlone() {
    return members.length == 1;
  }

  // --- reduce ---

  private Pieces reducedPieces() {
    long limit = Math.min(cut.pieceBytes(), hosts.windowBytes()) / shape.accumulatorBytes();
    return Pieces.of(shape.count(), limit);
  }

  private boolean leaderFoldsAll() {
    return shape.count() * shape.accumulatorBytes() * hosts.mostRanks() <= ONE_STAGE_TOTAL;
  }

  /// How many stages [#reduce] takes.
  int reduceStages() {
    return reducedPieces().number() * (leaderFoldsAll() ? 1 : 2);
  }

  /// Folds the inputs of this host's ranks, which are not finished then. A piece is folded by all,
  /// each a chunk of it, which the leader reads; little is folded by the leader.
  ///
  /// @param total the leader's, where the result goes, in the accumulation type; may be the output
  ///   in place
  Phase reduce(int firstStage, Slice total, Memory memory) {
    Pieces pieces = reducedPieces();
    int workers = leaderFoldsAll() ? 1 : members.length;
    int stages = leaderFoldsAll() ? 1 : 2;
    long largest = Chunks.split(pieces.largest(), workers).largest();
    Slice block = memory.partials(isLeader() || index >= workers ? 0 : largest);
    return Phase.of(
        pieces.number(),
        number -> {
          int stage = firstStage + stages * number;
          Slice piece = pieces.in(Space.INPUT, number);
          Chunks chunks = Chunks.split(piece.count(), workers);
          long count = index < workers ? chunks.count(index) : 0;
          List<Step> steps = new ArrayList<>();
          if (!isAlone() && (!isLeader() || (workers > 1 && chunks.count(1) > 0))) {
            steps.add(new Publish(stage, piece));
          }
          if (count > 0) {
            long from = chunks.from(index);
            Slice folded =
                isLeader() ? total.part(piece.from() + from, count) : block.part(0, count);
            fold(stage, from, piece.part(from, count), folded, steps);
          }
          steps.add(new Done(stage));
          if (stages == 2) {
            collect(stage + 1, chunks, piece, total, block, steps);
            steps.add(new Done(stage + 1));
          }
          return new Round(steps);
        });
  }

  /// The own contribution first, then those of the members behind this one, around.
  private void fold(int stage, long from, Slice own, Slice folded, List<Step> steps) {
    if (isAlone()) {
      steps.add(new Copy(own, folded));
    }
    for (int distance = 1; distance < members.length; distance++) {
      int peer = members[(index + distance) % members.length];
      steps.add(new AwaitPeer(peer, stage));
      steps.add(
          distance == 1
              ? new FoldPeer(peer, stage, from, own, folded, Wire.VALUE, true)
              : new ReducePeer(peer, stage, from, folded, Wire.VALUE));
    }
  }

  private void collect(
      int stage, Chunks chunks, Slice piece, Slice total, Slice block, List<Step> steps) {
    if (!isLeader() && chunks.count(index) > 0) {
      steps.add(new Publish(stage, block.part(0, chunks.count(index))));
    }
    for (int other = 1; isLeader() && other < members.length; other++) {
      long count = chunks.count(other);
      if (count > 0) {
        Slice folded = total.part(piece.from() + chunks.from(other), count);
        steps.add(new AwaitPeer(members[other], stage));
        steps.add(new ReadPeer(members[other], stage, 0, folded, shape.accumulatorWire()));
      }
    }
  }

  // --- broadcast ---

  private Pieces pieces(long count) {
    return Pieces.of(count, Math.min(cut.pieceBytes(), hosts.windowBytes()) / shape.valueBytes());
  }

  /// How many stages [#broadcast] takes.
  int broadcastStages(long count) {
    return pieces(count).number();
  }

  /// Lets this host's ranks read what the leader has.
  ///
  /// @param data the leader's, and on the others where it goes
  Phase broadcast(int firstStage, Slice data) {
    Pieces pieces = pieces(data.count());
    return Phase.of(
        pieces.number(),
        number -> {
          Slice place = pieces.in(data.space(), number);
          Slice piece = data.part(place.from(), place.count());
          return new Round(read(firstStage + number, piece));
        });
  }

  private List<Step> read(int stage, Slice data) {
    if (isAlone()) {
      return List.of(new Done(stage));
    }
    return isLeader()
        ? List.of(new Publish(stage, data), new Done(stage))
        : List.of(
            new AwaitPeer(leader(), stage),
            new ReadPeer(leader(), stage, 0, data, Wire.VALUE),
            new Done(stage));
  }

  // --- all-gather ---

  /// How many stages [#gather] takes.
  int gatherStages() {
    return pieces(shape.count()).number();
  }

  /// Lets this host's ranks read one another's input; it goes to its places in the output.
  Phase gather(int firstStage) {
    Pieces pieces = pieces(shape.count());
    Slice output = Shapes.output(shape.count() * shape.size());
    return Phase.of(
        pieces.number(),
        number -> {
          int stage = firstStage + number;
          Slice piece = pieces.in(Space.INPUT, number);
          List<Step> steps = new ArrayList<>();
          if (!isAlone()) {
            steps.add(new Publish(stage, piece));
          }
          for (int distance = 1; distance < members.length; distance++) {
            int peer = members[(index + distance) % members.length];
            Slice to = output.part(peer * shape.count() + piece.from(), piece.count());
            steps.add(new AwaitPeer(peer, stage));
            steps.add(new ReadPeer(peer, stage, 0, to, Wire.VALUE));
          }
          steps.add(new Done(stage));
          return new Round(steps);
        });
  }

  /// Stages that other hosts need.
  Phase idle(int firstStage, int stages) {
    return Phase.of(stages, number -> Round.of(new Done(firstStage + number)));
  }

  // --- barrier ---

  /// The leader learns that all of its host have come.
  Phase arrive(int stage) {
    List<Step> steps = new ArrayList<>();
    if (!isLeader()) {
      steps.add(new Publish(stage, Shapes.input(0)));
    }
    for (int other = 1; isLeader() && other < members.length; other++) {
      steps.add(new AwaitPeer(members[other], stage));
    }
    steps.add(new Done(stage));
    return Phase.once(steps);
  }

  /// All of its host learn that the leader goes on.
  Phase leave(int stage) {
    List<Step> steps = new ArrayList<>();
    if (!isAlone()) {
      steps.add(isLeader() ? new Publish(stage, Shapes.input(0)) : new AwaitPeer(leader(), stage));
    }
    steps.add(new Done(stage));
    return Phase.once(steps);
  }
}
