package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.Partition;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.comm4j.core.schedule.CollectiveKind;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ShapesTest {
  private static final int SIZE = 3;
  private static final int ROOT = 1;
  private static final int COUNT = 5;
  private static final Partition PARTS = Partition.even(SIZE, COUNT);
  private static final DataType TYPE = DataType.BFLOAT16; // wider while it is reduced

  /// So what is explained is what runs.
  @ParameterizedTest
  @EnumSource
  void even_anyKind_isTheShapeOfACall(CollectiveKind kind) {
    for (Reduction reduction : Reduction.values()) {
      for (int rank = 0; rank < SIZE; rank++) {
        Collective call = call(kind, rank == ROOT);

        assertThat(
                Shapes.even(kind, rank, SIZE, COUNT, ROOT, TYPE, ReduceOp.SUM, reduction, 64, null))
            .isEqualTo(Shapes.of(call, rank, SIZE, reduction, 64, null));
      }
    }
  }

  private static Collective call(CollectiveKind kind, boolean isRoot) {
    CommData one = data(COUNT);
    CommData other = data(COUNT);
    CommData all = data(SIZE * COUNT);
    CommData allOrNull = isRoot ? all : null;
    Partition partsOrNull = isRoot ? PARTS : null;
    return switch (kind) {
      case BARRIER -> new Collective.Barrier();
      case BROADCAST -> new Collective.Broadcast(one, ROOT);
      case REDUCE -> new Collective.Reduce(one, isRoot ? other : null, ReduceOp.SUM, ROOT);
      case ALL_REDUCE -> new Collective.AllReduce(one, other, ReduceOp.SUM);
      case GATHER -> new Collective.Gather(one, allOrNull, ROOT);
      case GATHER_V -> new Collective.GatherV(one, allOrNull, partsOrNull, ROOT);
      case ALL_GATHER -> new Collective.AllGather(one, all);
      case ALL_GATHER_V -> new Collective.AllGatherV(one, all, PARTS);
      case SCATTER -> new Collective.Scatter(allOrNull, one, ROOT);
      case SCATTER_V -> new Collective.ScatterV(allOrNull, partsOrNull, one, ROOT);
      case REDUCE_SCATTER -> new Collective.ReduceScatter(all, one, ReduceOp.SUM);
      case REDUCE_SCATTER_V -> new Collective.ReduceScatterV(all, PARTS, one, ReduceOp.SUM);
      case ALL_TO_ALL -> new Collective.AllToAll(all, data(SIZE * COUNT));
      case ALL_TO_ALL_V -> new Collective.AllToAllV(all, PARTS, data(SIZE * COUNT), PARTS);
      case SCAN -> new Collective.Scan(one, other, ReduceOp.SUM);
      case EXCLUSIVE_SCAN -> new Collective.ExclusiveScan(one, other, ReduceOp.SUM);
    };
  }

  private static CommData data(int count) {
    return CommData.of(TYPE, MemorySegment.ofArray(new short[count]));
  }
}
