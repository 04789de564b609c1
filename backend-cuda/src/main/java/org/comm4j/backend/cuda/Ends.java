package org.comm4j.backend.cuda;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.DeviceData;
import org.comm4j.api.Operation;
import org.comm4j.api.Partition;
import org.comm4j.api.PointToPoint;
import org.jspecify.annotations.Nullable;

/// What this rank reads and writes.
///
/// @param written of the output, what the call gives this rank
record Ends(@Nullable CommData input, @Nullable CommData output, List<CommData> written) {
  static Ends of(Collective call, int me) {
    return switch (call) {
      case Collective.AllReduce c -> both(c.input(), c.output());
      case Collective.Reduce c -> both(c.input(), c.root() == me ? c.output() : null);
      case Collective.Broadcast c -> c.root() == me ? both(c.data(), null) : both(null, c.data());
      case Collective.AllGather c -> both(c.input(), c.output());
      case Collective.AllGatherV c -> parts(c.input(), c.output(), c.parts());
      case Collective.Gather c -> both(c.input(), c.root() == me ? c.output() : null);
      case Collective.GatherV c ->
          c.root() == me ? parts(c.input(), c.output(), c.parts()) : both(c.input(), null);
      case Collective.Scatter c -> both(c.root() == me ? c.input() : null, c.output());
      case Collective.ScatterV c -> both(c.root() == me ? c.input() : null, c.output());
      case Collective.ReduceScatter c -> both(c.input(), c.output());
      case Collective.ReduceScatterV c -> both(c.input(), c.output());
      case Collective.AllToAll c -> both(c.input(), c.output());
      case Collective.AllToAllV c -> parts(c.input(), c.output(), c.receiveParts());
      case Collective.Scan c -> both(c.input(), c.output());
      case Collective.ExclusiveScan c when me == 0 -> // nothing is written
          new Ends(c.input(), c.output(), List.of());
      case Collective.ExclusiveScan c -> both(c.input(), c.output());
      case Collective.Barrier _ -> both(null, null);
    };
  }

  private static Ends both(@Nullable CommData input, @Nullable CommData output) {
    return new Ends(input, output, output == null ? List.of() : List.of(output));
  }

  private static Ends parts(CommData input, @Nullable CommData output, @Nullable Partition parts) {
    CommData to = Objects.requireNonNull(output);
    List<CommData> written = new ArrayList<>();
    for (int each = 0; each < Objects.requireNonNull(parts).ranks(); each++) {
      if (parts.count(each) > 0) { // others may be anywhere
        written.add(to.slice(parts.displacement(each), parts.count(each)));
      }
    }
    return new Ends(input, to, written);
  }

  /// {@return what of a device's memory this rank uses in an operation} Empty where it is all the
  /// host's.
  ///
  /// @throws IllegalArgumentException if some is the one and some the other
  static List<DeviceData> onDevices(Operation operation, int me) {
    Ends ends =
        switch (operation) {
          case Collective call -> of(call, me);
          case PointToPoint.Send send -> both(send.data(), null);
          case PointToPoint.Receive receive -> both(null, receive.data());
          case PointToPoint.SendReceive exchange -> {
            CommData sent = exchange.output();
            CommData got = exchange.input();
            yield both(sent, got);
          }
          case PointToPoint.Probe _ -> both(null, null);
        };
    List<CommData> all = Stream.of(ends.input, ends.output).filter(Objects::nonNull).toList();
    List<DeviceData> devices =
        all.stream().filter(DeviceData.class::isInstance).map(DeviceData.class::cast).toList();
    if (!devices.isEmpty() && devices.size() < all.size()) {
      throw new IllegalArgumentException(
          "%s: input %s, output %s (expected: both in a device's memory or both in the host's)"
              .formatted(operation.label(), ends.input, ends.output));
    }
    return devices;
  }
}
