package org.comm4j.core.schedule;

import java.util.List;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/// What one rank does in one collective: rounds, computed one at a time when they are needed, so
/// that a plan of thousands of rounds costs no memory.
public interface Schedule {
  /// How many rounds; 0 if there is nothing to do.
  int rounds();

  /// A round. Pure: the same at every call.
  Round round(int index);

  /// How many elements of [Space#WORK] it needs.
  default long workCount() {
    return 0;
  }

  /// How many elements of [Space#SCRATCH] it needs.
  default long scratchCount() {
    return 0;
  }

  /// How many stages it publishes, the same number on every rank; 0 for a plan of messages.
  default int stages() {
    return 0;
  }

  /// The same plan for one thread at a time, which computes each round once, if they are few.
  default Schedule kept() {
    return rounds() <= Kept.MOST_ROUNDS ? new Kept(this, new Round[rounds()]) : this;
  }

  /// A plan of messages.
  static Schedule of(int rounds, long workCount, long scratchCount, IntFunction<Round> round) {
    return new Plan(rounds, workCount, scratchCount, 0, round);
  }

  /// A plan over peer memory.
  static Schedule ofPeerMemory(
      int rounds, long workCount, long scratchCount, int stages, IntFunction<Round> round) {
    return new Plan(rounds, workCount, scratchCount, stages, round);
  }

  /// A plan that is written out.
  static Schedule of(long workCount, long scratchCount, List<Round> rounds) {
    return new Plan(rounds.size(), workCount, scratchCount, 0, rounds::get);
  }

  /// The plain form.
  record Plan(int rounds, long workCount, long scratchCount, int stages, IntFunction<Round> factory)
      implements Schedule {
    @Override
    public Round round(int index) {
      return factory.apply(index);
    }
  }

  /// A plan that is run again and again.
  ///
  /// @param known null where a round was not asked for yet
  record Kept(Schedule plan, @Nullable Round[] known) implements Schedule {
    private static final int MOST_ROUNDS = 64;

    @Override
    public int rounds() {
      return known.length;
    }

    @Override
    public Round round(int index) {
      Round round = known[index];
      if (round == null) {
        round = plan.round(index);
        known[index] = round;
      }
      return round;
    }

    @Override
    public long workCount() {
      return plan.workCount();
    }

    @Override
    public long scratchCount() {
      return plan.scratchCount();
    }

    @Override
    public int stages() {
      return plan.stages();
    }
  }
}
