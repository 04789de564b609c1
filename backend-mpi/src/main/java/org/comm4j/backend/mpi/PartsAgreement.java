package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.comm4j.api.Collective;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.Partition;
import org.jspecify.annotations.Nullable;

/// With `COMM_CHECK=full`, the stages before a collective whose counts differ from rank to rank:
/// every rank tells every other how much it will send to it, then all tell all whether that is what
/// they expect.
final class PartsAgreement {
  private static final int LONGS = 3; // who sends what is not expected, how much, what is expected
  private static final int NOBODY = -1;

  private final MpiGroup group;
  private final Collective call;
  private final MemorySegment sent;
  private final MemorySegment coming;
  private final MemorySegment mine;
  private final MemorySegment all;

  private PartsAgreement(MpiGroup group, Collective call, CallMemory memory) {
    this.group = group;
    this.call = call;
    int size = group.size();
    this.sent = memory.take((long) Long.BYTES * size);
    this.coming = memory.take((long) Long.BYTES * size);
    this.mine = memory.take(Long.BYTES * LONGS);
    this.all = memory.take((long) Long.BYTES * LONGS * size);
  }

  /// The stages that a call needs; none where all ranks have the same counts.
  static List<Stage> stages(MpiGroup group, Collective call, CallMemory memory) {
    return switch (call) {
      case Collective.GatherV _, Collective.ScatterV _, Collective.AllToAllV _ ->
          new PartsAgreement(group, call, memory).stages();
      default -> List.of();
    };
  }

  private List<Stage> stages() {
    for (int peer = 0; peer < group.size(); peer++) {
      sent.setAtIndex(JAVA_LONG, peer, sends(peer));
    }
    long unit = Amount.unit(Long.BYTES);
    long comm = group.collectives();
    return List.of(
        Stage.of(
                "Alltoall",
                request -> MpiCollectives.startAllToAll(sent, coming, 1, unit, comm, request),
                () -> MpiCollectives.allToAll(sent, coming, 1, unit, comm))
            .then(this::compare),
        Collectives.gatherAll(mine, all, LONGS, Long.BYTES, comm).then(this::check));
  }

  private long sends(int peer) {
    return switch (call) {
      case Collective.GatherV c -> peer == c.root() ? c.input().count() : 0;
      case Collective.ScatterV c -> group.rank() == c.root() ? count(c.parts(), peer) : 0;
      case Collective.AllToAllV c -> c.sendParts().count(peer);
      default -> 0;
    };
  }

  private long expects(int peer) {
    return switch (call) {
      case Collective.GatherV c -> group.rank() == c.root() ? count(c.parts(), peer) : 0;
      case Collective.ScatterV c -> peer == c.root() ? c.output().count() : 0;
      case Collective.AllToAllV c -> c.receiveParts().count(peer);
      default -> 0;
    };
  }

  private static long count(@Nullable Partition parts, int peer) {
    return parts == null ? 0 : parts.count(peer);
  }

  private void compare() {
    long[] words = {NOBODY, 0, 0};
    for (int peer = 0; peer < group.size(); peer++) {
      long comes = coming.getAtIndex(JAVA_LONG, peer);
      if (words[0] == NOBODY && comes != expects(peer)) {
        words = new long[] {peer, comes, expects(peer)};
      }
    }
    MemorySegment.copy(words, 0, mine, JAVA_LONG, 0, LONGS);
  }

  private void check() {
    for (int peer = 0; peer < group.size(); peer++) {
      long from = all.getAtIndex(JAVA_LONG, (long) LONGS * peer);
      if (from != NOBODY) {
        throw new MismatchedCallException(
            "rank %d sends %d elements to rank %d, which expects %d, in their %s"
                .formatted(
                    from,
                    all.getAtIndex(JAVA_LONG, (long) LONGS * peer + 1),
                    peer,
                    all.getAtIndex(JAVA_LONG, (long) LONGS * peer + 2),
                    call.label()));
      }
    }
  }
}
