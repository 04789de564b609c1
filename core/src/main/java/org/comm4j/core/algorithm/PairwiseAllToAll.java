package org.comm4j.core.algorithm;

import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;

/// All-to-all by pairs: `p - 1` rounds; in round `k` every rank sends to rank `r + k` and receives
/// from rank `r - k`, so nobody gets two messages at once. Cost per rank: `p - 1` messages, each
/// element once. For large data or many ranks.
///
/// ALL_TO_ALL_V sends empty parts too: nobody knows both sides' partitions, and a count that
/// differs must be noticed at once.
record PairwiseAllToAll(CollectiveKind kind) implements Algorithm {
  @Override
  public String name() {
    return "pairwise";
  }

  @Override
  public Order order() {
    return Order.NONE;
  }

  @Override
  public Schedule plan(Shape shape, int rank) {
    int size = shape.size();
    Chunks sent = Shapes.chunks(shape);
    Chunks received = Shapes.receivedChunks(shape);
    Phase own = Phase.once(new Copy(sent.in(Space.INPUT, rank), received.in(Space.OUTPUT, rank)));
    Phase exchange =
        Phase.of(
            size - 1,
            round -> {
              int to = Ranks.at(rank, round + 1, size);
              int from = Ranks.at(rank, -round - 1, size);
              Send send = new Send(to, sent.in(Space.INPUT, to));
              Receive receive = new Receive(from, received.in(Space.OUTPUT, from), Wire.VALUE);
              return kind == CollectiveKind.ALL_TO_ALL
                  ? Phase.round(send, receive)
                  : Round.of(send, receive);
            });
    return new Memory(shape).plan(own.then(exchange));
  }
}
