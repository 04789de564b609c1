package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;

/// Broadcast of hosts: the root, which leads its host, to the leaders of the others by messages; the
/// ranks of each host read it from their leader over peer memory. For ranks of which some share
/// memory.
///
///     hosts {0 1} {2 3}, root 1   1→2 | 0 reads 1, 3 reads 2
record HierarchicalBroadcast(Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "hierarchical";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.BROADCAST;
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
    Slice data = rank == shape.root() ? Shapes.input(shape.count()) : Shapes.output(shape.count());
    Phase between = host.isLeader() ? Leaders.move(host) : Phase.NOTHING;
    return new Memory(shape)
        .plan(host.broadcastStages(shape.count()), between.then(host.broadcast(0, data)));
  }
}
