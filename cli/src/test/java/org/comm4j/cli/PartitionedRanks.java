package org.comm4j.cli;

import static org.comm4j.api.ReduceOp.MAX;
import static org.comm4j.api.ReduceOp.SUM;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;

/// A program for [PartitionTest]: all-reduces until that fails, then shrinks. Says `rank R in
/// DIRECTORY`, which is where its driver's memory was, once the ranks are in the middle of it, and
/// `rank R got TYPE: MESSAGE` when it is told. Who can go on does so until its input ends, and for
/// a while longer, and says `rank R goes on as S of N`. Who can't says `rank R is out: TYPE:
/// MESSAGE`, and when its input ends what it gets then, `rank R still gets TYPE: MESSAGE` from the
/// communicator and `rank R is still out: TYPE: MESSAGE` from another attempt to shrink it.
final class PartitionedRanks {
  private static final int WARM_UP = 100;
  private static final int MORE = 1000;

  private final int rank;

  /// Completes when the test has ended this process's input.
  private final CompletableFuture<Void> toldToEnd =
      CompletableFuture.runAsync(
          PartitionedRanks::readInput, task -> Thread.ofPlatform().daemon().start(task));

  private PartitionedRanks(int rank) {
    this.rank = rank;
  }

  /// Runs one rank.
  ///
  /// @param arguments none
  /// @throws IOException if the system doesn't say what this process has mapped
  public static void main(String[] arguments) throws IOException {
    try (Communicator all = Communicators.open()) {
      new PartitionedRanks(all.rank()).run(all);
    }
  }

  private void run(Communicator all) throws IOException {
    for (int i = 0; i < WARM_UP; i++) {
      checkSum(all, 10);
    }
    say("in " + DyingRanks.directory());
    say("got " + failure(() -> reduceForEver(all)));
    Communicator rest;
    try {
      rest = all.shrink().communicator();
    } catch (CommException e) {
      say("is out: " + text(e));
      toldToEnd.join();
      say("still gets " + failure(() -> checkSum(all, 10)));
      say("is still out: " + failure(() -> all.shrink().communicator().close()));
      return;
    }
    try (rest) {
      goOn(rest);
    }
  }

  private void reduceForEver(Communicator all) {
    while (true) {
      checkSum(all, 10);
    }
  }

  private void goOn(Communicator rest) {
    boolean ends = false;
    while (!ends) {
      checkSum(rest, 3);
      ends = rest.allReduce(toldToEnd.isDone() ? 1L : 0L, MAX) == 1;
    }
    for (int i = 0; i < MORE; i++) {
      checkSum(rest, 3);
    }
    say("goes on as %d of %d".formatted(rest.rank(), rest.size()));
  }

  /// Sums up what the ranks have: rank `r` of the launch `r + 1`.
  private void checkSum(Communicator communicator, float expected) {
    float[] data = new float[1000];
    Arrays.fill(data, rank + 1);
    communicator.allReduce(data, SUM);
    for (float each : data) {
      if (each != expected) {
        throw new AssertionError("rank %d: %s (expected: %s)".formatted(rank, each, expected));
      }
    }
  }

  private static String failure(Runnable call) {
    try {
      call.run();
      return "nothing";
    } catch (CommException e) {
      return text(e);
    }
  }

  private static String text(CommException failure) {
    return failure.getClass().getSimpleName() + ": " + failure.getMessage();
  }

  private void say(String what) {
    System.out.println("rank " + rank + " " + what);
  }

  private static void readInput() {
    try {
      System.in.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
