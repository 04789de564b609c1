package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.ReceiveReduceBefore;
import org.comm4j.core.schedule.Step.Reduce;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Scan along a chain: every rank gets the fold of all ranks before it, adds its own values and hands
/// the result to the next. The vector goes in pieces, so that all links of the chain work at once: rank
/// `r` receives piece `k` while it sends piece `k - 1`. Cost per rank: `n` elements in the
/// accumulation type, `k` messages for `k` pieces; the last rank is done after `p - 2 + k` of them. For
/// large data, and wherever the left fold is wanted.
///
///     rank 0   send a | send b | send c
///     rank 1            take a | take b, send a | take c, send b | send c
///
/// What a rank gets is already the exclusive scan; it finishes that, or what it hands on.
///
/// @param pieceBytes how large a piece is in the accumulation type; [#PIECE_BYTES] but in tests
record ChainScan(CollectiveKind kind, long pieceBytes) implements Algorithm {
  /// Large enough that a message's fixed cost does not count (some µs against 20 at 3 GB/s), small
  /// enough that a chain of ten fills with a tenth of some MiB.
  static final long PIECE_BYTES = 64 << 10;

  @Override
  public String name() {
    return "chain";
  }

  @Override
  public Order order() {
    return Order.LEFT_FOLD;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    Memory memory = new Memory(shape);
    Pieces pieces = Pieces.of(shape.count(), pieceBytes / shape.accumulatorBytes());
    Phase phase =
        rank == 0
            ? first(shape, pieces, memory)
            : kind == CollectiveKind.SCAN
                ? inclusive(shape, rank, pieces, memory)
                : exclusive(shape, rank, pieces, memory);
    return memory.plan(phase);
  }

  private Phase first(Shape shape, Pieces pieces, Memory memory) {
    Phase send =
        Phase.of(pieces.number(), piece -> Phase.round(new Send(1, pieces.in(Space.INPUT, piece))));
    return kind == CollectiveKind.SCAN ? send.then(Alone.finishOwn(shape, memory)) : send;
  }

  /// Own values, then what arrives goes in front of them. A piece is sent one round, and finished
  /// two rounds, after it came; buffers take turns.
  private static Phase inclusive(Shape shape, int rank, Pieces pieces, Memory memory) {
    Slice[] through = {memory.partials(pieces.largest()), memory.partials(pieces.largest())};
    int number = pieces.number();
    return Phase.of(
        number == 0 ? 0 : number + 2,
        round -> {
          List<Step> steps = new ArrayList<>();
          if (round >= 2) {
            Slice output = pieces.in(Space.OUTPUT, round - 2);
            steps.add(new Finish(through[round % 2].part(0, output.count()), output, rank + 1));
          }
          if (round < number) {
            Slice own = pieces.in(Space.INPUT, round);
            Slice sum = through[round % 2].part(0, own.count());
            steps.add(new Copy(own, sum));
            steps.add(new ReceiveReduceBefore(rank - 1, sum, wireFrom(shape, rank - 1)));
          }
          if (round >= 1 && round <= number && rank + 1 < shape.size()) {
            long count = pieces.in(Space.INPUT, round - 1).count();
            steps.add(new Send(rank + 1, through[(round - 1) % 2].part(0, count)));
          }
          return Phase.round(steps);
        });
  }

  /// What arrives is the result; what goes on is a copy of it with the own values behind it. The
  /// input is read before the output is written: in place they are the same.
  private static Phase exclusive(Shape shape, int rank, Pieces pieces, Memory memory) {
    boolean last = rank + 1 == shape.size();
    Slice[] before = {memory.partials(pieces.largest()), memory.partials(pieces.largest())};
    Slice next = memory.partials(last ? 0 : pieces.largest());
    int number = pieces.number();
    return Phase.of(
        number == 0 ? 0 : number + 1,
        round -> {
          List<Step> steps = new ArrayList<>();
          if (round >= 1) {
            Slice own = pieces.in(Space.INPUT, round - 1);
            Slice sum = before[(round - 1) % 2].part(0, own.count());
            if (!last) {
              Slice passed = next.part(0, own.count());
              steps.add(new Copy(sum, passed));
              steps.add(new Reduce(own, passed));
              steps.add(new Send(rank + 1, passed));
            }
            steps.add(new Finish(sum, own.in(Space.OUTPUT), rank));
          }
          if (round < number) {
            Slice sum = before[round % 2].part(0, pieces.in(Space.INPUT, round).count());
            steps.add(new Receive(rank - 1, sum, wireFrom(shape, rank - 1)));
          }
          return Phase.round(steps);
        });
  }

  private static Wire wireFrom(Shape shape, int rank) {
    return rank == 0 ? Wire.VALUE : shape.accumulatorWire();
  }
}
