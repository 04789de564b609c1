package org.comm4j.cli;

import java.util.function.IntFunction;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Slice;
import org.comm4j.core.schedule.Space;
import org.comm4j.core.schedule.Step;

/// What plans cost: of the rank that has most to do, and of all ranks together.
///
/// @param rounds of the longest plan
/// @param messages that a rank sends, or reads of peers' memory
/// @param bytes in them
/// @param allMessages of all ranks
/// @param allBytes of all ranks
/// @param temporaryBytes that a rank needs besides its buffers
/// @param complete whether every step of every rank was counted; else the numbers are lower bounds
record Cost(
    int rounds,
    long messages,
    long bytes,
    long allMessages,
    long allBytes,
    long temporaryBytes,
    boolean complete) {

  /// Adds up.
  ///
  /// @param shape of any rank: the sizes of elements are the same on all
  /// @param plans by rank
  /// @param mostSteps to look at, so that it always ends soon
  static Cost of(Shape shape, IntFunction<Schedule> plans, long mostSteps) {
    long left = mostSteps;
    int rounds = 0;
    long messages = 0;
    long bytes = 0;
    long allMessages = 0;
    long allBytes = 0;
    long temporaryBytes = 0;
    for (int rank = 0; rank < shape.size() && left > 0; rank++) {
      Schedule plan = plans.apply(rank);
      long rankMessages = 0;
      long rankBytes = 0;
      for (int round = 0; round < plan.rounds() && left > 0; round++) {
        for (Step step : plan.round(round).steps()) {
          left--;
          long moved = movedBytes(step, shape);
          rankMessages += moved < 0 ? 0 : 1;
          rankBytes += Math.max(0, moved);
        }
        left--;
      }
      rounds = Math.max(rounds, plan.rounds());
      messages = Math.max(messages, rankMessages);
      bytes = Math.max(bytes, rankBytes);
      allMessages += rankMessages;
      allBytes += rankBytes;
      temporaryBytes =
          Math.max(
              temporaryBytes,
              plan.workCount() * shape.accumulatorBytes()
                  + plan.scratchCount() * shape.valueBytes());
    }
    return new Cost(rounds, messages, bytes, allMessages, allBytes, temporaryBytes, left > 0);
  }

  /// How much a step takes from one rank to another; -1 if it does not. A message counts where it
  /// is sent, a read where it is done.
  private static long movedBytes(Step step, Shape shape) {
    return switch (step) {
      case Step.Send send -> bytes(send.slice(), shape);
      case Step.ReadPeer read -> read.to().count() * bytes(read.wire(), shape);
      case Step.ReducePeer reduce -> reduce.to().count() * bytes(reduce.wire(), shape);
      case Step.AwaitPeer _, Step.Publish _, Step.Done _ -> -1;
      case Step.Receive _, Step.ReceiveReduce _, Step.ReceiveReduceBefore _ -> -1;
      case Step.Local _ -> -1;
    };
  }

  private static long bytes(Slice slice, Shape shape) {
    return slice.count()
        * (slice.space() == Space.WORK ? shape.accumulatorBytes() : shape.valueBytes());
  }

  private static int bytes(Step.Wire wire, Shape shape) {
    return wire == Step.Wire.ACCUMULATOR ? shape.accumulatorBytes() : shape.valueBytes();
  }
}
