package org.comm4j.api;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// An operation in which every rank of the communicator takes part. All ranks start the same
/// collectives in the same order with matching arguments; ranks that disagree get a
/// [MismatchedCallException].
///
/// In these records `size` is the number of ranks, `rank` the caller. Inputs are only read, on
/// failure too. After a failure outputs are undefined. An input and an output must not overlap
/// except in the in-place form that a record names. Counts may be 0.
public sealed interface Collective extends Operation {

  /// A collective that combines elements of all ranks.
  sealed interface Reducing extends Collective {
    /// {@return what this rank contributes}
    CommData input();

    /// {@return the operator}
    ReduceOp op();
  }

  /// A reduction that may have an [Epilogue].
  sealed interface WithEpilogue extends Reducing {
    /// {@return what this rank's result goes into}
    CommData output();

    /// {@return what is done to each element of the result where this rank stores it; null for
    /// nothing} Ranks may have different ones.
    @Nullable Epilogue epilogue();
  }

  /// A collective with one rank that all others send to or receive from.
  sealed interface Rooted extends Collective {
    /// {@return that rank, the same on all ranks}
    int root();
  }

  /// Every rank's output becomes the element-wise reduction of all inputs.
  ///
  /// @param input `count` elements, the same count on every rank
  /// @param output `count` elements; in place: the same memory as the input. Of the input's type;
  ///   with an epilogue it may be of another floating-point type
  /// @param op legal for the type; with an epilogue SUM or AVERAGE of a floating-point type
  /// @param epilogue what this rank does to each element of its result; null for nothing
  record AllReduce(CommData input, CommData output, ReduceOp op, @Nullable Epilogue epilogue)
      implements WithEpilogue {
    /// Checks what needs no group.
    public AllReduce {
      Checks.reduction(op, input);
      Checks.result(output, input, op, epilogue);
      Checks.sameCount("output", output, input);
      Checks.sameOrDisjoint(input, output);
    }

    /// Without an epilogue.
    ///
    /// @param input as above
    /// @param output as above
    /// @param op as above
    public AllReduce(CommData input, CommData output, ReduceOp op) {
      this(input, output, op, null);
    }

    @Override
    public String label() {
      return "allReduce";
    }
  }

  /// The root's output becomes the element-wise reduction of all inputs.
  ///
  /// @param input `count` elements, the same count on every rank
  /// @param output on the root `count` elements, in place: the same memory as the input; on other
  ///   ranks ignored, may be null
  /// @param op legal for the type
  /// @param root the root, the same on every rank
  record Reduce(CommData input, @Nullable CommData output, ReduceOp op, int root)
      implements Reducing, Rooted {
    /// Checks what needs no group.
    public Reduce {
      Checks.reduction(op, input);
    }

    @Override
    public String label() {
      return "reduce";
    }
  }

  /// Every rank's data becomes the root's.
  ///
  /// @param data read on the root, written elsewhere; the same count on every rank
  /// @param root the root, the same on every rank
  record Broadcast(CommData data, int root) implements Rooted {
    /// Checks what needs no group.
    public Broadcast {
      Objects.requireNonNull(data, "data");
    }

    @Override
    public String label() {
      return "broadcast";
    }
  }

  /// Every rank's output becomes all inputs one behind the other, rank 0's first.
  ///
  /// @param input `count` elements, the same count on every rank
  /// @param output `count × size` elements; in place: the input is this rank's part of the output
  record AllGather(CommData input, CommData output) implements Collective {
    /// Checks what needs no group.
    public AllGather {
      Objects.requireNonNull(input, "input");
      Checks.sameType("output", output, input);
    }

    @Override
    public String label() {
      return "allGather";
    }
  }

  /// As [AllGather], with a part of its own size and place for every rank.
  ///
  /// @param input as many elements as the partition gives this rank
  /// @param output at least the partition's extent; in place: the input is this rank's part of it
  /// @param parts where each rank's elements go; the same counts on all ranks, at places of each
  ///   rank's choice
  record AllGatherV(CommData input, CommData output, Partition parts) implements Collective {
    /// Checks what needs no group.
    public AllGatherV {
      Objects.requireNonNull(input, "input");
      Objects.requireNonNull(parts, "parts");
      Checks.sameType("output", output, input);
      Checks.holds("output", output, parts);
    }

    @Override
    public String label() {
      return "allGatherV";
    }
  }

  /// The root's output becomes all inputs one behind the other, rank 0's first.
  ///
  /// @param input `count` elements, the same count on every rank
  /// @param output on the root `count × size` elements, in place: the input is the root's part of
  ///   it; on other ranks ignored, may be null
  /// @param root the root, the same on every rank
  record Gather(CommData input, @Nullable CommData output, int root) implements Rooted {
    /// Checks what needs no group.
    public Gather {
      Objects.requireNonNull(input, "input");
    }

    @Override
    public String label() {
      return "gather";
    }
  }

  /// As [Gather], with a part of its own size and place for every rank.
  ///
  /// @param input on the root as many elements as the partition gives it; on other ranks as many as
  ///   the root's partition gives them, or the call is a mismatch
  /// @param output on the root at least the partition's extent; on other ranks ignored, may be null
  /// @param parts on the root where each rank's elements go; on other ranks ignored, may be null
  /// @param root the root, the same on every rank
  record GatherV(CommData input, @Nullable CommData output, @Nullable Partition parts, int root)
      implements Rooted {
    /// Checks what needs no group.
    public GatherV {
      Objects.requireNonNull(input, "input");
    }

    @Override
    public String label() {
      return "gatherV";
    }
  }

  /// Every rank's output becomes its part of the root's input, rank 0's first.
  ///
  /// @param input on the root `count × size` elements; on other ranks ignored, may be null
  /// @param output `count` elements, the same count on every rank; in place on the root: the root's
  ///   part of the input
  /// @param root the root, the same on every rank
  record Scatter(@Nullable CommData input, CommData output, int root) implements Rooted {
    /// Checks what needs no group.
    public Scatter {
      Objects.requireNonNull(output, "output");
    }

    @Override
    public String label() {
      return "scatter";
    }
  }

  /// As [Scatter], with a part of its own size and place for every rank.
  ///
  /// @param input on the root at least the partition's extent; on other ranks ignored, may be null
  /// @param parts on the root where each rank's elements are; on other ranks ignored, may be null
  /// @param output as many elements as the root's partition gives this rank, or the call is a
  ///   mismatch
  /// @param root the root, the same on every rank
  record ScatterV(@Nullable CommData input, @Nullable Partition parts, CommData output, int root)
      implements Rooted {
    /// Checks what needs no group.
    public ScatterV {
      Objects.requireNonNull(output, "output");
    }

    @Override
    public String label() {
      return "scatterV";
    }
  }

  /// The element-wise reduction of all inputs is cut into equal parts; every rank's output becomes
  /// its part.
  ///
  /// @param input `count × size` elements, the same count on every rank
  /// @param output `count` elements; in place: this rank's part of the input, the rest of which
  ///   stays as it was. Of the input's type; with an epilogue it may be of another floating-point
  ///   type
  /// @param op legal for the type; with an epilogue SUM or AVERAGE of a floating-point type
  /// @param epilogue what this rank does to each element of its part; null for nothing
  record ReduceScatter(CommData input, CommData output, ReduceOp op, @Nullable Epilogue epilogue)
      implements WithEpilogue {
    /// Checks what needs no group.
    public ReduceScatter {
      Checks.reduction(op, input);
      Checks.result(output, input, op, epilogue);
    }

    /// Without an epilogue.
    ///
    /// @param input as above
    /// @param output as above
    /// @param op as above
    public ReduceScatter(CommData input, CommData output, ReduceOp op) {
      this(input, output, op, null);
    }

    @Override
    public String label() {
      return "reduceScatter";
    }
  }

  /// As [ReduceScatter], with a part of its own size and place for every rank.
  ///
  /// @param input at least the partition's extent; elements outside every part are not read
  /// @param parts which elements belong to which rank; the same counts on all ranks, at places of
  ///   each rank's choice
  /// @param output as many elements as the partition gives this rank; in place: this rank's part of
  ///   the input. Of the input's type; with an epilogue it may be of another floating-point type
  /// @param op legal for the type; with an epilogue SUM or AVERAGE of a floating-point type
  /// @param epilogue what this rank does to each element of its part; null for nothing
  record ReduceScatterV(
      CommData input, Partition parts, CommData output, ReduceOp op, @Nullable Epilogue epilogue)
      implements WithEpilogue {
    /// Checks what needs no group.
    public ReduceScatterV {
      Checks.reduction(op, input);
      Checks.result(output, input, op, epilogue);
      Objects.requireNonNull(parts, "parts");
      Checks.holds("input", input, parts);
    }

    /// Without an epilogue.
    ///
    /// @param input as above
    /// @param parts as above
    /// @param output as above
    /// @param op as above
    public ReduceScatterV(CommData input, Partition parts, CommData output, ReduceOp op) {
      this(input, parts, output, op, null);
    }

    @Override
    public String label() {
      return "reduceScatterV";
    }
  }

  /// Part `i` of rank `j`'s input becomes part `j` of rank `i`'s output. There is no in-place form.
  ///
  /// @param input `count × size` elements, the same count on every rank
  /// @param output `count × size` elements
  record AllToAll(CommData input, CommData output) implements Collective {
    /// Checks what needs no group.
    public AllToAll {
      Objects.requireNonNull(input, "input");
      Checks.sameShape("output", output, input);
      Checks.disjoint(input, output);
    }

    @Override
    public String label() {
      return "allToAll";
    }
  }

  /// As [AllToAll], with parts of their own size and place.
  ///
  /// @param input at least the extent of `sendParts`
  /// @param sendParts which elements go to which rank
  /// @param output at least the extent of `receiveParts`
  /// @param receiveParts where each rank's elements go; a count that differs from what that rank
  ///   sends is a mismatch, for the own rank a wrong argument
  record AllToAllV(CommData input, Partition sendParts, CommData output, Partition receiveParts)
      implements Collective {
    /// Checks what needs no group.
    public AllToAllV {
      Objects.requireNonNull(input, "input");
      Objects.requireNonNull(sendParts, "sendParts");
      Objects.requireNonNull(receiveParts, "receiveParts");
      Checks.sameType("output", output, input);
      Checks.holds("input", input, sendParts);
      Checks.holds("output", output, receiveParts);
      Checks.disjoint(input, output);
    }

    @Override
    public String label() {
      return "allToAllV";
    }
  }

  /// Every rank's output becomes the element-wise reduction of the inputs of ranks `0..rank`.
  ///
  /// @param input `count` elements, the same count on every rank
  /// @param output `count` elements; in place: the same memory as the input
  /// @param op legal for the type; [ReduceOp#AVERAGE] divides by the number of inputs, `rank + 1`
  record Scan(CommData input, CommData output, ReduceOp op) implements Reducing {
    /// Checks what needs no group.
    public Scan {
      Checks.reduction(op, input);
      Checks.sameShape("output", output, input);
      Checks.sameOrDisjoint(input, output);
    }

    @Override
    public String label() {
      return "scan";
    }
  }

  /// Every rank's output becomes the element-wise reduction of the inputs of ranks `0..rank-1`.
  /// Rank 0's output is not written.
  ///
  /// @param input `count` elements, the same count on every rank
  /// @param output `count` elements; in place: the same memory as the input
  /// @param op legal for the type; [ReduceOp#AVERAGE] divides by the number of inputs, `rank`
  record ExclusiveScan(CommData input, CommData output, ReduceOp op) implements Reducing {
    /// Checks what needs no group.
    public ExclusiveScan {
      Checks.reduction(op, input);
      Checks.sameShape("output", output, input);
      Checks.sameOrDisjoint(input, output);
    }

    @Override
    public String label() {
      return "exclusiveScan";
    }
  }

  /// No rank leaves before every rank has entered.
  record Barrier() implements Collective {
    @Override
    public String label() {
      return "barrier";
    }
  }
}
