package org.comm4j.api;

import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.Collective.AllGather;
import org.comm4j.api.Collective.AllGatherV;
import org.comm4j.api.Collective.AllReduce;
import org.comm4j.api.Collective.AllToAll;
import org.comm4j.api.Collective.AllToAllV;
import org.comm4j.api.Collective.Barrier;
import org.comm4j.api.Collective.Broadcast;
import org.comm4j.api.Collective.ExclusiveScan;
import org.comm4j.api.Collective.Gather;
import org.comm4j.api.Collective.GatherV;
import org.comm4j.api.Collective.Reduce;
import org.comm4j.api.Collective.ReduceScatter;
import org.comm4j.api.Collective.ReduceScatterV;
import org.comm4j.api.Collective.Rooted;
import org.comm4j.api.Collective.Scan;
import org.comm4j.api.Collective.Scatter;
import org.comm4j.api.Collective.ScatterV;
import org.comm4j.api.DataType.Kind;
import org.comm4j.api.PointToPoint.Probe;
import org.comm4j.api.PointToPoint.Receive;
import org.comm4j.api.PointToPoint.Send;
import org.comm4j.api.PointToPoint.SendReceive;
import org.jspecify.annotations.Nullable;

/// Every check of an operation's arguments: the first half needs no group and runs in the records'
/// constructors, [#group] holds a record against a rank and a size, and checks what only the root
/// gives. All of them run before any peer is involved, alike on every backend.
final class Checks {
  private Checks() {}

  static void reduction(ReduceOp op, CommData input) {
    Objects.requireNonNull(input, "input");
    Objects.requireNonNull(op, "op");
    if (!op.supports(input.type())) {
      throw new IllegalArgumentException(
          "op: %s is not defined for %s (expected: %s)"
              .formatted(op.name(), input.type(), legal(input.type())));
    }
    if (op instanceof ReduceOp.UserDefined && input instanceof DeviceData) {
      throw new IllegalArgumentException(
          "op: user-defined '%s' on %s (expected: data in host memory)"
              .formatted(op.name(), input));
    }
  }

  private static String legal(DataType type) {
    return Stream.of(ReduceOp.Predefined.values())
        .filter(op -> op.supports(type))
        .map(ReduceOp.Predefined::name)
        .collect(Collectors.joining(", "));
  }

  static void sameType(String what, CommData data, CommData other) {
    Objects.requireNonNull(data, what);
    if (data.type() != other.type()) {
      throw new IllegalArgumentException(
          "%s: %s (expected: %s, the type of the other buffer)"
              .formatted(what, data, other.type()));
    }
  }

  static void sameShape(String what, CommData data, CommData other) {
    sameType(what, data, other);
    sameCount(what, data, other);
  }

  static void sameCount(String what, CommData data, CommData other) {
    if (data.count() != other.count()) {
      throw new IllegalArgumentException(
          "%s: %s (expected: %d elements, as many as the input)"
              .formatted(what, data, other.count()));
    }
  }

  /// Checks what the result of a reduction goes into.
  static void result(CommData output, CommData input, ReduceOp op, @Nullable Epilogue epilogue) {
    Objects.requireNonNull(output, "output");
    if (epilogue == null) {
      sameType("output", output, input);
      return;
    }
    boolean isSum = op == ReduceOp.Predefined.SUM || op == ReduceOp.Predefined.AVERAGE;
    if (!isSum || input.type().kind() != Kind.FLOAT) {
      throw new IllegalArgumentException(
          "epilogue: %s of %s by %s (expected: none, or SUM or AVERAGE of a floating-point type)"
              .formatted(epilogue, input, op.name()));
    }
    if (output.type().kind() != Kind.FLOAT) {
      throw new IllegalArgumentException(
          "output: %s (expected: %s, or with an epilogue another floating-point type)"
              .formatted(output, input.type()));
    }
    CommData bias = epilogue.bias();
    if (bias != null) {
      ofOutput("bias", bias, output);
      if (overlap(bias, output)) {
        throw overlapping(bias, output, "the bias is read for elements that come later too");
      }
    }
    CommData residual = epilogue.residual();
    if (residual != null) {
      ofOutput("residual", residual, output);
      if (residual.count() != output.count()) {
        throw new IllegalArgumentException(
            "residual: %s (expected: %d elements, as many as the output)"
                .formatted(residual, output.count()));
      }
      if (overlap(residual, output) && !same(residual, output)) {
        throw overlapping(
            residual, output, "or as residual exactly the output, to which the call adds");
      }
    }
  }

  private static void ofOutput(String what, CommData data, CommData output) {
    if (data.type() != output.type()) {
      throw new IllegalArgumentException(
          "%s: %s (expected: %s, the type of the output)".formatted(what, data, output.type()));
    }
  }

  static void holds(String what, CommData data, Partition parts) {
    if (data.count() < parts.extent()) {
      throw new IllegalArgumentException(
          "%s: %s (expected: at least %d elements, the extent of %s)"
              .formatted(what, data, parts.extent(), parts));
    }
  }

  static void disjoint(CommData data, CommData other) {
    if (overlap(data, other)) {
      throw overlapping(data, other, "this operation has no in-place form");
    }
  }

  static void sameOrDisjoint(CommData input, CommData output) {
    if (overlap(input, output) && !same(input, output)) {
      throw overlapping(input, output, "in place they must be exactly the same memory");
    }
  }

  /// Checks `op` for the caller with this rank in a group of this size.
  ///
  /// @throws IllegalArgumentException saying what is wrong and what was expected
  static void group(Operation op, int rank, int size) {
    switch (op) {
      case PointToPoint message -> message(message, size);
      case Collective collective -> collective(collective, rank, size);
    }
  }

  private static void collective(Collective op, int rank, int size) {
    if (op instanceof Rooted rooted) {
      peer("root", rooted.root(), size);
    }
    switch (op) {
      case AllReduce o -> written("output", o.output());
      case Reduce o -> {
        if (rank == o.root()) {
          CommData output = written("output", onRoot("output", o.output(), rank));
          sameShape("output", output, o.input());
          sameOrDisjoint(o.input(), output);
        }
      }
      case Broadcast o -> {
        if (rank != o.root()) {
          written("data", o.data());
        }
      }
      case AllGather o -> {
        written("output", o.output());
        times("output", o.output(), o.input(), size);
        ownPart("output", o.output(), o.input(), rank * o.input().count());
      }
      case AllGatherV o -> {
        written("output", o.output());
        parts("parts", o.parts(), size);
        partOf("input", o.input(), o.parts(), rank);
        ownPart("output", o.output(), o.input(), o.parts().displacement(rank));
      }
      case Gather o -> {
        if (rank == o.root()) {
          CommData output = written("output", onRoot("output", o.output(), rank));
          sameType("output", output, o.input());
          times("output", output, o.input(), size);
          ownPart("output", output, o.input(), rank * o.input().count());
        }
      }
      case GatherV o -> {
        if (rank == o.root()) {
          CommData output = written("output", onRoot("output", o.output(), rank));
          Partition parts = parts("parts", onRoot("parts", o.parts(), rank), size);
          sameType("output", output, o.input());
          holds("output", output, parts);
          partOf("input", o.input(), parts, rank);
          ownPart("output", output, o.input(), parts.displacement(rank));
        }
      }
      case Scatter o -> {
        written("output", o.output());
        if (rank == o.root()) {
          CommData input = onRoot("input", o.input(), rank);
          sameType("input", input, o.output());
          times("input", input, o.output(), size);
          ownPart("input", input, o.output(), rank * o.output().count());
        }
      }
      case ScatterV o -> {
        written("output", o.output());
        if (rank == o.root()) {
          CommData input = onRoot("input", o.input(), rank);
          Partition parts = parts("parts", onRoot("parts", o.parts(), rank), size);
          sameType("input", input, o.output());
          holds("input", input, parts);
          partOf("output", o.output(), parts, rank);
          ownPart("input", input, o.output(), parts.displacement(rank));
        }
      }
      case ReduceScatter o -> {
        written("output", o.output());
        times("input", o.input(), o.output(), size);
        ownPart("input", o.input(), o.output(), rank * o.output().count());
      }
      case ReduceScatterV o -> {
        written("output", o.output());
        parts("parts", o.parts(), size);
        partOf("output", o.output(), o.parts(), rank);
        ownPart("input", o.input(), o.output(), o.parts().displacement(rank));
      }
      case AllToAll o -> {
        written("output", o.output());
        if (o.input().count() % size != 0) {
          throw new IllegalArgumentException(
              "input: %s (expected: a multiple of %d elements, one part for each rank)"
                  .formatted(o.input(), size));
        }
      }
      case AllToAllV o -> {
        written("output", o.output());
        parts("sendParts", o.sendParts(), size);
        parts("receiveParts", o.receiveParts(), size);
        if (o.receiveParts().count(rank) != o.sendParts().count(rank)) {
          throw new IllegalArgumentException(
              "receiveParts: rank %d expects %d elements from itself (expected: %d, what it sends to itself)"
                  .formatted(rank, o.receiveParts().count(rank), o.sendParts().count(rank)));
        }
      }
      case Scan o -> written("output", o.output());
      case ExclusiveScan o -> written("output", o.output());
      case Barrier _ -> {}
    }
  }

  private static void message(PointToPoint op, int size) {
    switch (op) {
      case Send o -> {
        peer("destination", o.destination(), size);
        tag("tag", o.tag());
      }
      case Receive o -> {
        written("data", o.data());
        source(o.source(), size);
        anyTag("tag", o.tag());
      }
      case SendReceive o -> {
        written("input", o.input());
        peer("destination", o.destination(), size);
        tag("sendTag", o.sendTag());
        source(o.source(), size);
        anyTag("receiveTag", o.receiveTag());
      }
      case Probe o -> {
        source(o.source(), size);
        anyTag("tag", o.tag());
      }
    }
  }

  private static void peer(String what, int peer, int size) {
    checkPeer(what, peer, size, "");
  }

  private static void source(int source, int size) {
    if (source != Communicator.ANY_SOURCE) {
      checkPeer("source", source, size, " or ANY_SOURCE");
    }
  }

  /// Checks that one of so many ranks is meant.
  static void checkRank(int rank, int ranks) {
    if (rank < 0 || rank >= ranks) {
      throw new IllegalArgumentException(
          "rank: %d (expected: 0..%d, there are %d)".formatted(rank, ranks - 1, ranks));
    }
  }

  private static void checkPeer(String what, int peer, int size, String or) {
    if (peer < 0 || peer >= size) {
      throw new IllegalArgumentException(
          "%s: %d (expected: 0..%d%s, the communicator has %d ranks)"
              .formatted(what, peer, size - 1, or, size));
    }
  }

  private static void tag(String what, int tag) {
    checkTag(what, tag, "");
  }

  private static void anyTag(String what, int tag) {
    if (tag != Communicator.ANY_TAG) {
      checkTag(what, tag, " or ANY_TAG");
    }
  }

  private static void checkTag(String what, int tag, String or) {
    if (tag < 0 || tag > Communicator.MAX_TAG) {
      throw new IllegalArgumentException(
          "%s: %d (expected: 0..%d%s)".formatted(what, tag, Communicator.MAX_TAG, or));
    }
  }

  private static <T> T onRoot(String what, @Nullable T value, int root) {
    if (value == null) {
      throw new IllegalArgumentException(
          "%s: null (expected: given on rank %d, which is the root)".formatted(what, root));
    }
    return value;
  }

  static CommData written(String what, CommData data) {
    if (data instanceof HostData host && host.segment().isReadOnly()) {
      throw new IllegalArgumentException(
          "%s: %s is read-only (expected: memory that can be written)".formatted(what, data));
    }
    return data;
  }

  private static void times(String what, CommData whole, CommData part, int size) {
    if (whole.count() % size != 0 || whole.count() / size != part.count()) {
      throw new IllegalArgumentException(
          "%s: %s (expected: %d × %d elements, one part for each of the %d ranks)"
              .formatted(what, whole, size, part.count(), size));
    }
  }

  private static Partition parts(String what, Partition parts, int size) {
    if (parts.ranks() != size) {
      throw new IllegalArgumentException(
          "%s: for %d ranks (expected: %d, one part for each rank of the communicator)"
              .formatted(what, parts.ranks(), size));
    }
    return parts;
  }

  private static void partOf(String what, CommData data, Partition parts, int rank) {
    if (data.count() != parts.count(rank)) {
      throw new IllegalArgumentException(
          "%s: %s (expected: %d elements, rank %d's part)"
              .formatted(what, data, parts.count(rank), rank));
    }
  }

  /// Refuses a part that overlaps the whole anywhere but at its own place.
  private static void ownPart(String what, CommData whole, CommData part, long from) {
    if (overlap(whole, part) && !same(whole.slice(from, part.count()), part)) {
      throw overlapping(
          part, whole, "in place the smaller buffer must be this rank's own part of the " + what);
    }
  }

  private static boolean overlap(CommData a, CommData b) {
    return switch (a) {
      case HostData host -> b instanceof HostData other && host.overlaps(other);
      case DeviceData device ->
          b instanceof DeviceData other
              && device.device() == other.device()
              && Ranges.overlap(device.address(), device.bytes(), other.address(), other.bytes());
    };
  }

  private static boolean same(CommData a, CommData b) {
    return switch (a) {
      case HostData host -> b instanceof HostData other && host.isSameMemory(other);
      case DeviceData device ->
          b instanceof DeviceData other
              && device.device() == other.device()
              && device.address() == other.address()
              && device.bytes() == other.bytes();
    };
  }

  private static IllegalArgumentException overlapping(CommData a, CommData b, String rule) {
    return new IllegalArgumentException(
        "buffers %s and %s overlap (expected: separate memory; %s)".formatted(a, b, rule));
  }
}
