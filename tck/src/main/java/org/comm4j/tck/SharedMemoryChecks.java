package org.comm4j.tck;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Capability;
import org.comm4j.api.ClosedException;
import org.comm4j.api.Collective;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.HostData;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.NodeCommunicator;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.SharedRegion.Phase;
import org.comm4j.api.Topology;

/// Memory that the ranks of a host share.
final class SharedMemoryChecks {
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

  private SharedMemoryChecks() {}

  @Rule("S1")
  static void nodeGroup_isTheHost(LiveRank r) {
    Topology.Host here = r.comm().topology().hostOf(r.rank());
    SharedMemoryProvider shared = r.comm().sharedMemory();
    if (r.rank() == 0) { // no collective: one rank alone may ask
      Expect.fine("S1", "isLeader() on one rank", shared::isLeader);
    }
    r.comm().barrier();
    NodeCommunicator node = shared.splitLocal();
    Expect.equal("S1", "size", node.size(), here.ranks().size());
    Expect.equal("S1", "rank", node.rank(), here.ranks().indexOf(r.rank()));
    Expect.equal("S1", "isLeader()", shared.isLeader(), node.rank() == 0);
    Expect.fine("S1", "barrier()", node::barrier);
    Expect.that("S1", r.comm().sharedMemory() == shared, "another provider at the second call");
  }

  @Rule({"S2", "S3", "S4", "S5", "S6", "D8"})
  @Needs(capabilities = Capability.SHARED_MEMORY)
  static void region_life_goesFromPhaseToPhase(LiveRank r) throws Exception {
    life(r, r.comm().sharedMemory());
  }

  @Rule({"S7", "S2", "S3", "S4", "S5", "S6", "D8"})
  static void region_groupOfOne_isPlainMemory(LiveRank r) throws Exception {
    if (r.size() == 1) {
      life(r, r.comm().sharedMemory());
    } else if (r.can(Capability.SPLIT)) {
      try (Communicator alone = r.comm().split(r.rank(), 0).orElseThrow()) {
        life(r, alone.sharedMemory());
      }
    }
  }

  private static void life(LiveRank r, SharedMemoryProvider shared) throws Exception {
    for (long count : new long[] {0, 1, 1000, 30_000}) {
      SharedRegion<HostData> region = shared.createRegion(DataType.INT64, count);
      Expect.equal("S2", "type", region.type(), DataType.INT64);
      Expect.equal("S2", "count", region.count(), count);
      Expect.equal("S6", "phase", region.phase(), Phase.ALLOCATED);
      Expect.thrown("S4", IllegalStateException.class, "data() before the fence", region::data);
      if (shared.isLeader()) {
        region.populate(data -> fill(data, count, 1));
        Expect.equal("S6", "phase", region.phase(), Phase.POPULATED);
        region.populate(data -> fill(data, count, 7));
        for (long i = count / 2; i < count; i += 1000) {
          region.write(i, readOnly(CommData.of(7 * i + 7)));
        }
        DataChecks.copiesUsableMemory("source", region.type(), source -> region.write(0, source));
      } else {
        Expect.thrown(
            "S3",
            IllegalStateException.class,
            "populate() by another rank than the leader",
            () -> region.populate(data -> {}));
        Expect.thrown(
            "S3",
            IllegalStateException.class,
            "write() by another rank than the leader",
            () -> region.write(0, CommData.of(new long[0])));
      }
      Expect.thrown(
          "S4",
          IllegalStateException.class,
          "read() before the fence",
          () -> region.read(0, CommData.of(new long[0])));
      region.fence();
      Expect.equal("S6", "phase", region.phase(), Phase.FENCED);
      Expect.thrown("S3", IllegalStateException.class, "a second fence()", region::fence);
      Expect.thrown(
          "S3",
          IllegalStateException.class,
          "populate() after the fence",
          () -> region.populate(data -> {}));
      Expect.thrown(
          "S3",
          IllegalStateException.class,
          "write() after the fence",
          () -> region.write(0, CommData.of(new long[0])));
      HostData data = region.data();
      Expect.equal("S2", "count", data.count(), count);
      Expect.that("S5", data.segment().isReadOnly(), "the region can be written");
      for (long i = 0; i < count; i++) {
        Expect.equal("S4", "element " + i, data.segment().getAtIndex(LONG, i), 7 * i + 7);
      }
      readsParts(region, count);
      shared.splitLocal().barrier();
      Expect.fine("S6", "close()", region::close);
      Expect.fine("S6", "closing twice", region::close);
      Expect.equal("S6", "phase", region.phase(), Phase.CLOSED);
      Expect.thrown("S4", IllegalStateException.class, "data() after close()", region::data);
      Expect.thrown("S3", IllegalStateException.class, "fence() after close()", region::fence);
    }
    LiveRank.works("S6", r.comm());
  }

  /// Once all have closed a region its memory is the next one's.
  @Rule("S10")
  @Needs(
      ranks = 2,
      capabilities = {Capability.SHARED_MEMORY})
  static void region_closed_viewsEndOnEveryRank(LiveRank r) {
    SharedMemoryProvider shared = r.comm().sharedMemory();
    if (shared.splitLocal().size() > 1) { // else it is plain memory of its own
      viewsEnd(r, shared);
    }
    LiveRank.works("S10", r.comm());
  }

  private static void viewsEnd(LiveRank r, SharedMemoryProvider shared) {
    SharedRegion<HostData> region = shared.createRegion(DataType.INT64, 1000);
    if (shared.isLeader()) {
      region.populate(data -> fill(data, 1000, 1));
    }
    region.fence();
    HostData view = region.data();
    HostData part = view.slice(1, 2);
    Expect.equal("S4", "element 1", part.segment().getAtIndex(LONG, 0), 2L);
    region.close();
    for (HostData each : List.of(view, part)) {
      Expect.thrown(
          "S10",
          IllegalStateException.class,
          "what was viewed",
          () -> each.segment().getAtIndex(LONG, 0));
    }
    var refused =
        Expect.thrown(
            "S10",
            IllegalArgumentException.class,
            "a call on what was viewed",
            () -> r.comm().reduce(view, null, ReduceOp.SUM, (r.rank() + 1) % r.size()));
    Expect.says("S10", refused, "closed");
  }

  /// The last rank alone asks for what can't be, as the first thing that it does with regions.
  @Rule({"A1", "A3"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SHARED_MEMORY, Capability.SPLIT})
  static void createRegion_wrongArgument_isThatRanksAffair(LiveRank r) {
    try (Communicator comm = r.comm().duplicate()) {
      if (r.rank() == r.size() - 1) {
        Expect.thrown(
            "A1",
            IllegalArgumentException.class,
            "createRegion() of fewer than 0",
            () -> comm.sharedMemory().createRegion(DataType.INT64, -1));
        Expect.thrown(
            "A1",
            IllegalArgumentException.class,
            "createRegion() of more bytes than a number has",
            () -> comm.sharedMemory().createRegion(DataType.INT64, Long.MAX_VALUE));
      }
      LiveRank.works("A3", comm);
    }
  }

  @Rule({"S11", "A3"})
  @Needs(ranks = 2, capabilities = Capability.SHARED_MEMORY)
  static void createRegion_noRoom_isRefusedOnAllRanks(LiveRank r) {
    noRoom(r.comm());
    LiveRank.works("A3", r.comm());
    if (r.can(Capability.SPLIT)) {
      try (Communicator alone = r.comm().split(r.rank(), 0).orElseThrow()) {
        noRoom(alone);
      }
    }
  }

  private static void noRoom(Communicator comm) {
    SharedMemoryProvider shared = comm.sharedMemory();
    long bytes = 1L << 42; // more than any host has
    var thrown =
        Expect.thrown(
            "S11",
            CommException.class,
            "a region of 4 TiB",
            () -> shared.createRegion(DataType.INT8, bytes));
    Expect.says("S11", thrown, Long.toString(bytes));
    Expect.that("S11", comm.failure().isEmpty(), "it broke the communicator");
    shared.createRegion(DataType.INT32, 10).close();
  }

  @Rule("S3")
  @Needs(capabilities = Capability.SHARED_MEMORY)
  static void region_endedByItsWriter_isRefused(LiveRank r) {
    SharedMemoryProvider shared = r.comm().sharedMemory();
    SharedRegion<HostData> region = shared.createRegion(DataType.INT64, 10);
    if (shared.isLeader()) {
      region.populate(data -> {
        Expect.thrown("S3", IllegalStateException.class, "close() by the writer", region::close);
        Expect.thrown("S3", IllegalStateException.class, "fence() by the writer", region::fence);
        fill(data, 10, 3);
      });
      Expect.equal("S6", "phase", region.phase(), Phase.POPULATED);
    }
    region.fence();
    Expect.equal("S4", "element 1", region.data().segment().getAtIndex(LONG, 1), 6L);
    region.close();
    LiveRank.works("S3", r.comm());
  }

  /// Rank 1 closes what its call still needs: the others join the call later.
  @Rule("D11")
  @Needs(
      ranks = 2,
      capabilities = {Capability.SHARED_MEMORY, Capability.POINT_TO_POINT})
  static void region_closedInUse_isRefusedAndLaterGone(LiveRank r) {
    Communicator comm = r.comm();
    long count = 10_000;
    SharedRegion<HostData> region = comm.sharedMemory().createRegion(DataType.INT64, count);
    if (comm.sharedMemory().isLeader()) {
      region.populate(data -> fill(data, count, 1));
    }
    region.fence();
    var sum = new long[Math.toIntExact(count)];
    var call = new Collective.AllReduce(region.data(), CommData.of(sum), ReduceOp.SUM);
    if (r.rank() == 1) {
      Request request = comm.start(call);
      var refused =
          Expect.thrown("D11", IllegalStateException.class, "close() in use", region::close);
      Expect.says("A2", refused, "in flight");
      Expect.equal("D11", "phase", region.phase(), Phase.FENCED);
      for (int peer = 0; peer < r.size(); peer++) {
        if (peer != 1) {
          comm.send(CommData.of(1), peer, 1);
        }
      }
      request.await();
    } else {
      comm.receive(CommData.of(new int[1]), 1, 1);
      comm.run(call);
    }
    for (int i = 0; i < count; i++) {
      Expect.equal("D11", "element " + i, sum[i], r.size() * (i + 1L));
    }
    Expect.fine("D11", "close()", region::close);
    Expect.equal("D11", "phase", region.phase(), Phase.CLOSED);
    LiveRank.works("A3", comm);
  }

  private static void isGone(LiveRank r, CommData view) {
    var refused =
        Expect.thrown(
            "S9",
            IllegalArgumentException.class,
            "a call on what was viewed",
            () -> r.comm().broadcast(view, 0));
    Expect.says("S9", refused, "closed");
  }

  /// Of what the life of a region has left in it.
  private static void readsParts(SharedRegion<?> region, long count) throws Exception {
    long[] part = new long[Math.toIntExact(Math.min(count, 100))];
    region.read(count - part.length, CommData.of(part));
    for (int i = 0; i < part.length; i++) {
      Expect.equal("S4", "element", part[i], 7 * (count - part.length + i) + 7);
    }
    Expect.thrown(
        "S2",
        IllegalArgumentException.class,
        "read() of more than there is",
        () -> region.read(count, CommData.of(new long[1])));
    Expect.thrown(
        "S2",
        IllegalArgumentException.class,
        "read() as another type",
        () -> region.read(0, CommData.of(new double[0])));
    DataChecks.copiesUsableMemory("target", region.type(), target -> region.read(0, target));
    MemorySegment readOnly = MemorySegment.ofArray(new long[1]).asReadOnly();
    RuntimeException refused =
        Expect.thrown(
            "S2",
            IllegalArgumentException.class,
            "read() into read-only memory",
            () -> region.read(0, CommData.of(region.type(), readOnly)));
    Expect.says("S2", refused, "target", "read-only");
  }

  /// Inputs are only read (D4), so this will do.
  private static HostData readOnly(HostData data) {
    return CommData.of(data.type(), data.segment().asReadOnly());
  }

  private static void fill(HostData data, long count, int factor) {
    Expect.equal("S2", "count", data.count(), count);
    Expect.that("S3", !data.segment().isReadOnly(), "the leader can't write");
    for (long i = 0; i < count; i++) {
      data.segment().setAtIndex(LONG, i, factor * i + factor);
    }
  }

  @Rule({"S9", "S2", "S3", "S4", "S6", "D8"})
  @Needs(capabilities = Capability.DEVICE_MEMORY)
  static void deviceRegion_life_goesFromPhaseToPhase(LiveRank r) throws Exception {
    deviceLife(r, r.comm().sharedMemory());
    if (r.can(Capability.SPLIT)) {
      try (Communicator some = r.comm().split(r.rank() % 2, -r.rank()).orElseThrow()) {
        deviceLife(r, some.sharedMemory());
      }
    }
  }

  private static void deviceLife(LiveRank r, SharedMemoryProvider shared) throws Exception {
    for (long count : new long[] {0, 1, 30_000}) {
      SharedRegion<DeviceData> region = shared.createDeviceRegion(DataType.INT64, count);
      Expect.equal("S2", "type", region.type(), DataType.INT64);
      Expect.equal("S2", "count", region.count(), count);
      Expect.thrown("S4", IllegalStateException.class, "data() before the fence", region::data);
      var values = new long[Math.toIntExact(count)];
      Arrays.setAll(values, i -> 7L * i + 7);
      if (shared.isLeader()) {
        region.populate(data -> Expect.equal("S2", "count", data.count(), count));
        region.write(0, readOnly(CommData.of(values)));
        Expect.equal("S6", "phase", region.phase(), Phase.POPULATED);
      } else {
        Expect.thrown(
            "S3",
            IllegalStateException.class,
            "write() by another rank than the leader",
            () -> region.write(0, CommData.of(values)));
      }
      region.fence();
      DeviceData view = region.data();
      Expect.equal("S2", "count", view.count(), count);
      readsParts(region, count);
      shared.splitLocal().barrier();
      Expect.fine("S6", "close()", region::close);
      Expect.fine("S6", "closing twice", region::close);
      Expect.thrown("S4", IllegalStateException.class, "data() after close()", region::data);
      isGone(r, view);
    }
    LiveRank.works("S9", r.comm());
  }

  @Rule({"S9", "M8"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.DEVICE_MEMORY, Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void createDeviceRegion_ranksDisagree_areTold(LiveRank r) {
    try (Communicator comm = r.comm().duplicate()) {
      var mismatch =
          Expect.thrown(
              "M8",
              MismatchedCallException.class,
              "createDeviceRegion() with another count",
              () -> comm.sharedMemory().createDeviceRegion(DataType.INT32, r.rank() == 1 ? 5 : 6));
      Expect.says("M8", mismatch, "5", "6");
      Mismatches.staysBroken(comm, mismatch);
    }
    SharedRegion<DeviceData> region = r.comm().sharedMemory().createDeviceRegion(DataType.INT32, 6);
    region.fence();
    region.close();
    LiveRank.works("S9", r.comm());
  }

  /// A region is big, and there are many, so copies would be noticed by their size.
  @Rule({"S8", "S4"})
  @Needs(capabilities = Capability.SHARED_MEMORY)
  static void regions_manyLargeOnes_giveTheirMemoryBack(LiveRank r) {
    SharedMemoryProvider shared = r.comm().sharedMemory();
    for (int round = 0; round < 100; round++) {
      int number = round;
      SharedRegion<HostData> region = shared.createRegion(DataType.INT32, 700_000);
      if (shared.isLeader()) {
        region.populate(data -> data.segment().set(ValueLayout.JAVA_INT_UNALIGNED, 4, number));
      }
      region.fence();
      Expect.equal(
          "S4", "element 1", region.data().segment().get(ValueLayout.JAVA_INT_UNALIGNED, 4), round);
      region.close();
    }
    LiveRank.works("S8", r.comm());
  }

  @Rule({"S8", "S4", "S6"})
  @Needs(capabilities = Capability.SHARED_MEMORY)
  static void regions_severalOpen_areApart(LiveRank r) {
    SharedMemoryProvider shared = r.comm().sharedMemory();
    List<SharedRegion<HostData>> regions = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      int number = i;
      SharedRegion<HostData> region = shared.createRegion(DataType.UINT8, 1000 + i);
      regions.add(region);
      if (shared.isLeader()) {
        region.populate(data -> data.segment().fill((byte) (number + 1)));
      }
    }
    regions.forEach(SharedRegion::fence);
    for (int i = 0; i < regions.size(); i++) {
      MemorySegment segment = regions.get(i).data().segment();
      for (long at = 0; at < segment.byteSize(); at++) {
        Expect.equal("S4", "byte", segment.get(ValueLayout.JAVA_BYTE, at), (byte) (i + 1));
      }
    }
    regions.reversed().forEach(SharedRegion::close);
    LiveRank.works("S8", r.comm());
  }

  @Rule({"S8", "S4"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SHARED_MEMORY, Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void region_closedByTheLeaderAlone_staysForTheOthers(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    SharedMemoryProvider shared = comm.sharedMemory();
    SharedRegion<HostData> region = shared.createRegion(DataType.UINT8, 500_000);
    if (shared.isLeader()) {
      region.populate(data -> data.segment().fill((byte) 7));
    }
    region.fence();
    if (shared.isLeader()) {
      region.close();
    }
    NodeCommunicator node = shared.splitLocal();
    stays(r, region, "while others have it open");
    for (int i = 0; i < 2; i++) {
      disagree(shared, node, 2_000_000);
    }
    stays(r, region, "after the group broke");
    comm.close();
    stays(r, region, "after the leader's close");
    region.close();
    LiveRank.works("S8", r.comm());
  }

  /// The leader creates a region without the others of its host; a rank that is alone there has
  /// nobody to disagree with.
  private static void disagree(SharedMemoryProvider shared, NodeCommunicator node, long count) {
    if (node.size() == 1) {
      return;
    }
    Expect.thrown(
        "M8",
        MismatchedCallException.class,
        "a region of one rank alone",
        () -> {
          if (shared.isLeader()) {
            shared.createRegion(DataType.UINT8, count);
          } else {
            node.barrier();
          }
        });
  }

  private static void stays(LiveRank r, SharedRegion<HostData> region, String when) {
    try (CommBuffer other = r.comm().allocate(DataType.UINT8, 500_000)) {
      byte[] nines = new byte[500_000];
      Arrays.fill(nines, (byte) 9);
      other.write(0, CommData.of(DataType.UINT8, MemorySegment.ofArray(nines)));
      r.comm().barrier();
      if (region.phase() == Phase.FENCED) {
        byte last = region.data().segment().get(ValueLayout.JAVA_BYTE, 499_999);
        Expect.equal("S8", "the last byte " + when, last, (byte) 7);
      }
      r.comm().barrier();
    }
  }

  /// The ranks disagree, so none of them gets a region.
  @Rule("S8")
  @Needs(
      ranks = 2,
      capabilities = {Capability.SHARED_MEMORY, Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void createRegion_fails_givesItsMemoryBack(LiveRank r) {
    for (int round = 0; round < 6; round++) {
      try (Communicator comm = r.comm().duplicate()) {
        SharedMemoryProvider shared = comm.sharedMemory();
        NodeCommunicator node = shared.splitLocal();
        r.comm().barrier();
        disagree(shared, node, 3_000_000);
      }
    }
    SharedRegion<HostData> region = r.comm().sharedMemory().createRegion(DataType.UINT8, 3_000_000);
    region.fence();
    region.close();
    LiveRank.works("S8", r.comm());
  }

  @Rule({"F4", "F10"})
  @Needs(
      ranks = 2,
      oneHost = true,
      setting = Needs.Setting.SHORT_TIMEOUT,
      capabilities = Capability.SHARED_MEMORY)
  static void createRegion_rankDoesNotCome_endsAtTheDeadline(LiveRank r) {
    Communicator comm = r.comm();
    SharedMemoryProvider shared = comm.sharedMemory();
    if (r.rank() == 1) {
      Expect.eventually("F4", "the others hear of it", () -> comm.failure().isPresent());
    } else {
      Expect.thrown(
          "F4",
          CollectiveTimeoutException.class,
          "createRegion() to which a rank does not come",
          () -> shared.createRegion(DataType.UINT8, 1000));
    }
    var reason = (CollectiveTimeoutException) comm.failure().orElseThrow();
    Expect.that("F4", reason.missing().contains(1), "missing ranks %s", reason.missing());
    Expect.says("F4", reason, "createRegion", "1");
    Mismatches.staysBroken(comm, reason);
  }

  @Rule({"M8", "S2"})
  @Needs(
      ranks = 2,
      oneHost = true,
      capabilities = {Capability.SHARED_MEMORY, Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void createRegion_ranksDisagree_areTold(LiveRank r) {
    Communicator comm = r.comm();
    var mismatch =
        Expect.thrown(
            "M8",
            MismatchedCallException.class,
            "createRegion() with another count",
            () -> comm.sharedMemory().createRegion(DataType.INT32, r.rank() == 1 ? 5 : 6));
    Expect.says("M8", mismatch, "5", "6");
    Mismatches.staysBroken(comm, mismatch);
  }

  /// Rank 1 would read what the leader has not written yet.
  @Rule({"M8", "M7", "S4"})
  @Needs(
      ranks = 2,
      oneHost = true,
      capabilities = {Capability.SHARED_MEMORY, Capability.SPLIT, Capability.MISMATCH_DETECTION})
  static void fence_ranksDisagreeOnTheRegion_areTold(LiveRank r) {
    for (boolean isBarrier : new boolean[] {false, true}) {
      try (Communicator comm = r.comm().duplicate()) {
        SharedMemoryProvider shared = comm.sharedMemory();
        SharedRegion<HostData> first = shared.createRegion(DataType.INT32, 10);
        SharedRegion<HostData> second = shared.createRegion(DataType.INT32, 10);
        NodeCommunicator node = shared.splitLocal();
        Expect.Action other = isBarrier ? node::barrier : second::fence;
        r.comm().barrier(); // all have made all
        var mismatch =
            Expect.thrown(
                "M8",
                MismatchedCallException.class,
                "fence() of a region against " + (isBarrier ? "barrier()" : "another's"),
                r.rank() == 1 ? other : first::fence);
        Expect.says("M7", mismatch, "rank 1", "fence", isBarrier ? "barrier" : "region #");
        Expect.thrown("S4", IllegalStateException.class, "data() of the first", first::data);
        Expect.thrown("S4", IllegalStateException.class, "data() of the second", second::data);
        Mismatches.staysBroken(comm, mismatch);
        first.close();
        second.close();
      }
    }
    LiveRank.works("M8", r.comm());
  }

  /// A region of a device's memory against one of the host's.
  @Rule({"S9", "M8"})
  @Needs(
      ranks = 2,
      capabilities = {
        Capability.DEVICE_MEMORY,
        Capability.SHARED_MEMORY,
        Capability.SPLIT,
        Capability.MISMATCH_DETECTION
      })
  static void deviceRegion_fencedAgainstAnother_ranksAreTold(LiveRank r) {
    for (boolean isOnHost : new boolean[] {false, true}) {
      try (Communicator comm = r.comm().duplicate()) {
        SharedMemoryProvider shared = comm.sharedMemory();
        SharedRegion<DeviceData> first = shared.createDeviceRegion(DataType.INT32, 10);
        SharedRegion<?> second =
            isOnHost
                ? shared.createRegion(DataType.INT32, 10)
                : shared.createDeviceRegion(DataType.INT32, 10);
        SharedRegion<?> mine = r.rank() == 1 ? second : first;
        r.comm().barrier();
        var mismatch =
            Expect.thrown(
                "M8", MismatchedCallException.class, "fence() of different regions", mine::fence);
        Expect.says("M8", mismatch, "rank 1", "fence");
        Mismatches.staysBroken(comm, mismatch);
        first.close();
        second.close();
      }
    }
    LiveRank.works("S9", r.comm());
  }

  /// A rank gives up instead of joining what the others of its host wait in.
  @Rule({"F6", "F1"})
  @Needs(
      ranks = 2,
      oneHost = true,
      capabilities = {Capability.SHARED_MEMORY, Capability.SPLIT})
  static void shared_aborted_endsItsCalls(LiveRank r) {
    for (String stage : List.of("the first call", "createRegion()", "fence()", "barrier()")) {
      try (Communicator comm = r.comm().duplicate()) {
        SharedMemoryProvider shared = comm.sharedMemory();
        Runnable call = () -> shared.createRegion(DataType.INT32, 10);
        if (!stage.equals("the first call")) {
          NodeCommunicator node = shared.splitLocal();
          SharedRegion<HostData> region = shared.createRegion(DataType.INT32, 10);
          call =
              switch (stage) {
                case "fence()" -> region::fence;
                case "barrier()" -> node::barrier;
                default -> call;
              };
        }
        r.comm().barrier();
        if (r.rank() == 1) {
          comm.abort("no more");
        } else {
          var reason =
              Expect.thrown(
                  "F6", AbortedException.class, stage + " of an aborted group", call::run);
          Expect.says("F6", reason, "no more");
          Mismatches.staysBroken(comm, reason);
        }
      }
    }
    LiveRank.works("F6", r.comm());
  }

  /// Ranks of a host wait for each other when one of another host gives up.
  @Rule("F6")
  @Needs(
      ranks = 2,
      capabilities = {Capability.SHARED_MEMORY, Capability.SPLIT})
  static void shared_abortedOnAnotherHost_endsItsCalls(LiveRank r) {
    Topology topology = r.comm().topology();
    List<Integer> waiting =
        topology.hosts().stream()
            .map(Topology.Host::ranks)
            .filter(ranks -> ranks.size() > 1)
            .findFirst()
            .orElse(List.of());
    int by = r.size() - 1;
    boolean areApart = !waiting.isEmpty() && !waiting.contains(by);
    try (Communicator comm = r.comm().duplicate()) {
      NodeCommunicator node = comm.sharedMemory().splitLocal();
      r.comm().barrier();
      if (areApart && r.rank() == by) {
        comm.abort("no more");
      } else if (areApart && r.rank() == waiting.getFirst()) {
        var reason =
            Expect.thrown(
                "F6", AbortedException.class, "barrier() of an aborted group", node::barrier);
        Expect.equal("F6", "who aborted", reason.rank(), by);
        Mismatches.staysBroken(comm, reason);
      }
      r.comm().barrier(); // a rank that closes before would be what ends the call
    }
    LiveRank.works("F6", r.comm());
  }

  /// A rank of the host has closed the communicator before the others begin, and makes other calls.
  @Rule("F13")
  @Needs(
      ranks = 2,
      oneHost = true,
      capabilities = {Capability.SHARED_MEMORY, Capability.SPLIT})
  static void createRegion_rankHasClosed_namesIt(LiveRank r) {
    Communicator comm = r.comm().duplicate();
    if (r.rank() == 0) {
      comm.close();
    }
    r.comm().barrier();
    if (r.rank() != 0) {
      var reason =
          Expect.thrown(
              "F13",
              AbortedException.class,
              "createRegion() that needs a rank that has closed",
              () -> comm.sharedMemory().createRegion(DataType.INT32, 10));
      Expect.equal("F13", "who closed", reason.rank(), 0);
      Expect.says("F13", reason, "rank 0", "closed");
    }
    comm.close();
    LiveRank.works("F13", r.comm());
  }

  @Rule("L2")
  @Needs(capabilities = {Capability.SHARED_MEMORY, Capability.SPLIT})
  static void shared_communicatorClosed_isClosedToo(LiveRank r) {
    for (boolean wasUsed : new boolean[] {false, true}) {
      Communicator comm = r.comm().duplicate();
      SharedMemoryProvider shared = comm.sharedMemory();
      if (wasUsed) {
        shared.splitLocal().barrier();
      }
      comm.close();
      Expect.thrown(
          "L2",
          ClosedException.class,
          "createRegion() of a closed communicator",
          () -> shared.createRegion(DataType.INT32, 10));
      Expect.thrown(
          "L2", ClosedException.class, "splitLocal() of a closed communicator", shared::splitLocal);
    }
    LiveRank.works("L2", r.comm());
  }

  /// The leader, or the others, have nothing but the region left when the others close theirs.
  @Rule({"S8", "L5"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.SHARED_MEMORY, Capability.SPLIT})
  static void regions_communicatorClosedFirst_giveTheirMemoryBack(LiveRank r) {
    for (int round = 0; round < 12; round++) {
      Communicator comm = r.comm().duplicate();
      SharedMemoryProvider shared = comm.sharedMemory();
      SharedRegion<HostData> region = shared.createRegion(DataType.UINT8, 3_000_000);
      region.fence();
      boolean regionFirst = round % 2 == 0;
      if (shared.isLeader() == regionFirst) {
        region.close();
        comm.close();
      }
      r.comm().barrier();
      region.close();
      comm.close();
    }
    LiveRank.works("S8", r.comm());
  }
}
