package org.comm4j.tck;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Capability;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Topology;
import org.comm4j.api.UnsupportedException;

/// Groups: who is in them, and how new ones are made.
final class GroupChecks {
  private GroupChecks() {}

  @Rule("G1")
  static void communicator_identity_isConsistent(LiveRank r) {
    Communicator comm = r.comm();
    Expect.that("G1", r.size() >= 1, "size() is %d", r.size());
    Expect.that("G1", r.rank() >= 0 && r.rank() < r.size(), "rank() is %d", r.rank());
    int[] all = new int[r.size()];
    comm.allGather(new int[] {r.rank()}, all);
    Expect.that(
        "G1",
        Arrays.equals(all, IntStream.range(0, r.size()).toArray()),
        "the ranks are %s",
        Arrays.toString(all));
    sameEverywhere(comm, "G1", "name()", comm.name());
    sameEverywhere(comm, "G1", "backend()", comm.backend());
    sameEverywhere(
        comm,
        "G1",
        "capabilities()",
        new java.util.TreeSet<>(comm.capabilities().supported()).toString());
    Expect.that("G1", !comm.name().isBlank(), "name() is blank");
  }

  private static void sameEverywhere(Communicator comm, String rule, String what, String mine) {
    byte[] bytes = mine.getBytes(UTF_8);
    int[] lengths = new int[comm.size()];
    comm.allGather(new int[] {bytes.length}, lengths);
    long[] counts = Arrays.stream(lengths).asLongStream().toArray();
    byte[] all = new byte[Arrays.stream(lengths).sum()];
    comm.allGatherV(CommData.of(bytes), CommData.of(all), counts);
    int at = 0;
    for (int rank = 0; rank < comm.size(); rank++) {
      String theirs = new String(all, at, lengths[rank], UTF_8);
      Expect.equal(rule, what + " of rank " + rank, theirs, mine);
      at += lengths[rank];
    }
  }

  @Rule({"G2", "G6"})
  @Needs(capabilities = Capability.SPLIT)
  static void split_anyColorsAndKeys_ordersByKey(LiveRank r) {
    SplittableRandom random = r.random();
    for (int round = 0; round < 6; round++) {
      int colors = 1 + random.nextInt(3);
      int[] color = random.ints(r.size(), 0, colors).toArray();
      int[] key = random.ints(r.size(), -2, 3).toArray();
      if (round == 0) {
        Arrays.fill(color, Integer.MAX_VALUE);
        key[0] = Integer.MAX_VALUE;
        key[r.size() - 1] = Integer.MIN_VALUE;
      }
      int me = r.rank();
      List<Integer> members =
          IntStream.range(0, r.size())
              .filter(rank -> color[rank] == color[me])
              .boxed()
              .sorted(Comparator.<Integer>comparingInt(rank -> key[rank]).thenComparing(x -> x))
              .toList();
      try (Communicator part = r.comm().split(color[me], key[me]).orElseThrow()) {
        Expect.equal("G2", "size", part.size(), members.size());
        Expect.equal("G2", "rank", part.rank(), members.indexOf(me));
        int[] all = new int[part.size()];
        part.allGather(new int[] {me}, all);
        Expect.equal("G2", "members", Arrays.stream(all).boxed().toList(), members);
        try (Communicator again = part.split(part.rank() % 2, 0).orElseThrow()) {
          Expect.equal("G6", "size", again.size(), (part.size() + 1 - part.rank() % 2) / 2);
          LiveRank.works("G6", again);
        }
        LiveRank.works("G6", part);
      }
    }
    LiveRank.works("G2", r.comm());
  }

  @Rule("G3")
  @Needs(capabilities = Capability.SPLIT)
  static void split_noColor_isEmptyAndNothingElse(LiveRank r) {
    boolean out = r.rank() == r.size() - 1;
    Optional<Communicator> part = r.comm().split(out ? Communicator.NO_COLOR : 3, 0);
    Expect.equal("G3", "whether it is empty", part.isEmpty(), out);
    part.ifPresent(comm -> {
      Expect.equal("G3", "size", comm.size(), r.size() - 1);
      LiveRank.works("G3", comm);
      comm.close();
    });
    Optional<Communicator> nobody = r.comm().split(Communicator.NO_COLOR, 0);
    Expect.that("G3", nobody.isEmpty(), "nobody's communicator is not empty");
    for (int color : new int[] {-2, Integer.MIN_VALUE}) {
      var refused =
          Expect.thrown(
              "G3",
              IllegalArgumentException.class,
              "split(" + color + ")",
              () -> r.comm().split(color, 0));
      Expect.says("A2", refused, Integer.toString(color), "expected");
    }
    LiveRank.works("G3", r.comm());
  }

  @Rule({"G4", "L5"})
  @Needs(capabilities = Capability.SPLIT)
  static void duplicate_sameRanks_isIndependent(LiveRank r) {
    Communicator comm = r.comm();
    Communicator copy = comm.duplicate();
    Expect.equal("G4", "rank", copy.rank(), r.rank());
    Expect.equal("G4", "size", copy.size(), r.size());
    Expect.that("G4", !copy.name().equals(comm.name()), "both are named %s", copy.name());
    // calls on both in flight, started in different orders on different ranks
    long[] one = {1};
    long[] two = {2};
    var onOne =
        new org.comm4j.api.Collective.AllReduce(CommData.of(one), CommData.of(one), ReduceOp.SUM);
    var onTwo =
        new org.comm4j.api.Collective.AllReduce(CommData.of(two), CommData.of(two), ReduceOp.SUM);
    boolean first = r.rank() % 2 == 0;
    var a = first ? comm.start(onOne) : copy.start(onTwo);
    var b = first ? copy.start(onTwo) : comm.start(onOne);
    b.await();
    a.await();
    Expect.equal("G4", "the sum on the first", one[0], (long) r.size());
    Expect.equal("G4", "the sum on the copy", two[0], 2L * r.size());
    try (Communicator copyOfCopy = copy.duplicate()) {
      copy.close();
      LiveRank.works("L5", copyOfCopy);
    }
    LiveRank.works("G4", comm);
  }

  @Rule({"G5", "G7"})
  @Needs(capabilities = Capability.SPLIT)
  static void splitLocal_topology_isItsHost(LiveRank r) {
    Topology.Host here = r.comm().topology().hostOf(r.rank());
    try (Communicator local = r.comm().splitLocal()) {
      int[] all = new int[local.size()];
      local.allGather(new int[] {r.rank()}, all);
      Expect.equal("G5", "ranks", Arrays.stream(all).boxed().toList(), here.ranks());
      LiveRank.works("G5", local);
    }
  }

  @Rule("G7")
  static void topology_hosts_haveEveryRankOnce(LiveRank r) {
    Topology topology = r.comm().topology();
    List<Integer> ranks =
        topology.hosts().stream().flatMap(host -> host.ranks().stream()).sorted().toList();
    Expect.equal("G7", "all ranks", ranks, IntStream.range(0, r.size()).boxed().toList());
    int before = -1;
    for (Topology.Host host : topology.hosts()) {
      Expect.equal("G7", "ranks", host.ranks(), host.ranks().stream().sorted().toList());
      Expect.equal("G7", "leader", host.leader(), host.ranks().getFirst());
      Expect.that("G7", host.leader() > before, "hosts are not in order: %s", topology);
      before = host.leader();
    }
    sameEverywhere(r.comm(), "G7", "topology()", topology.hosts().toString());
  }

  @Rule("G8")
  static void unsupported_capability_isSaidAndRefused(LiveRank r) {
    Communicator comm = r.comm();
    Set<Capability> supported = comm.capabilities().supported();
    if (!supported.contains(Capability.DEVICE_MEMORY)) {
      DeviceData device = CommData.ofUnsafeDeviceAddress(DataType.FLOAT32, 64, 4, 0);
      var refused =
          Expect.thrown(
              "G8",
              UnsupportedException.class,
              "a call on a device's memory",
              () -> comm.allReduce(device, ReduceOp.SUM));
      Expect.says("G8", refused, comm.backend());
      Expect.thrown(
          "G8",
          UnsupportedException.class,
          "createDeviceRegion()",
          () -> comm.sharedMemory().createDeviceRegion(DataType.INT8, 1));
      Expect.thrown(
          "G8",
          UnsupportedException.class,
          "register()",
          () -> comm.sharedMemory().register(device));
    }
    Expect.equal(
        "G8",
        "whether there are streams",
        comm.streamSync().isPresent(),
        supported.contains(Capability.STREAMS));
    if (!supported.contains(Capability.SPLIT)) {
      Expect.thrown("G8", UnsupportedException.class, "duplicate()", comm::duplicate);
      Expect.thrown("G8", UnsupportedException.class, "split()", () -> comm.split(0, 0));
    }
    if (!supported.contains(Capability.POINT_TO_POINT)) {
      Expect.thrown(
          "G8", UnsupportedException.class, "send()", () -> comm.send(CommData.of(1), 0, 0));
    }
    if (!supported.contains(Capability.SHRINK)) {
      Expect.thrown("G8", UnsupportedException.class, "shrink()", comm::shrink);
    }
    boolean isAlone = comm.topology().hostOf(r.rank()).ranks().size() == 1; // with plain memory
    if (!supported.contains(Capability.SHARED_MEMORY) && !isAlone) {
      Expect.thrown(
          "G8",
          UnsupportedException.class,
          "createRegion()",
          () -> comm.sharedMemory().createRegion(DataType.INT8, 1));
    }
    Expect.that("G8", comm.failure().isEmpty(), "a refusal broke the communicator");
    LiveRank.works("G8", comm);
  }

  @Rule({"G9", "F6"})
  @Needs(capabilities = Capability.SPLIT)
  static void abort_child_leavesParentAndSiblings(LiveRank r) {
    Communicator comm = r.comm();
    try (Communicator child = comm.duplicate();
        Communicator sibling = comm.duplicate();
        Communicator grandchild = child.duplicate()) {
      comm.barrier();
      if (r.rank() == 0) {
        child.abort("on purpose");
      }
      Expect.eventually("F6", "a failure on every rank", () -> child.failure().isPresent());
      LiveRank.works("G9", comm);
      LiveRank.works("G9", sibling);
      LiveRank.works("G9", grandchild);
    }
  }

  /// The others wait for that rank by then, or come later.
  @Rule({"G9", "F6"})
  @Needs(ranks = 2, capabilities = Capability.SPLIT)
  static void abort_insteadOfMakingAChild_endsItForTheOthers(LiveRank r) {
    for (int round = 0; round < 6; round++) {
      boolean isCopy = round % 2 == 0;
      try (Communicator comm = r.comm().duplicate()) {
        if (r.rank() == 1) {
          LockSupport.parkNanos(round * 200_000L);
          comm.abort("instead of a child");
        } else {
          AbortedException reason =
              Expect.thrown(
                  "G9",
                  AbortedException.class,
                  "making a child whose parent is aborted",
                  () -> (isCopy ? comm.duplicate() : comm.split(0, 0).orElseThrow()).close());
          Expect.equal("F6", "who aborted", reason.rank(), 1);
        }
      }
    }
    LiveRank.works("G9", r.comm());
  }
}
