package org.comm4j.tck;

import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.PersistentRequest;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.comm4j.api.Request;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.tck.CallPlan.Group;
import org.comm4j.tck.CallPlan.Mode;
import org.comm4j.tck.CallPlan.Planned;
import org.comm4j.tck.CollectiveCase.Bits;

/// Makes the calls of a [CallPlan] on live ranks and holds each against the [Oracle].
final class PlannedCalls implements AutoCloseable {
  private static final int MOST_IN_FLIGHT = 4;

  /// Of so many calls on the host's memory one is made where there is a device's.
  private static final int HOST_CALLS_ON_DEVICES = 8;

  private final LiveRank rank;
  private final Map<Group, Communicator> groups = new EnumMap<>(Group.class);
  private final List<Flight> flights = new ArrayList<>();
  private final Random order;
  private final List<CollectiveCase> equal = new ArrayList<>();
  private final List<Long> digests = new ArrayList<>();

  /// A call that was started.
  private record Flight(Request request, CaseMemory memory, Bits bits) {}

  PlannedCalls(LiveRank rank) {
    this.rank = rank;
    this.order = new Random(rank.seed() + rank.rank()); // each rank awaits in an order of its own
    groups.put(Group.WORLD, rank.comm());
  }

  /// Runs all calls of one collective.
  static void run(LiveRank rank, CollectiveKind kind) {
    List<Planned> calls = CallPlan.of(kind, rank.seed(), rank.comm().capabilities());
    try (PlannedCalls running = new PlannedCalls(rank)) {
      for (Planned call : calls) {
        if (running.isWorthwhile(call)) {
          running.run(call);
        }
      }
      running.finish();
    }
  }

  /// Backends of devices move the host's data by what other backends are tested for.
  private boolean isWorthwhile(Planned call) {
    return !rank.can(Capability.DEVICE_MEMORY)
        || isOnDevice(call.place())
        || call.seed() % HOST_CALLS_ON_DEVICES == 0;
  }

  private Communicator group(Group group) {
    Communicator known = groups.get(group);
    if (known == null) {
      known =
          group == Group.SPLIT
              ? rank.comm().split(rank.rank() % 2, -rank.rank()).orElseThrow()
              : rank.comm().duplicate();
      groups.put(group, known);
    }
    return known;
  }

  private void run(Planned call) {
    Communicator comm = group(call.group());
    CollectiveCase of = call.in(comm.size(), rank.reduction());
    Bits bits = of.bits(rank.reduction());
    if (call.mode() == Mode.STARTED) {
      if (flights.size() >= MOST_IN_FLIGHT) {
        land();
      }
      CaseMemory memory = memory(call, of, comm);
      flights.add(new Flight(comm.start(memory.call()), memory, bits));
      return;
    }
    try (CaseMemory memory = memory(call, of, comm)) {
      if (call.mode() == Mode.PREPARED) {
        PersistentRequest prepared = comm.prepare(memory.call());
        prepared.run();
        memory.check(bits);
        again(memory, of, bits, prepared::run);
      } else {
        comm.run(memory.call());
        memory.check(bits);
        if (bits == Bits.NEAR) {
          again(memory, of, bits, () -> comm.run(memory.call()));
        }
      }
      if (call.group() != Group.SPLIT && of.kind() == CollectiveKind.ALL_REDUCE) {
        equal.add(of);
        digests.add(memory.digest());
      }
    }
  }

  private static void again(CaseMemory memory, CollectiveCase of, Bits bits, Runnable call) {
    long first = memory.digest();
    memory.fill();
    call.run();
    memory.check(bits);
    Expect.that("B2", memory.digest() == first, "%s gave other bits the second time", of);
  }

  private CaseMemory memory(Planned call, CollectiveCase of, Communicator comm) {
    CaseMemory.Place[] places = CaseMemory.Place.values();
    boolean onDevice = isOnDevice(call.place());
    boolean mixed = call.seed() % 3 == 0 && !onDevice;
    CaseMemory.Place place =
        mixed ? places[(call.place().ordinal() + rank.rank()) % places.length] : call.place();
    if (isOnDevice(place) && (mixed || of.op() instanceof ReduceOp.UserDefined)) {
      place = CaseMemory.Place.NATIVE; // a device's memory doesn't mix with the host's
    }
    if (place == CaseMemory.Place.CONFINED && call.mode() == Mode.STARTED) {
      place = CaseMemory.Place.NATIVE;
    }
    return new CaseMemory(of.expected(), comm.rank(), place, comm::allocate);
  }

  private boolean isOnDevice(CaseMemory.Place place) {
    return place == CaseMemory.Place.ALLOCATED && rank.can(Capability.DEVICE_MEMORY);
  }

  private void land() {
    Collections.shuffle(flights, order);
    for (Flight flight : flights) {
      flight.request().await();
      flight.memory().check(flight.bits());
      flight.memory().close();
    }
    flights.clear();
  }

  /// Ends everything, and compares what must be equal on all ranks.
  private void finish() {
    land();
    Communicator comm = rank.comm();
    if (rank.reduction() != Reduction.FAST || digests.isEmpty()) {
      return;
    }
    long[] mine = digests.stream().mapToLong(Long::longValue).toArray();
    long[] all = new long[mine.length * comm.size()];
    comm.run(new Collective.AllGather(CommData.of(mine), CommData.of(all)));
    for (int i = 0; i < all.length; i++) {
      int call = i % mine.length;
      Expect.that(
          "B1",
          all[i] == mine[call],
          "%s has other bits on rank %d than on rank %d",
          equal.get(call),
          i / mine.length,
          comm.rank());
    }
  }

  @Override
  public void close() {
    groups.forEach((group, comm) -> {
      if (group != Group.WORLD) {
        Objects.requireNonNull(comm).close();
      }
    });
  }
}
