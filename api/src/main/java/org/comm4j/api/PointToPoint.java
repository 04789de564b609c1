package org.comm4j.api;

import java.util.Objects;

/// A message between two ranks. A message goes to the first matching [Receive] of its receiver:
/// messages of one pair of ranks and one tag match in the order in which they were started, on both
/// sides. A rank may send to itself; where such a message is long, of more than 64 KiB on most
/// backends, it waits for its receive, so that one of the two has to be started, not run.
///
/// Tags are `0..`[Communicator#MAX_TAG]. A message of another type than its receive, or longer than
/// it, is a [MismatchedCallException]; a shorter one is fine and [Received#count()] tells.
public sealed interface PointToPoint extends Operation {

  /// Sends a message; completes when the data may be re-used, which promises neither that the
  /// message has been received nor that it is buffered. From some size on, which depends on the
  /// backend and the memory (8 KiB on `local`), it may wait for its receive, and with
  /// [CommConfig#synchronousSend()] from the first byte: two ranks that both send, and then
  /// receive, may wait for each other.
  ///
  /// @param data what to send
  /// @param destination the receiving rank
  /// @param tag `0..`[Communicator#MAX_TAG]
  record Send(CommData data, int destination, int tag) implements PointToPoint {
    /// Checks what needs no group.
    public Send {
      Objects.requireNonNull(data, "data");
    }

    @Override
    public String label() {
      return "send";
    }
  }

  /// Receives a message.
  ///
  /// @param data where it goes; a longer message is a mismatch
  /// @param source the sending rank or [Communicator#ANY_SOURCE]
  /// @param tag the message's tag or [Communicator#ANY_TAG]
  record Receive(CommData data, int source, int tag) implements PointToPoint {
    /// Checks what needs no group.
    public Receive {
      Objects.requireNonNull(data, "data");
    }

    @Override
    public String label() {
      return "receive";
    }
  }

  /// A [Send] and a [Receive] at once, so that neighbours can exchange without a deadlock.
  ///
  /// @param output what to send; must not overlap the input
  /// @param destination the receiving rank
  /// @param sendTag `0..`[Communicator#MAX_TAG]
  /// @param input where the received message goes
  /// @param source the sending rank or [Communicator#ANY_SOURCE]
  /// @param receiveTag the received message's tag or [Communicator#ANY_TAG]
  record SendReceive(
      CommData output, int destination, int sendTag, CommData input, int source, int receiveTag)
      implements PointToPoint {
    /// Checks what needs no group.
    public SendReceive {
      Objects.requireNonNull(output, "output");
      Objects.requireNonNull(input, "input");
      Checks.disjoint(output, input);
    }

    @Override
    public String label() {
      return "sendReceive";
    }
  }

  /// Waits for a message without receiving it; [Received#count()] tells its length. The next
  /// matching receive gets that message.
  ///
  /// @param source the sending rank or [Communicator#ANY_SOURCE]
  /// @param tag the message's tag or [Communicator#ANY_TAG]
  record Probe(int source, int tag) implements PointToPoint {
    @Override
    public String label() {
      return "probe";
    }
  }
}
