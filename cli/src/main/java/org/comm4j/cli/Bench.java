package org.comm4j.cli;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.core.session.OwnFolder;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// Starts ranks and measures operations.
@Command(
    name = "bench",
    mixinStandardHelpOptions = true,
    modelTransformer = RankOptions.class,
    description = {
      "Start ranks and measure operations.",
      "",
      "Sizes are those of a rank's buffer; of gather, allgather and alltoall what a rank contributes"
          + " to each, of scatter and reduce_scatter what it gets, of pingpong and stream a message."
          + " Every element of every result is looked at once per size; exit code 1 if one is"
          + " wrong, or nothing could be measured.",
      "",
      "time is the median of the repetitions, algbw is bytes over time, and busbw is what a link"
          + " must carry for it, as in nccl-tests. xcore_ns is the time of a cache line between"
          + " ranks 0 and 1: compare only rows where it is about the same.",
      "",
      "The memory is the host's, on backend cuda too, which moves that as shm does; its kernels are"
          + " measured by backend-cuda/gpu-check."
    })
final class Bench implements Callable<Integer> {
  @Spec @Nullable CommandSpec spec;

  @Parameters(
      index = "0",
      paramLabel = "OPERATION",
      converter = BenchOperation.Several.Converter.class,
      completionCandidates = BenchOperation.Labels.class,
      description = "One, several with commas between them, or all of: ${COMPLETION-CANDIDATES}.")
  BenchOperation.@Nullable Several operations; // no list: picocli hides why it can't be converted

  @Option(
      names = {"-n", "--ranks"},
      paramLabel = "N",
      description =
          "How many ranks; those of its launch where a launcher has started this process.")
  @Nullable Integer ranks;

  @Option(
      names = "--sizes",
      defaultValue = "8B..64MiB",
      paramLabel = "SIZES",
      converter = Sizes.Converter.class,
      description =
          "A size, a list, or a range in steps of ×4 (8B..64MiB*2: of ×2); may be given several"
              + " times; ${DEFAULT-VALUE} unless given.")
  List<Sizes> sizes = List.of();

  @Option(
      names = "--dtype",
      defaultValue = "f32",
      paramLabel = "TYPE",
      converter = Names.Type.class,
      description = "What the elements are; ${DEFAULT-VALUE} unless given.")
  DataType type = DataType.FLOAT32;

  @Option(
      names = "--op",
      defaultValue = "sum",
      converter = Names.Op.class,
      description = "How elements are combined; ${DEFAULT-VALUE} unless given.")
  ReduceOp.Predefined op = ReduceOp.Predefined.SUM;

  @Option(
      names = "--memory",
      defaultValue = "native",
      description =
          "native, heap (Java arrays) or allocated (the communicator's own, not where that is a"
              + " device's); ${DEFAULT-VALUE} unless given.")
  BenchMemory memory = BenchMemory.NATIVE;

  @Option(
      names = "--repetitions",
      defaultValue = "5",
      paramLabel = "N",
      description = "How often to measure each size; ${DEFAULT-VALUE} unless given.")
  int repetitions;

  @Option(
      names = "--time",
      defaultValue = "20",
      paramLabel = "MS",
      description = "How long one repetition takes; ${DEFAULT-VALUE} ms unless given.")
  long repetitionMs;

  @Option(
      names = "--iterations",
      defaultValue = "0",
      paramLabel = "N",
      description = "Calls of one repetition, in place of its time.")
  int iterations;

  @Option(
      names = "--warm-up",
      defaultValue = "4000",
      paramLabel = "MS",
      description =
          "How long at least to call an operation, all its sizes in turn, before it is measured."
              + " Where code is still being compiled then, it goes on, for about five times as long at"
              + " most. ${DEFAULT-VALUE} ms unless given.")
  long warmUpMs;

  @Option(
      names = "--format",
      defaultValue = "table",
      description = "table, json or csv; ${DEFAULT-VALUE} unless given.")
  Listing.Format format = Listing.Format.TABLE;

  @Option(
      names = "--beside",
      paramLabel = "VARIABLE=VALUE",
      description =
          "Measure all of it again in ranks that have this setting besides, and show how many times"
              + " as long it takes: COMM_CHECK=full, COMM_AERON_INTEGRITY=mac, ... May be given"
              + " several times, for settings to have together.")
  Map<String, String> beside = Map.of();

  Bench() {}

  @Override
  public Integer call() throws Exception {
    checkBeside();
    try (OwnFolder folder = LaunchFolder.create()) {
      Path result = Files.createFile(folder.path().resolve("result"));
      BenchPlan plan = plan(result, Files.createFile(folder.path().resolve("times")));
      int code = measure(plan, Map.of());
      if (code != ExitCode.FINE || beside.isEmpty()) {
        return code;
      }
      System.out.println("# the same with " + String.join(" ", settings()));
      return measure(plan, beside);
    }
  }

  private List<String> settings() {
    return beside.entrySet().stream()
        .map(each -> each.getKey() + "=" + each.getValue())
        .sorted()
        .toList();
  }

  private int measure(BenchPlan plan, Map<String, String> more) throws Exception {
    int code =
        RankOptions.run(
            Objects.requireNonNull(spec),
            BenchProgram.class,
            BenchProgram::main,
            plan.arguments(),
            more);
    String result = Files.readString(plan.result()); // empty where another rank prints
    return code == ExitCode.FINE && !result.isEmpty() && !result.equals("0")
        ? ExitCode.CHECK_FAILED
        : code;
  }

  private void checkBeside() {
    if (beside.isEmpty()) {
      return;
    }
    if (format != Listing.Format.TABLE) {
      throw refused(
          "--beside: given with --format %s (expected: a table, which alone has a column for it)"
              .formatted(format.name().toLowerCase(Locale.ROOT)));
    }
    if (RankOptions.areLaunched()) {
      throw refused(
          "--beside: given where a launcher has started the ranks (expected: that bench starts them, twice, by -n)");
    }
    beside.keySet().stream()
        .filter(Environment::isOfLaunch)
        .findFirst()
        .ifPresent(variable -> {
          throw refused(
              "--beside: %s (expected: a setting of the ranks; which ranks there are bench says itself)"
                  .formatted(variable));
        });
    try {
      CommConfig.Builder settings = CommConfig.builder();
      beside.forEach(settings::set);
    } catch (IllegalArgumentException e) {
      throw refused("--beside: " + Sentences.of(e));
    }
  }

  private ParameterException refused(String sentence) {
    return new ParameterException(Objects.requireNonNull(spec).commandLine(), sentence);
  }

  /// Those of the default range that are no multiples of the type's size are left out.
  private List<Long> sizes() {
    List<Long> all = sizes.stream().flatMap(each -> each.bytes().stream()).toList();
    return Objects.requireNonNull(spec).commandLine().getParseResult().hasMatchedOption("--sizes")
        ? all
        : all.stream().filter(size -> size % type.bytes() == 0).toList();
  }

  /// What was asked for.
  BenchPlan plan(Path result, Path times) {
    return new BenchPlan(
        Objects.requireNonNull(operations).operations(),
        sizes(),
        type,
        op,
        memory,
        format,
        repetitions,
        TimeUnit.MILLISECONDS.toNanos(repetitionMs),
        iterations,
        TimeUnit.MILLISECONDS.toNanos(warmUpMs),
        result,
        times);
  }
}
