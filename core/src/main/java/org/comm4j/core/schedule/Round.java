package org.comm4j.core.schedule;

import java.util.ArrayList;
import java.util.List;

/// Steps that a rank does before it goes on.
///
/// [Step.Local] and [Step.Peer] steps run first, one after the other as they stand. Then all
/// [Step.Message] steps go on at once, in any order and overlapping in time; for each peer the
/// sends leave, and the receives are matched, in the order in which they stand. The round ends when
/// all its steps have ended. What the messages of a round write is disjoint from what the round's
/// other messages read or write.
public final class Round {
  private final List<Step> steps;
  private final Step[] inOrder; // a list would have each step's type tested whenever it is got
  private final List<Step.Message> messages;

  public Round(List<Step> steps) {
    this.steps = List.copyOf(steps);
    List<Step> first = new ArrayList<>();
    List<Step.Message> atOnce = new ArrayList<>();
    for (Step step : this.steps) {
      if (step instanceof Step.Message message) {
        atOnce.add(message);
      } else {
        first.add(step);
      }
    }
    this.inOrder = first.toArray(Step[]::new);
    this.messages = List.copyOf(atOnce);
  }

  public static Round of(Step... steps) {
    return new Round(List.of(steps));
  }

  /// All of them.
  public List<Step> steps() {
    return steps;
  }

  /// How many run one after the other.
  public int stepsInOrder() {
    return inOrder.length;
  }

  /// One of those that run one after the other.
  public Step stepInOrder(int index) {
    return inOrder[index];
  }

  /// Those that go on at once, afterwards.
  public List<Step.Message> messages() {
    return messages;
  }

  @Override
  public String toString() {
    return steps.toString();
  }
}
