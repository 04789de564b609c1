package org.comm4j.core.schedule;

import java.util.Locale;
import java.util.function.IntFunction;

/// Plans as text.
public final class ScheduleText {
  private ScheduleText() {}

  /// The plans of some ranks, a line for each round.
  ///
  /// @param size how many ranks are written, from rank 0
  public static String of(int size, IntFunction<Schedule> plans) {
    StringBuilder text = new StringBuilder();
    for (int rank = 0; rank < size; rank++) {
      text.append("rank ").append(rank).append('\n').append(of(plans.apply(rank)));
    }
    return text.toString();
  }

  /// A picture of all ranks' plans: a line for each round, an arrow with the number of elements for
  /// each movement. `→` is a message, `⇢` a look into the sender's window.
  ///
  ///     round 0: 0→1 ×4  2→3 ×4
  ///     round 1: 0→2 ×8  1→3 ×8
  public static String picture(int size, IntFunction<Schedule> plans) {
    StringBuilder text = new StringBuilder();
    int round = -1;
    for (Arrow arrow : Arrow.of(size, plans)) {
      if (arrow.round() != round) {
        round = arrow.round();
        text.append(text.isEmpty() ? "" : "\n").append("round ").append(round).append(':');
      } else {
        text.append(' ');
      }
      text.append(' ')
          .append(arrow.from())
          .append(arrow.kind() == Arrow.Kind.MESSAGE ? '→' : '⇢')
          .append(arrow.to())
          .append(" ×")
          .append(arrow.count());
    }
    return text.append(text.isEmpty() ? "" : "\n").toString();
  }

  /// One rank's plan, a line for each round that has steps.
  public static String of(Schedule plan) {
    StringBuilder text = new StringBuilder();
    for (int index = 0; index < plan.rounds(); index++) {
      Round round = plan.round(index);
      if (!round.steps().isEmpty()) {
        text.append("  round ").append(index).append(": ").append(of(round)).append('\n');
      }
    }
    return text.toString();
  }

  static String of(Round round) {
    StringBuilder text = new StringBuilder();
    for (Step step : round.steps()) {
      text.append(text.isEmpty() ? "" : " | ").append(of(step));
    }
    return text.toString();
  }

  /// One step, for example `send output[0..4) to 3`.
  public static String of(Step step) {
    return switch (step) {
      case Step.Copy copy -> "copy %s to %s".formatted(copy.from(), copy.to());
      case Step.Reduce reduce -> "reduce %s into %s".formatted(reduce.from(), reduce.to());
      case Step.Finish finish ->
          "finish %s to %s%s".formatted(finish.from(), finish.to(), divided(finish.divisor()));
      case Step.Send send -> "send %s to %d".formatted(send.slice(), send.peer());
      case Step.Receive receive ->
          "receive %s from %d%s".formatted(receive.to(), receive.peer(), of(receive.wire()));
      case Step.ReceiveReduce receive ->
          "reduce %s with %d%s".formatted(receive.to(), receive.peer(), of(receive.wire()));
      case Step.ReceiveReduceBefore receive ->
          "reduce %s behind %d%s".formatted(receive.to(), receive.peer(), of(receive.wire()));
      case Step.ReceiveFold receive ->
          "reduce %s %s %d%s into %s"
              .formatted(
                  receive.own(),
                  receive.ownFirst() ? "with" : "behind",
                  receive.peer(),
                  of(receive.wire()),
                  receive.to());
      case Step.Publish publish -> "publish #%d %s".formatted(publish.stage(), publish.slice());
      case Step.AwaitPeer await -> "await %d #%d".formatted(await.peer(), await.stage());
      case Step.ReadPeer read ->
          "read %s from %d #%d at %d%s"
              .formatted(read.to(), read.peer(), read.stage(), read.from(), of(read.wire()));
      case Step.ReducePeer reduce ->
          "reduce %s with %d #%d at %d%s"
              .formatted(
                  reduce.to(), reduce.peer(), reduce.stage(), reduce.from(), of(reduce.wire()));
      case Step.FoldPeer fold ->
          "reduce %s %s %d #%d at %d%s into %s"
              .formatted(
                  fold.own(),
                  fold.ownFirst() ? "with" : "behind",
                  fold.peer(),
                  fold.stage(),
                  fold.from(),
                  of(fold.wire()),
                  fold.to());
      case Step.FinishPeer finish ->
          "finish %s %s %d #%d at %d to %s%s"
              .formatted(
                  finish.own(),
                  finish.ownFirst() ? "with" : "behind",
                  finish.peer(),
                  finish.stage(),
                  finish.from(),
                  finish.to(),
                  divided(finish.divisor()));
      case Step.Done done -> "done #%d".formatted(done.stage());
    };
  }

  static String of(Space space) {
    return space.name().toLowerCase(Locale.ROOT);
  }

  private static String divided(int divisor) {
    return divisor == 1 ? "" : " / " + divisor;
  }

  private static String of(Step.Wire wire) {
    return wire == Step.Wire.ACCUMULATOR ? " widened" : "";
  }
}
