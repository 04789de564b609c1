package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Wire;

/// A plan of messages among some ranks as a part of the plan of more.
///
/// It was made for values of one type that are not rounded in the end: here these are either the
/// data's, or partial reductions, which are only finished when all ranks are in them.
///
/// @param ranks who has part, in the order of the inner plan's ranks
/// @param place where the inner plan's slices are
/// @param wire what its messages carry
record Embedded(int[] ranks, UnaryOperator<Slice> place, Wire wire) {
  Phase phase(Schedule inner) {
    return Phase.of(inner.rounds(), index -> new Round(steps(inner.round(index).steps())));
  }

  private List<Step> steps(List<Step> inner) {
    List<Step> steps = new ArrayList<>(inner.size());
    for (Step step : inner) {
      switch (step) {
        case Step.Send s -> steps.add(new Step.Send(ranks[s.peer()], place.apply(s.slice())));
        case Step.Receive s ->
            steps.add(new Step.Receive(ranks[s.peer()], place.apply(s.to()), wire));
        case Step.ReceiveReduce s ->
            steps.add(new Step.ReceiveReduce(ranks[s.peer()], place.apply(s.to()), wire));
        case Step.ReceiveReduceBefore s ->
            steps.add(new Step.ReceiveReduceBefore(ranks[s.peer()], place.apply(s.to()), wire));
        case Step.ReceiveFold s ->
            steps.add(
                new Step.ReceiveFold(
                    ranks[s.peer()],
                    place.apply(s.own()),
                    place.apply(s.to()),
                    wire,
                    s.ownFirst()));
        case Step.Reduce s ->
            steps.add(new Step.Reduce(place.apply(s.from()), place.apply(s.to())));
        case Step.Copy s -> copy(s.from(), s.to(), steps);
        case Step.Finish s -> copy(s.from(), s.to(), steps);
        case Step.Peer _ -> throw new IllegalArgumentException("not a plan of messages: " + step);
      }
    }
    return steps;
  }

  private void copy(Slice from, Slice to, List<Step> steps) {
    Slice here = place.apply(from);
    Slice there = place.apply(to);
    if (!here.equals(there)) {
      steps.add(new Step.Copy(here, there));
    }
  }
}
