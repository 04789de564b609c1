package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;

/// Barrier of hosts: each leader looks whether its host's ranks have come, the leaders tell each
/// other by messages, and their hosts' ranks look at them. For ranks of which some share memory.
///
///     hosts {0 1} {2 3}   0 looks at 1, 2 at 3 | 0↔2 | 1 looks at 0, 3 at 2
record HierarchicalBarrier(Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "hierarchical";
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
  public boolean usesMessages() {
    return true;
  }

  @Override
  public boolean supports(Shape shape) {
    return Shapes.fits(this, shape) && HostGroup.isIn(shape);
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    HostGroup host = HostGroup.of(shape, rank, cut);
    Phase between = host.isLeader() ? Leaders.move(host) : Phase.NOTHING;
    return new Memory(shape).plan(2, host.arrive(0).then(between).then(host.leave(1)));
  }
}
