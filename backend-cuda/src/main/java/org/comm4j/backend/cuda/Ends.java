package org.comm4j.backend.cuda;

import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.DeviceData;
import org.comm4j.api.Epilogue;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.jspecify.annotations.Nullable;

/// What this rank reads and writes.
record Ends(@Nullable CommData input, @Nullable CommData output) {
  static Ends of(Collective call, int me) {
    return switch (call) {
      case Collective.AllReduce c -> new Ends(c.input(), c.output());
      case Collective.Reduce c -> new Ends(c.input(), c.root() == me ? c.output() : null);
      case Collective.Broadcast c ->
          c.root() == me ? new Ends(c.data(), null) : new Ends(null, c.data());
      case Collective.AllGather c -> new Ends(c.input(), c.output());
      case Collective.AllGatherV c -> new Ends(c.input(), c.output());
      case Collective.Gather c -> new Ends(c.input(), c.root() == me ? c.output() : null);
      case Collective.GatherV c -> new Ends(c.input(), c.root() == me ? c.output() : null);
      case Collective.Scatter c -> new Ends(c.root() == me ? c.input() : null, c.output());
      case Collective.ScatterV c -> new Ends(c.root() == me ? c.input() : null, c.output());
      case Collective.ReduceScatter c -> new Ends(c.input(), c.output());
      case Collective.ReduceScatterV c -> new Ends(c.input(), c.output());
      case Collective.AllToAll c -> new Ends(c.input(), c.output());
      case Collective.AllToAllV c -> new Ends(c.input(), c.output());
      case Collective.Scan c -> new Ends(c.input(), c.output());
      case Collective.ExclusiveScan c -> new Ends(c.input(), c.output());
      case Collective.Barrier _ -> new Ends(null, null);
    };
  }

  /// {@return what of a device's memory this rank uses in an operation} Empty where it is all the
  /// host's.
  ///
  /// @throws IllegalArgumentException if some is the one and some the other
  static List<DeviceData> onDevices(Operation operation, int me) {
    Ends ends =
        switch (operation) {
          case Collective call -> of(call, me);
          case PointToPoint.Send send -> new Ends(send.data(), null);
          case PointToPoint.Receive receive -> new Ends(null, receive.data());
          case PointToPoint.SendReceive exchange -> {
            CommData sent = exchange.output();
            CommData got = exchange.input();
            yield new Ends(sent, got);
          }
          case PointToPoint.Probe _ -> new Ends(null, null);
        };
    Epilogue epilogue = operation instanceof Collective.WithEpilogue it ? it.epilogue() : null;
    CommData bias = epilogue == null ? null : epilogue.bias();
    CommData residual = epilogue == null ? null : epilogue.residual();
    List<CommData> all =
        Stream.of(ends.input, ends.output, bias, residual).filter(Objects::nonNull).toList();
    List<DeviceData> devices =
        all.stream().filter(DeviceData.class::isInstance).map(DeviceData.class::cast).toList();
    if (!devices.isEmpty() && devices.size() < all.size()) {
      throw new IllegalArgumentException(
          "%s: input %s, output %s%s (expected: all in a device's memory or all in the host's)"
              .formatted(
                  operation.label(),
                  ends.input,
                  ends.output,
                  epilogue == null ? "" : ", epilogue " + epilogue));
    }
    return devices;
  }
}
