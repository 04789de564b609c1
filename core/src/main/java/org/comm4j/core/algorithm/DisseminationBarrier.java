package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// Barrier by spreading the news: `⌈log₂ p⌉` rounds; in round `k` every rank tells rank `r + 2ᵏ` that
/// it is there and hears the same from rank `r - 2ᵏ`. Whoever speaks in round `k` has heard of `2ᵏ`
/// ranks, so after the last round everybody has heard of everybody. Cost per rank: `⌈log₂ p⌉` empty
/// messages.
///
///     p = 5, rank 0   round 0: tell 1, hear 4 | 1: tell 2, hear 3 | 2: tell 4, hear 1
///
/// D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization (1988).
record DisseminationBarrier() implements Algorithm {
  @Override
  public String name() {
    return "dissemination";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.BARRIER;
  }

  @Override
  public Order order() {
    return Order.NONE;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    int size = shape.size();
    return Schedule.of(
        Ranks.doublings(size),
        0,
        0,
        round ->
            Round.of(
                new Send(Ranks.at(rank, 1 << round, size), Shapes.input(0)),
                new Receive(Ranks.at(rank, -(1 << round), size), Shapes.output(0), Wire.VALUE)));
  }
}
