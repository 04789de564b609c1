package org.comm4j.core.algorithm;

import java.util.List;
import java.util.Optional;
import org.comm4j.core.schedule.CollectiveKind;

/// All algorithms there are.
public final class Algorithms {
  private static final List<Algorithm> ALL =
      List.of(
          new Alone(CollectiveKind.BARRIER),
          new PullBarrier(),
          new DisseminationBarrier(),
          new HierarchicalBarrier(Cut.STANDARD),
          //
          new Alone(CollectiveKind.BROADCAST),
          new PullBroadcast(Cut.STANDARD),
          new BinomialBroadcast(),
          new ScatterRingBroadcast(),
          new HierarchicalBroadcast(Cut.STANDARD),
          //
          new Alone(CollectiveKind.REDUCE),
          new OneStageReduction(CollectiveKind.REDUCE, Cut.STANDARD),
          new TwoStageReduction(CollectiveKind.REDUCE, Cut.STANDARD),
          new LinearReduce(),
          new BinomialReduce(),
          new PairwiseReduce(),
          new HierarchicalReduce(Cut.STANDARD),
          //
          new Alone(CollectiveKind.ALL_REDUCE),
          new OneStageReduction(CollectiveKind.ALL_REDUCE, Cut.STANDARD),
          new TwoStageReduction(CollectiveKind.ALL_REDUCE, Cut.STANDARD),
          new GatherFoldAllReduce(),
          new RecursiveDoublingAllReduce(),
          new DirectAllReduce(),
          new RabenseifnerAllReduce(),
          new PairwiseAllReduce(),
          new RingAllReduce(),
          new HierarchicalAllReduce(Cut.STANDARD),
          //
          new Alone(CollectiveKind.GATHER),
          new PullGather(Cut.STANDARD),
          new LinearGather(CollectiveKind.GATHER),
          new BinomialGather(),
          new Alone(CollectiveKind.GATHER_V),
          new LinearGather(CollectiveKind.GATHER_V),
          //
          new Alone(CollectiveKind.ALL_GATHER),
          new PullAllGather(CollectiveKind.ALL_GATHER, Cut.STANDARD),
          new BruckAllGather(),
          new RecursiveDoublingAllGather(),
          new RingAllGather(CollectiveKind.ALL_GATHER),
          new HierarchicalAllGather(Cut.STANDARD),
          new Alone(CollectiveKind.ALL_GATHER_V),
          new PullAllGather(CollectiveKind.ALL_GATHER_V, Cut.STANDARD),
          new RingAllGather(CollectiveKind.ALL_GATHER_V),
          //
          new Alone(CollectiveKind.SCATTER),
          new PullScatter(Cut.STANDARD),
          new LinearScatter(CollectiveKind.SCATTER),
          new BinomialScatter(),
          new Alone(CollectiveKind.SCATTER_V),
          new LinearScatter(CollectiveKind.SCATTER_V),
          //
          new Alone(CollectiveKind.REDUCE_SCATTER),
          new PullReduceScatter(CollectiveKind.REDUCE_SCATTER, Cut.STANDARD),
          new RecursiveHalvingReduceScatter(),
          new DirectReduceScatter(CollectiveKind.REDUCE_SCATTER),
          new PairwiseReduceScatter(CollectiveKind.REDUCE_SCATTER),
          new RingReduceScatter(CollectiveKind.REDUCE_SCATTER),
          new Alone(CollectiveKind.REDUCE_SCATTER_V),
          new PullReduceScatter(CollectiveKind.REDUCE_SCATTER_V, Cut.STANDARD),
          new DirectReduceScatter(CollectiveKind.REDUCE_SCATTER_V),
          new PairwiseReduceScatter(CollectiveKind.REDUCE_SCATTER_V),
          new RingReduceScatter(CollectiveKind.REDUCE_SCATTER_V),
          //
          new Alone(CollectiveKind.ALL_TO_ALL),
          new PullAllToAll(Cut.STANDARD),
          new BruckAllToAll(),
          new DirectAllToAll(CollectiveKind.ALL_TO_ALL),
          new PairwiseAllToAll(CollectiveKind.ALL_TO_ALL),
          new Alone(CollectiveKind.ALL_TO_ALL_V),
          new DirectAllToAll(CollectiveKind.ALL_TO_ALL_V),
          new PairwiseAllToAll(CollectiveKind.ALL_TO_ALL_V),
          //
          new Alone(CollectiveKind.SCAN),
          new OneStageReduction(CollectiveKind.SCAN, Cut.STANDARD),
          new RecursiveDoublingScan(CollectiveKind.SCAN),
          new ChainScan(CollectiveKind.SCAN, ChainScan.PIECE_BYTES),
          //
          new Alone(CollectiveKind.EXCLUSIVE_SCAN),
          new OneStageReduction(CollectiveKind.EXCLUSIVE_SCAN, Cut.STANDARD),
          new RecursiveDoublingScan(CollectiveKind.EXCLUSIVE_SCAN),
          new ChainScan(CollectiveKind.EXCLUSIVE_SCAN, ChainScan.PIECE_BYTES));

  private Algorithms() {}

  /// All of them, by collective.
  public static List<Algorithm> all() {
    return ALL;
  }

  /// Those of a collective.
  public static List<Algorithm> of(CollectiveKind kind) {
    return ALL.stream().filter(algorithm -> algorithm.kind() == kind).toList();
  }

  /// What a collective does in a group of one; no other algorithm does that size.
  public static Algorithm alone(CollectiveKind kind) {
    return of(kind).stream().filter(Alone.class::isInstance).findFirst().orElseThrow();
  }

  /// The built-in choice. Never fails for the facts of a shape that a checked call has.
  public static Choice choose(Facts facts) {
    return Table.choose(facts);
  }

  /// The one of a collective that has this name.
  public static Optional<Algorithm> find(CollectiveKind kind, String name) {
    return ALL.stream()
        .filter(algorithm -> algorithm.kind() == kind && algorithm.name().equals(name))
        .findFirst();
  }
}
