package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.comm4j.api.DataType;
import org.comm4j.api.MismatchedCallException;

/// A stage in which this rank sends parts to some ranks and receives parts from others, all at
/// once: what MPI's own forms with counts in ints can't do, or where only some ranks know how much
/// there is.
final class Exchange implements Stage {
  private final MpiGroup group;
  private final String label;
  private final int tag;
  private final DataType type;
  private final List<Part> sends = new ArrayList<>();
  private final List<Part> receives = new ArrayList<>();

  /// A part of a buffer.
  ///
  /// @param offset in bytes
  private record Part(int peer, MemorySegment buffer, long offset, long count) {
    MemorySegment segment(DataType type) {
      return count == 0 ? MemorySegment.NULL : buffer.asSlice(offset, type.bytes(count));
    }
  }

  /// @param label of the call, for messages
  /// @param tag of its messages
  Exchange(MpiGroup group, String label, int tag, DataType type) {
    this.group = group;
    this.label = label;
    this.tag = tag;
    this.type = type;
  }

  /// Sends a part; one for this rank itself is not sent.
  void send(int peer, MemorySegment buffer, long offset, long count) {
    if (peer != group.rank()) {
      sends.add(new Part(peer, buffer, offset, count));
    }
  }

  /// Receives a part of exactly this length.
  void receive(int peer, MemorySegment buffer, long offset, long count) {
    if (peer != group.rank()) {
      receives.add(new Part(peer, buffer, offset, count));
    }
  }

  @Override
  public int requests() {
    return sends.size() + receives.size();
  }

  /// Sets the ranks from which a part has not come.
  ///
  /// @param requests of the stage, which has been started
  void missing(Requests requests, BitSet ranks) {
    for (int i = 0; i < receives.size(); i++) {
      if (!requests.isEnded(i)) {
        ranks.set(receives.get(i).peer());
      }
    }
  }

  @Override
  public void start(Requests requests) {
    receives.forEach(part -> start(Mpi::irecv, "MPI_Irecv", part, requests));
    sends.forEach(part -> start(Mpi::isend, "MPI_Isend", part, requests));
  }

  private void start(Turn.Message message, String function, Part part, Requests requests) {
    Amount amount = Amount.of(part.count(), type, group.job().largestTried());
    int code =
        message.start(
            part.segment(type),
            amount.count(),
            amount.type(),
            part.peer(),
            tag,
            group.collectives(),
            requests.next());
    amount.free();
    Errors.check(code, function);
  }

  @Override
  public void end(Requests requests) {
    for (int i = 0; i < receives.size(); i++) {
      Part part = receives.get(i);
      long bytes = requests.bytes(i);
      if (bytes != type.bytes(part.count())) {
        throw new MismatchedCallException(
            "rank %d sent %d elements of %s to rank %d, which expects %d in its %s"
                .formatted(
                    part.peer(), bytes / type.bytes(), type, group.rank(), part.count(), label));
      }
    }
  }
}
