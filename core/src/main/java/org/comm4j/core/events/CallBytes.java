package org.comm4j.core.events;

import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.jspecify.annotations.Nullable;

/// How much a call is about on one rank.
final class CallBytes {
  private CallBytes() {}

  /// {@return the bytes of the memory that the rank gives or gets, whichever is more}
  ///
  /// @param rank of the communicator; what only the root gives or gets counts there
  static long of(Operation operation, int rank) {
    return switch (operation) {
      case Collective collective -> ofCollective(collective, rank);
      case PointToPoint.Send send -> send.data().bytes();
      case PointToPoint.Receive receive -> receive.data().bytes();
      case PointToPoint.SendReceive both -> larger(both.output(), both.input());
      case PointToPoint.Probe _ -> 0;
    };
  }

  private static long ofCollective(Collective collective, int rank) {
    boolean isRoot = collective instanceof Collective.Rooted rooted && rooted.root() == rank;
    return switch (collective) {
      case Collective.AllReduce call -> larger(call.input(), call.output());
      case Collective.Reduce call -> larger(call.input(), isRoot ? call.output() : null);
      case Collective.Broadcast call -> call.data().bytes();
      case Collective.AllGather call -> larger(call.input(), call.output());
      case Collective.AllGatherV call -> larger(call.input(), call.output());
      case Collective.Gather call -> larger(call.input(), isRoot ? call.output() : null);
      case Collective.GatherV call -> larger(call.input(), isRoot ? call.output() : null);
      case Collective.Scatter call -> larger(isRoot ? call.input() : null, call.output());
      case Collective.ScatterV call -> larger(isRoot ? call.input() : null, call.output());
      case Collective.ReduceScatter call -> larger(call.input(), call.output());
      case Collective.ReduceScatterV call -> larger(call.input(), call.output());
      case Collective.AllToAll call -> larger(call.input(), call.output());
      case Collective.AllToAllV call -> larger(call.input(), call.output());
      case Collective.Scan call -> larger(call.input(), call.output());
      case Collective.ExclusiveScan call -> larger(call.input(), call.output());
      case Collective.Barrier _ -> 0;
    };
  }

  private static long larger(@Nullable CommData one, @Nullable CommData other) {
    return Math.max(one == null ? 0 : one.bytes(), other == null ? 0 : other.bytes());
  }
}
