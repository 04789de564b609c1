package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step.Finish;

/// Reduce of hosts: the ranks of each reduce to their leader over peer memory, the leaders to the
/// root, which leads its host, by messages. Between hosts go as many messages as if each had one
/// rank, of partial results. For ranks of which some share memory. Order: as [HierarchicalAllReduce].
///
///     hosts {0 1} {2 3}, root 1   1 reads 0, 2 reads 3 | 2→1
record HierarchicalReduce(Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "hierarchical";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.REDUCE;
  }

  @Override
  public Order order() {
    return Order.FIXED;
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
    Memory memory = new Memory(shape);
    HostGroup host = HostGroup.of(shape, rank, cut);
    Slice output = Shapes.output(shape.count());
    boolean root = rank == shape.root();
    Slice total =
        root && !shape.widened() ? output : memory.partials(host.isLeader() ? shape.count() : 0);
    Phase phase = host.reduce(0, total, memory);
    if (host.isLeader()) {
      phase = phase.then(Leaders.reduce(host, total, memory));
    }
    if (root) {
      phase = phase.then(Phase.once(new Finish(total, output, shape.size())));
    }
    return memory.plan(host.reduceStages(), phase);
  }
}
