package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Hosts;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// All-gather of hosts: the ranks of each read one another's input over peer memory, the leaders pass
/// their hosts' on around a ring, their hosts' ranks read what came. Cost: `h - 1` rounds of messages
/// for `h` hosts; what comes from other hosts comes once to each host. For ranks of which some share
/// memory.
///
///     hosts {0 1} {2 3}   0↔1 and 2↔3 read | 0↔2 | 1 reads c2 c3 of 0, 3 reads c0 c1 of 2
record HierarchicalAllGather(Cut cut) implements Algorithm {
  @Override
  public String name() {
    return "hierarchical";
  }

  @Override
  public CollectiveKind kind() {
    return CollectiveKind.ALL_GATHER;
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
    Slice own =
        Shapes.output(shape.count() * shape.size()).part(rank * shape.count(), shape.count());
    Phase phase = Phase.once(new Copy(Shapes.input(shape.count()), own)).then(host.gather(0));
    if (host.isLeader()) {
      phase = phase.then(ring(host));
    }
    int stages = host.gatherStages();
    int most = 0;
    for (int each = 0; each < host.hosts().count(); each++) {
      int needed = 0;
      for (Slice run : others(shape, host.hosts(), each)) {
        needed += host.broadcastStages(run.count());
      }
      most = Math.max(most, needed);
    }
    int used = 0;
    for (Slice run : others(shape, host.hosts(), host.host())) {
      phase = phase.then(host.broadcast(stages + used, run));
      used += host.broadcastStages(run.count());
    }
    return new Memory(shape).plan(stages + most, phase.then(host.idle(stages + used, most - used)));
  }

  /// In each round the leaders pass on what they got in the one before, at first their own host's.
  private static Phase ring(HostGroup host) {
    int hosts = host.leaders().length;
    int here = host.host();
    int right = host.leaders()[Ranks.at(here, 1, hosts)];
    int left = host.leaders()[Ranks.at(here, -1, hosts)];
    return Phase.of(
        hosts - 1,
        round -> {
          List<Step> steps = new ArrayList<>();
          for (Slice run : of(host.shape(), host.hosts(), Ranks.at(here, -round, hosts))) {
            steps.add(new Send(right, run));
          }
          for (Slice run : of(host.shape(), host.hosts(), Ranks.at(here, -round - 1, hosts))) {
            steps.add(new Receive(left, run, Wire.VALUE));
          }
          return new Round(steps);
        });
  }

  /// The parts of the output that come from one host: one for each run of ranks that follow one
  /// another.
  private static List<Slice> of(Shape shape, Hosts hosts, int host) {
    return runs(shape, hosts, host, true);
  }

  /// The parts that come from all others.
  private static List<Slice> others(Shape shape, Hosts hosts, int host) {
    return runs(shape, hosts, host, false);
  }

  private static List<Slice> runs(Shape shape, Hosts hosts, int host, boolean from) {
    List<Slice> runs = new ArrayList<>();
    Slice output = Shapes.output(shape.count() * shape.size());
    int first = 0;
    for (int rank = 0; rank <= shape.size() && shape.count() > 0; rank++) {
      boolean isIn = rank < shape.size() && (hosts.of(rank) == host) == from;
      if (!isIn) {
        if (first < rank) {
          runs.add(output.part(first * shape.count(), (rank - first) * shape.count()));
        }
        first = rank + 1;
      }
    }
    return runs;
  }
}
