package org.comm4j.core.schedule;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntFunction;

/// One movement of data between two ranks: what a drawing of a plan consists of.
///
/// @param round of the rank that acts: the sender of a message, the reader of a window
/// @param from where the data comes from
/// @param to where it goes
/// @param count how many elements; 0 of a message that only synchronises
/// @param kind how it moves
public record Arrow(int round, int from, int to, long count, Kind kind) {
  /// How data moves.
  public enum Kind {
    MESSAGE,
    READ
  }

  /// All movements of all ranks' plans, by round, then sender, then receiver.
  public static List<Arrow> of(int size, IntFunction<Schedule> plans) {
    List<Arrow> arrows = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      Schedule plan = plans.apply(rank);
      for (int round = 0; round < plan.rounds(); round++) {
        for (Step step : plan.round(round).steps()) {
          switch (step) {
            case Step.Send send ->
                arrows.add(new Arrow(round, rank, send.peer(), send.slice().count(), Kind.MESSAGE));
            case Step.Reading read ->
                arrows.add(new Arrow(round, read.peer(), rank, read.to().count(), Kind.READ));
            case Step.Local _, Step.Arriving _, Step.Publish _, Step.AwaitPeer _, Step.Done _ -> {}
          }
        }
      }
    }
    arrows.sort(
        Comparator.comparingInt(Arrow::round)
            .thenComparingInt(Arrow::from)
            .thenComparingInt(Arrow::to));
    return arrows;
  }
}
