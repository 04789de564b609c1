package org.comm4j.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.TransportFailedException;
import org.comm4j.guice.CommLifecycle;
import org.jspecify.annotations.Nullable;

/// What each rank of [Bench] runs: rank 0 prints.
final class BenchProgram {
  private final BenchPlan plan;
  private final Communicator communicator;
  private final BenchHarness harness;
  private final BenchReport report;
  private final boolean isPrinting;
  private long wrong;

  private BenchProgram(
      BenchPlan plan, Communicator communicator, Optional<SharedLines> lines, BenchReport report) {
    this.plan = plan;
    this.communicator = communicator;
    this.harness = new BenchHarness(communicator, lines, plan);
    this.report = report;
    this.isPrinting = communicator.rank() == 0;
  }

  /// Joins, measures and prints.
  ///
  /// @param arguments of [BenchPlan], then settings
  /// @throws IOException if the result can't be written
  public static void main(String[] arguments) throws IOException {
    Sentences.forUncaught();
    BenchPlan plan = BenchPlan.of(arguments);
    CommConfig config = Environment.config(arguments, BenchPlan.ARGUMENTS);
    try (CommLifecycle lifecycle = Wiring.lifecycle(config)) {
      Communicator communicator = lifecycle.communicator();
      Optional<SharedLines> lines = SharedLines.of(communicator);
      try {
        var out = new PrintWriter(System.out, false, StandardCharsets.UTF_8);
        String memory =
            plan.memory() == BenchMemory.NATIVE
                ? ""
                : "+" + plan.memory().name().toLowerCase(Locale.ROOT);
        var report =
            new BenchReport(
                plan.format(),
                out,
                communicator.backend() + memory,
                communicator.size(),
                communicator.rank() == 0 ? BenchTimes.read(plan.times()) : new BenchTimes());
        new BenchProgram(plan, communicator, lines, report).run();
      } catch (Throwable e) {
        lines.ifPresent(SharedLines::fail);
        throw e;
      }
      communicator.barrier();
      lines.ifPresent(SharedLines::close);
    }
  }

  private void run() throws IOException {
    if (isPrinting) {
      report.begin();
    }
    for (BenchOperation operation : plan.operations()) {
      if (isPossible(operation)) {
        measure(operation);
      }
    }
    if (isPrinting) {
      report.end();
      boolean isNothing = report.times().isEmpty();
      if (isNothing) {
        say("nothing was measured");
      }
      Files.writeString(plan.result(), isNothing ? "nothing" : Long.toString(wrong));
      report.times().write(plan.times());
    }
  }

  private boolean isPossible(BenchOperation operation) {
    if (!operation.isOfMessages()) {
      return true;
    }
    if (communicator.size() < 2) {
      say(operation.label() + " is left out: it needs 2 ranks");
      return false;
    }
    if (!communicator.capabilities().supports(Capability.POINT_TO_POINT)) {
      say(operation.label() + " is left out: the backend has no messages between two ranks");
      return false;
    }
    return true;
  }

  private void measure(BenchOperation operation) {
    DataType type = operation.isOfMessages() ? DataType.UINT8 : plan.type();
    for (Map.Entry<Long, Long> checked : warmUp(operation, type).entrySet()) {
      long bytes = checked.getKey();
      try (BenchCase made = make(operation, type, bytes)) {
        if (made == null) {
          return;
        }
        BenchHarness.Time time =
            harness.measure(made.call(), operation.isRooted()).dividedBy(made.unitsPerCall());
        if (isPrinting) {
          report.add(
              new BenchReport.Point(
                  operation,
                  operation == BenchOperation.BARRIER ? "none" : Names.of(type),
                  operation.isReduction() ? Names.of(plan.op()) : "none",
                  bytes,
                  type.countIn(bytes),
                  time,
                  checked.getValue()));
        }
        communicator.barrier(); // nobody uses the memory any more
      }
    }
  }

  /// Looks at the results of all sizes, and calls them in turn until they are compiled: what only
  /// some of them need would be compiled while others are measured, and take their processors.
  ///
  /// @return how many elements of each were wrong; without sizes for which there is no memory
  private Map<Long, Long> warmUp(BenchOperation operation, DataType type) {
    var bad = new LinkedHashMap<Long, Long>();
    List<Long> sizes = operation == BenchOperation.BARRIER ? List.of(0L) : plan.sizes();
    BenchHarness.WarmUp warmUp = harness.new WarmUp();
    do {
      for (long bytes : sizes) {
        try (BenchCase made = make(operation, type, bytes)) {
          if (made == null) {
            break;
          }
          bad.computeIfAbsent(bytes, _ -> check(operation, bytes, made));
          harness.warmUp(made.call(), operation.isRooted());
          communicator.barrier(); // nobody uses the memory any more
        }
      }
      sizes = List.copyOf(bad.keySet());
    } while (!sizes.isEmpty() && !warmUp.isOver());
    return bad;
  }

  private long check(BenchOperation operation, long bytes, BenchCase made) {
    long bad = communicator.allReduce(made.check(), ReduceOp.SUM);
    if (bad > 0) {
      say("%s of %d bytes: %d WRONG elements".formatted(operation.label(), bytes, bad));
    }
    wrong += bad;
    return bad;
  }

  /// Makes a case, if all ranks have the memory for it.
  private @Nullable BenchCase make(BenchOperation operation, DataType type, long bytes) {
    BenchCase made = null;
    String problem = "";
    try {
      made =
          new BenchCase(
              communicator, operation, plan.memory(), type, plan.op(), type.countIn(bytes));
    } catch (TransportFailedException | OutOfMemoryError e) {
      problem = Sentences.of(e);
    }
    if (communicator.allReduce(made == null ? 1L : 0L, ReduceOp.MAX) == 0) {
      return made;
    }
    if (made != null) {
      made.close();
    }
    say(
        "%s is left out from %d bytes on: not enough memory%s"
            .formatted(
                operation.label(), bytes, problem.isEmpty() ? " on another rank" : ", " + problem));
    return null;
  }

  private void say(String sentence) {
    if (isPrinting) {
      System.err.println("comm-cli: " + sentence);
    }
  }
}
