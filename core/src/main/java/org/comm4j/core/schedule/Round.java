package org.comm4j.core.schedule;

import java.util.List;

/// Steps that a rank does before it goes on.
///
/// [Step.Local] and [Step.Peer] steps run first, one after the other as they stand. Then all
/// [Step.Message] steps go on at once, in any order and overlapping in time; for each peer the
/// sends leave, and the receives are matched, in the order in which they stand. The round ends when
/// all its steps have ended. What the messages of a round write is disjoint from what the round's
/// other messages read or write.
public record Round(List<Step> steps) {
  public Round {
    steps = List.copyOf(steps);
  }

  public static Round of(Step... steps) {
    return new Round(List.of(steps));
  }
}
