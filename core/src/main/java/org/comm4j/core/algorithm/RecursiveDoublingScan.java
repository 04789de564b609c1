package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.ReceiveReduceBefore;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Scan in `⌈log₂ p⌉` rounds: in round `k` every rank that has one sends its partial reduction, of the up
/// to `2ᵏ` ranks that end with itself, to rank `r + 2ᵏ`, which puts it in front of its own. Cost per
/// rank: up to `⌈log₂ p⌉` messages of `n` elements in the accumulation type. For small data on many
/// ranks. Order: a tree over neighbours, lower ranks in front.
///
///     rank 3   x3 | x2 x3 | x0 x1 x2 x3
///
/// The exclusive scan is the scan of the inputs after every rank has passed its own to its right: one
/// round more, and rank 0 is out of it.
///
/// W. D. Hillis, G. L. Steele: Data parallel algorithms (1986).
record RecursiveDoublingScan(CollectiveKind kind) implements Algorithm {
  @Override
  public String name() {
    return "recursive-doubling";
  }

  @Override
  public Order order() {
    return Order.FIXED;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    Slice input = Shapes.input(shape.count());
    if (kind == CollectiveKind.SCAN) {
      Slice[] partials = {memory.partials(shape.count()), memory.partials(shape.count())};
      return memory.plan(
          Phase.once(new Copy(input, partials[0])).then(scan(shape, rank, 0, partials)));
    }
    if (rank == 0) {
      return memory.plan(Phase.once(new Send(1, input)));
    }
    Slice[] partials = {memory.partials(shape.count()), memory.partials(shape.count())};
    List<Step> shift = new ArrayList<>();
    shift.add(new Receive(rank - 1, partials[0], Wire.VALUE));
    if (rank + 1 < shape.size()) {
      shift.add(new Send(rank + 1, input));
    }
    return memory.plan(Phase.once(shift).then(scan(shape, rank, 1, partials)));
  }

  /// @param first the first rank that takes part
  /// @param partials two buffers that take turns: what is sent must not change meanwhile; the first
  ///   one has this rank's own contribution
  private static Phase scan(Shape shape, int rank, int first, Slice[] partials) {
    int members = shape.size() - first;
    int position = rank - first;
    // Rounds with nothing to take come last: a rank near the first has all early.
    int takes = Ranks.doublings(position + 1);
    Phase doubling =
        Phase.of(
            Ranks.doublings(members),
            round -> {
              int distance = 1 << round;
              Slice before = partials[Math.min(round, takes) % 2];
              List<Step> steps = new ArrayList<>();
              if (position >= distance) {
                Slice after = partials[(round + 1) % 2];
                steps.add(new Copy(before, after));
                steps.add(new ReceiveReduceBefore(rank - distance, after, shape.accumulatorWire()));
              }
              if (position + distance < members) {
                steps.add(new Send(rank + distance, before));
              }
              return Phase.round(steps);
            });
    Slice complete = partials[takes % 2];
    return doubling.then(
        Phase.once(new Finish(complete, Shapes.output(shape.count()), position + 1)));
  }
}
