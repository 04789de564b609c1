package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step.Finish;

/// All-reduce of hosts: the ranks of each reduce to their leader over peer memory, the leaders
/// all-reduce by messages, their hosts' ranks read the result. Between hosts go as many messages as
/// if each had one rank, of partial results. For ranks of which some share memory. Order: within a host as
/// [HostGroup#reduce], between hosts as the leaders' algorithm has it; computed once, so all ranks
/// have the same bits.
///
///     hosts {0 1} {2 3}   0 reads 1, 2 reads 3 | 0↔2 | 1 reads 0, 3 reads 2
record HierarchicalAllReduce(Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "hierarchical";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.ALL_REDUCE;
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
    Slice total = shape.widened() && host.isLeader() ? memory.partials(shape.count()) : output;
    Phase between = Phase.NOTHING;
    if (host.isLeader()) {
      between =
          Leaders.reduce(host, total, memory)
              .then(Phase.once(new Finish(total, output, shape.size())));
    }
    int stages = host.reduceStages();
    Phase phase = host.reduce(0, total, memory).then(between).then(host.broadcast(stages, output));
    return memory.plan(stages + host.broadcastStages(shape.count()), phase);
  }
}
