package org.comm4j.core.schedule;

import java.util.List;
import java.util.function.IntFunction;

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

  /// The same plan with its rounds written out, if they have few steps.
  ///
  /// @param most how many steps that may be
  default Schedule kept(int most) {
    return this;
  }

  /// How many steps are written out: what a plan takes as long as it is kept.
  default int keptSteps() {
    return 0;
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

    @Override
    public Schedule kept(int most) {
      if (rounds > most) {
        return this;
      }
      Round[] written = new Round[rounds];
      int steps = 0;
      for (int index = 0; index < rounds; index++) {
        written[index] = round(index);
        steps += written[index].steps().size();
        if (steps > most) {
          return this;
        }
      }
      return new Kept(this, written, steps);
    }
  }

  /// A plan that is run again and again.
  record Kept(Schedule plan, Round[] written, int keptSteps) implements Schedule {
    @Override
    public int rounds() {
      return written.length;
    }

    @Override
    public Round round(int index) {
      return written[index];
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
