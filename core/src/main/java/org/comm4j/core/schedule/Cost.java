package org.comm4j.core.schedule;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/// What the plans of all ranks cost, whatever the network: counted, not estimated.
///
/// @param latency the longest chain of messages, or looks at peers' flags, of which each waits for
///   the one before it
/// @param messages how many the busiest rank sends
/// @param sentBytes how many the busiest rank sends
/// @param readBytes how many the busiest rank reads from peers' windows
/// @param stages how often windows are published
public record Cost(int latency, long messages, long sentBytes, long readBytes, int stages) {
  /// Counts.
  ///
  /// @param shape any rank's shape
  /// @param plans each rank's plan; plans that wait for each other for ever are refused
  public static Cost of(Shape shape, IntFunction<Schedule> plans) {
    return new Clock(shape, plans).run();
  }

  /// Executes all plans with a clock for each rank that a message moves on by one.
  private static final class Clock {
    private final Shape shape;
    private final RankState[] ranks;
    private final Map<Long, Channel> channels = new HashMap<>();
    private final Deque<RankState> ready = new ArrayDeque<>();
    private final List<RankState> waitingForFlags = new ArrayList<>();

    /// Per rank and stage when it was published and done, plus 1; 0 before.
    private final int[][] published;

    private final int[][] done;

    private static final class RankState {
      final int rank;
      final Schedule plan;
      int time;
      int round = -1;
      List<Step> steps = List.of();
      int next;
      boolean posted = true;

      /// When the messages of the round end, as far as they have.
      int end;

      int pending;
      boolean ended;
      long messages;
      long sentBytes;
      long readBytes;

      RankState(int rank, Schedule plan) {
        this.rank = rank;
        this.plan = plan;
      }
    }

    /// Ranks that wait for the other side of a message between two.
    private record Channel(Deque<RankState> senders, Deque<RankState> receivers) {}

    Clock(Shape shape, IntFunction<Schedule> plans) {
      this.shape = shape;
      int size = shape.size();
      ranks = new RankState[size];
      for (int rank = 0; rank < size; rank++) {
        ranks[rank] = new RankState(rank, plans.apply(rank));
        ready.add(ranks[rank]);
      }
      published = new int[size][ranks[0].plan.stages()];
      done = new int[size][ranks[0].plan.stages()];
    }

    Cost run() {
      while (!ready.isEmpty()) {
        advance(ready.remove());
      }
      int latency = 0;
      long messages = 0;
      long sentBytes = 0;
      long readBytes = 0;
      for (RankState state : ranks) {
        if (!state.ended) {
          throw new IllegalArgumentException(
              "rank %d waits for ever in round %d".formatted(state.rank, state.round));
        }
        latency = Math.max(latency, state.time);
        messages = Math.max(messages, state.messages);
        sentBytes = Math.max(sentBytes, state.sentBytes);
        readBytes = Math.max(readBytes, state.readBytes);
      }
      return new Cost(latency, messages, sentBytes, readBytes, ranks[0].plan.stages());
    }

    /// Goes on with a rank until it waits for another one or has ended.
    private void advance(RankState state) {
      while (!state.ended) {
        if (!state.posted) {
          while (state.next < state.steps.size()) {
            if (!execute(state, state.steps.get(state.next))) {
              waitingForFlags.add(state);
              return;
            }
            state.next++;
          }
          post(state);
        }
        if (state.pending > 0) {
          return;
        }
        state.round++;
        state.ended = state.round == state.plan.rounds();
        if (!state.ended) {
          state.steps = state.plan.round(state.round).steps();
          state.next = 0;
          state.posted = false;
        }
      }
    }

    /// @return false if the rank must wait for a flag and try again
    private boolean execute(RankState state, Step step) {
      switch (step) {
        case Step.Local _, Step.Message _ -> {}
        case Step.Publish publish -> {
          // little data does not wait for that: its time may be less than this
          int before = publish.stage() < 2 ? 0 : doneByReaders(state.rank, publish.stage() - 2);
          if (before < 0) {
            return false;
          }
          state.time = Math.max(state.time, before);
          published[state.rank][publish.stage()] = state.time + 1;
          wakeWaiting();
        }
        case Step.AwaitPeer await -> {
          int time = published[await.peer()][await.stage()];
          if (time == 0) {
            return false;
          }
          state.time = Math.max(state.time, time);
        }
        case Step.Reading read -> state.readBytes += bytes(read.to().count(), read.wire());
        case Step.Done stage -> {
          done[state.rank][stage.stage()] = state.time + 1;
          wakeWaiting();
        }
      }
      return true;
    }

    private void wakeWaiting() {
      ready.addAll(waitingForFlags);
      waitingForFlags.clear();
    }

    /// When all that can read a rank's memory can be known to have done a stage; negative if they
    /// have not.
    private int doneByReaders(int rank, int stage) {
      Hosts hosts = shape.hosts();
      return IntStream.range(0, ranks.length)
          .filter(reader -> hosts == null || hosts.of(reader) == hosts.of(rank))
          .map(reader -> done[reader][stage] == 0 ? -1 : done[reader][stage])
          .reduce(0, (a, b) -> a < 0 || b < 0 ? -1 : Math.max(a, b));
    }

    private void post(RankState state) {
      state.posted = true;
      state.end = state.time;
      for (Step step : state.steps) {
        if (step instanceof Step.Message) {
          state.pending++;
        }
      }
      for (Step step : state.steps) {
        if (step instanceof Step.Message message) {
          boolean send = message instanceof Step.Send;
          int from = send ? state.rank : message.peer();
          int to = send ? message.peer() : state.rank;
          Channel channel =
              channels.computeIfAbsent(
                  (long) from * ranks.length + to,
                  _ -> new Channel(new ArrayDeque<>(), new ArrayDeque<>()));
          (send ? channel.senders : channel.receivers).add(state);
          if (message instanceof Step.Send sent) {
            state.messages++;
            state.sentBytes +=
                bytes(
                    sent.slice().count(),
                    sent.slice().space() == Space.WORK ? Step.Wire.ACCUMULATOR : Step.Wire.VALUE);
          }
          if (!channel.senders.isEmpty() && !channel.receivers.isEmpty()) {
            deliver(channel.senders.remove(), channel.receivers.remove());
          }
        }
      }
    }

    private void deliver(RankState from, RankState to) {
      // Both are in the round of the message, which began at their time.
      int time = Math.max(from.time, to.time) + 1;
      for (RankState state : new RankState[] {from, to}) {
        state.end = Math.max(state.end, time);
        if (--state.pending == 0) {
          state.time = state.end;
          ready.add(state);
        }
      }
    }

    private long bytes(long count, Step.Wire wire) {
      return count
          * (wire == Step.Wire.ACCUMULATOR ? shape.accumulatorBytes() : shape.valueBytes());
    }
  }
}
