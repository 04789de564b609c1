package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.AwaitPeer;
import org.comm4j.core.schedule.Step.Done;
import org.comm4j.core.schedule.Step.Publish;

/// Barrier over peer memory: everybody publishes nothing, then looks at everybody else until all
/// have. Cost per rank: one store, `p - 1` loads; one trip of a cache line.
record PullBarrier() implements Algorithm {
  @Override
  public String name() {
    return "pull";
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
  public boolean usesPeerMemory() {
    return true;
  }

  @Override
  public boolean supports(Shape shape) {
    return Shapes.fits(this, shape) && Cut.windowHolds(shape, 0);
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    List<Step> steps = new ArrayList<>();
    steps.add(new Publish(0, Shapes.input(0)));
    for (int distance = 1; distance < shape.size(); distance++) {
      steps.add(new AwaitPeer(Ranks.at(rank, distance, shape.size()), 0));
    }
    steps.add(new Done(0));
    return Schedule.ofPeerMemory(1, 0, 0, 1, _ -> new Round(steps));
  }
}
