package org.comm4j.core.algorithm;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import org.comm4j.core.schedule.Round;
import org.comm4j.core.schedule.Step;

/// Rounds that belong together: what algorithms are composed of.
///
/// @param round computes one of them, pure
record Phase(int rounds, IntFunction<Round> round) {
  /// No rounds.
  static final Phase NOTHING = new Phase(0, _ -> Round.of());

  /// Rounds, computed when they are needed.
  static Phase of(int rounds, IntFunction<Round> round) {
    return new Phase(rounds, round);
  }

  /// One round, or none where all its steps are empty.
  static Phase once(Step... steps) {
    return once(List.of(steps));
  }

  /// One round, or none where all its steps are empty.
  static Phase once(List<Step> steps) {
    Round round = round(steps);
    return round.steps().isEmpty() ? NOTHING : new Phase(1, _ -> round);
  }

  /// This one, then another.
  Phase then(Phase next) {
    if (rounds == 0) {
      return next;
    }
    if (next.rounds == 0) {
      return this;
    }
    return new Phase(
        rounds + next.rounds,
        index -> index < rounds ? round.apply(index) : next.round.apply(index - rounds));
  }

  /// A round without those of the steps that move no element: both ranks of a message know its
  /// count, so both leave it out.
  static Round round(Step... steps) {
    return round(List.of(steps));
  }

  /// As [#round(Step...)].
  static Round round(List<Step> steps) {
    List<Step> moving = new ArrayList<>(steps.size());
    for (Step step : steps) {
      if (!isEmpty(step)) {
        moving.add(step);
      }
    }
    return new Round(moving);
  }

  /// As [#round], but with the messages that move no element: where one rank alone knows a count,
  /// the other one notices that its own is another.
  static Round roundWithEmptyMessages(List<Step> steps) {
    List<Step> kept = new ArrayList<>(steps);
    kept.removeIf(step -> step instanceof Step.Local && isEmpty(step));
    return new Round(kept);
  }

  private static boolean isEmpty(Step step) {
    return switch (step) {
      case Step.Copy copy -> copy.from().count() == 0;
      case Step.Reduce reduce -> reduce.from().count() == 0;
      case Step.Finish finish -> finish.from().count() == 0;
      case Step.Send send -> send.slice().count() == 0;
      case Step.Arriving receive -> receive.to().count() == 0;
      case Step.Reading read -> read.to().count() == 0;
      // These synchronise.
      case Step.Publish _, Step.AwaitPeer _, Step.Done _ -> false;
    };
  }
}
