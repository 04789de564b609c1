package org.comm4j.core.schedule;

import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.jspecify.annotations.Nullable;

/// The memory that a rank gives and gets in a call, without what an epilogue reads.
///
/// @param input null where it gives nothing
/// @param output null where it gets nothing
public record Ends(@Nullable CommData input, @Nullable CommData output) {
  /// What a call is about on one rank.
  ///
  /// @param rank of the communicator; what only the root gives or gets is there alone
  public static Ends of(Operation operation, int rank) {
    return switch (operation) {
      case Collective.AllReduce c -> new Ends(c.input(), c.output());
      case Collective.Reduce c -> new Ends(c.input(), c.root() == rank ? c.output() : null);
      case Collective.Broadcast c ->
          c.root() == rank ? new Ends(c.data(), null) : new Ends(null, c.data());
      case Collective.AllGather c -> new Ends(c.input(), c.output());
      case Collective.AllGatherV c -> new Ends(c.input(), c.output());
      case Collective.Gather c -> new Ends(c.input(), c.root() == rank ? c.output() : null);
      case Collective.GatherV c -> new Ends(c.input(), c.root() == rank ? c.output() : null);
      case Collective.Scatter c -> new Ends(c.root() == rank ? c.input() : null, c.output());
      case Collective.ScatterV c -> new Ends(c.root() == rank ? c.input() : null, c.output());
      case Collective.ReduceScatter c -> new Ends(c.input(), c.output());
      case Collective.ReduceScatterV c -> new Ends(c.input(), c.output());
      case Collective.AllToAll c -> new Ends(c.input(), c.output());
      case Collective.AllToAllV c -> new Ends(c.input(), c.output());
      case Collective.Scan c -> new Ends(c.input(), c.output());
      case Collective.ExclusiveScan c -> new Ends(c.input(), c.output());
      case PointToPoint.Send send -> new Ends(send.data(), null);
      case PointToPoint.Receive receive -> new Ends(null, receive.data());
      case PointToPoint.SendReceive both -> {
        CommData sent = both.output();
        CommData got = both.input();
        yield new Ends(sent, got);
      }
      case Collective.Barrier _, PointToPoint.Probe _ -> new Ends(null, null);
    };
  }
}
