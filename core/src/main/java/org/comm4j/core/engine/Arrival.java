package org.comm4j.core.engine;

import java.util.BitSet;
import java.util.List;
import java.util.concurrent.CancellationException;
import org.comm4j.api.Communicator;
import org.jspecify.annotations.Nullable;

/// A call that waits for a message of one source, or of any.
abstract sealed class Arrival extends Call permits ProbeCall, ReceiveCall {
  private final int source;

  Arrival(Context context, int source, @Nullable Thread boundTo) {
    super(context, boundTo);
    this.source = source;
  }

  /// The message that it has got and still waits for, or null.
  abstract @Nullable Message message();

  @Override
  public final boolean cancel() {
    try (var _ = engine.enter()) { // not from an operator, whose call moves along
      if (message() != null || hasEnded()) {
        return false;
      }
      fail(new CancellationException(describe() + " was cancelled"));
      return true;
    }
  }

  @Override
  final void missing(BitSet ranks) {
    Message message = message();
    if (message != null) {
      ranks.set(message.source());
    } else if (source != Communicator.ANY_SOURCE) {
      ranks.set(source);
    } else {
      context.addSources(ranks);
    }
  }

  @Override
  final String lacks(List<Integer> absent) {
    if (message() != null) {
      return Lacks.ofRanks(absent, "sent all of it", "");
    }
    if (source == context.rank()) {
      return "a send of its own; start() %s, then send".formatted(noun());
    }
    boolean mayBothWait = this instanceof ReceiveCall && !isPart();
    return Lacks.ofRanks(
        absent,
        "called the matching send",
        mayBothWait
            ? "where both receive first, start() one of the receives or use sendReceive"
            : "");
  }

  private String noun() {
    return switch (this) {
      case ProbeCall _ -> "the probe";
      case ReceiveCall _ -> "the receive";
    };
  }

  @Override
  final BitSet lost(BitSet left) {
    boolean othersMaySend =
        message() == null
            && source == Communicator.ANY_SOURCE
            && left.cardinality() < context.size() - 1;
    return othersMaySend ? new BitSet() : super.lost(left);
  }

  @Override
  final void inquire() {
    if (message() == null) {
      context.inquiries().ask(source);
    }
  }
}
