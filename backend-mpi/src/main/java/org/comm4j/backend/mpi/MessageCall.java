package org.comm4j.backend.mpi;

import java.util.BitSet;
import java.util.List;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.jspecify.annotations.Nullable;

/// A message to or from another rank.
class MessageCall extends MpiCall {
  /// What a library may send before its receive is there; what is longer may stay the sender's
  /// until then. Libraries have 4 to 64 KiB; looking costs as much as a small message.
  private static final int MOST_EAGER_BYTES = 4096;

  private final PointToPoint operation;
  private final int destination; // -1 where nothing is sent
  private final @Nullable Expected expected;
  private @Nullable MismatchedCallException contradiction; // for which the receive is taken back
  private boolean isUnwanted; // the user has taken it back, whatever the answer

  /// What is to be received: the first request of the call.
  ///
  /// @param source a rank or ANY_SOURCE
  /// @param tag ours, or ANY_TAG
  /// @param type of the elements
  /// @param count how many there is room for
  record Expected(int source, int tag, DataType type, long count) {
    /// What has come.
    ///
    /// @param tagInLibrary as the library has it
    /// @throws MismatchedCallException if it is not what was expected
    Received received(MpiGroup group, String label, int from, int tagInLibrary, long bytes) {
      DataType found = Tags.type(tagInLibrary);
      if (found != type) {
        throw mismatch(group, label, from, found, bytes);
      }
      if (bytes > MOST_EAGER_BYTES) {
        group.checkSender(from, label);
      }
      return new Received(from, Tags.tag(tagInLibrary), bytes / type.bytes());
    }

    MismatchedCallException mismatch(
        MpiGroup group, String label, int from, DataType found, long bytes) {
      return new MismatchedCallException(
          "rank %d sent %s × %d but rank %d expects at most %s × %d in its %s"
              .formatted(from, found, bytes / found.bytes(), group.rank(), type, count, label));
    }

    /// What is wrong with a message that did not fit.
    MismatchedCallException truncated(MpiGroup group, String label, int from, int tagInLibrary) {
      return new MismatchedCallException(
          "rank %d sent more than rank %d expects in its %s: %s (expected: at most %s × %d)"
              .formatted(from, group.rank(), label, Tags.type(tagInLibrary), type, count));
    }
  }

  /// @param destination who gets what is sent; -1 where nothing is
  /// @param expected null where nothing is received
  MessageCall(
      MpiGroup group,
      PointToPoint operation,
      CallMemory memory,
      List<Stage> stages,
      int destination,
      @Nullable Expected expected) {
    super(group, operation.label(), 0, memory, stages);
    this.operation = operation;
    this.destination = destination;
    this.expected = expected;
  }

  @Override
  boolean isCollective() {
    return false;
  }

  @Override
  boolean concernsPeers() {
    return destination >= 0;
  }

  @Override
  void missing(BitSet ranks) {
    if (destination >= 0) {
      ranks.set(destination);
    }
    if (expected != null && expected.source() == Communicator.ANY_SOURCE) {
      ranks.set(0, group.size());
      ranks.clear(group.rank());
    } else if (expected != null) {
      ranks.set(expected.source());
    }
  }

  @Override
  List<Integer> neededOf(Leavers leavers) {
    return leavers.neededBy(operation);
  }

  /// Who gets what is sent; -1 where nothing is.
  int destination() {
    return destination;
  }

  @Override
  @Nullable Received receive(@Nullable Requests ended) {
    if (expected == null || ended == null) {
      return null;
    }
    return expected.received(group, label(), ended.source(0), ended.tag(0), ended.bytes(0));
  }

  @Override
  MismatchedCallException truncated(TruncatedException found) {
    return expected == null
        ? super.truncated(found)
        : expected.truncated(group, label(), found.source(), found.tag());
  }

  /// A message of another type waits though nothing has matched this receive: messages of one tag
  /// match in order, so nothing will. The receive is taken back then.
  @Nullable MismatchedCallException contradiction() {
    if (isUnwanted || expected == null || expected.tag() == Communicator.ANY_TAG) {
      return null;
    }
    for (DataType type : DataType.values()) {
      if (type != expected.type()) {
        Probe found =
            Probe.of(
                group.messages(), Tags.source(expected.source()), Tags.of(expected.tag(), type));
        if (found != null) {
          contradiction = expected.mismatch(group, label(), found.source(), type, found.bytes());
          return cancelFirst() ? contradiction : null;
        }
      }
    }
    return null;
  }

  @Override
  void endTakenBackLate() {
    MismatchedCallException why = contradiction;
    if (why != null && !isUnwanted) {
      throw why;
    }
    super.endTakenBackLate();
  }

  @Override
  boolean takeBack(Requests running) {
    return operation instanceof PointToPoint.Receive && running.cancel();
  }

  @Override
  public boolean cancel() {
    group.lock();
    try {
      isUnwanted = operation instanceof PointToPoint.Receive;
      return !hasEnded() && endTakenBack();
    } finally {
      group.unlock();
    }
  }
}
