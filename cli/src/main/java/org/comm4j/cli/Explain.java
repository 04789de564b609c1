package org.comm4j.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.function.IntFunction;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.comm4j.api.Backends;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.Partition;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.comm4j.core.algorithm.Algorithm;
import org.comm4j.core.algorithm.Algorithms;
import org.comm4j.core.algorithm.Choice;
import org.comm4j.core.engine.Shapes;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.schedule.Cost;
import org.comm4j.core.schedule.Hosts;
import org.comm4j.core.schedule.Schedule;
import org.comm4j.core.schedule.ScheduleText;
import org.comm4j.core.schedule.Shape;
import org.comm4j.core.schedule.Step;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// Says which algorithm does a collective, why, what it costs, and what each rank does.
@Command(
    name = "explain",
    mixinStandardHelpOptions = true,
    modelTransformer = RankOptions.OfBackends.class,
    description = {
      "Say which algorithm does a collective, why, what it costs, and what each rank does.",
      "",
      "It needs no ranks, and the backend need not be ready here. One that has algorithms of its own",
      "(--backend mpi, and cuda for data on devices) says in a sentence what it does; the plans are",
      "those of the others."
    })
final class Explain implements Callable<Integer> {
  /// What a rank of shm and local can publish at once, unless their windows are made smaller.
  private static final String USUAL_WINDOW = "1MiB";

  private static final int MOST_RANKS = 1 << 20;

  /// Beyond, counting takes longer than people wait; it keeps something for each pair of ranks.
  private static final long MOST_COUNTED_RANKS = 256;

  private static final long MOST_COUNTED_ROUNDS = 1 << 20;

  /// A picture of more fits on no screen.
  private static final int MOST_PICTURED_RANKS = 8;

  private static final int MOST_PICTURED_ROUNDS = 16;

  private final Map<String, String> environment;
  private boolean sharesMemory; // where all ranks are on one host

  @Spec @Nullable CommandSpec spec;

  @Parameters(
      index = "0",
      paramLabel = "OPERATION",
      converter = Names.Kind.class,
      description = "For example allReduce.")
  CollectiveKind kind = CollectiveKind.ALL_REDUCE;

  @Option(
      names = {"-n", "--ranks"},
      required = true,
      paramLabel = "N",
      description = "How many ranks.")
  int ranks;

  @ArgGroup(exclusive = true)
  @Nullable Amount amount;

  /// How much data.
  static final class Amount {
    @Option(
        names = "--count",
        paramLabel = "N",
        description =
            "Elements of a rank's buffer; of gather and allGather what a rank contributes, of"
                + " scatter and reduceScatter what it gets, of allToAll what it sends to each.")
    @Nullable Long count;

    @Option(
        names = "--bytes",
        paramLabel = "SIZE",
        converter = Sizes.One.class,
        description = "The same in bytes; 1MiB unless one of the two is given.")
    @Nullable Long bytes;
  }

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
      description = "How a reduction combines elements; ${DEFAULT-VALUE} unless given.")
  ReduceOp.Predefined op = ReduceOp.Predefined.SUM;

  @Option(names = "--root", defaultValue = "0", paramLabel = "RANK", description = "The root.")
  int root;

  @Option(
      names = "--ordered",
      description =
          "Reduce as the left fold over ranks, as COMM_REDUCTION=ordered does, which counts too.")
  boolean ordered;

  @Option(
      names = {"--windows", "--window"},
      defaultValue = USUAL_WINDOW,
      paramLabel = "SIZE",
      converter = Sizes.One.class,
      description =
          "How much a rank can publish at once for its peers to read; 0 where they can't, as on a"
              + " network. ${DEFAULT-VALUE} unless given, as on shm and local; for ranks of one host 0"
              + " where --backend names one of messages alone.")
  long windowBytes;

  @Option(
      names = "--ranks-per-host",
      paramLabel = "N",
      description =
          "How many ranks, one after the other, are on one host and read each other's windows; to"
              + " others they send messages. All unless given.")
  @Nullable Integer ranksPerHost;

  @Option(
      names = "--algorithm",
      paramLabel = "NAME",
      description = "Explain this one in place of the one that is chosen.")
  @Nullable String algorithm;

  @Option(
      names = "--backend",
      paramLabel = "NAME",
      description =
          "Which backend: aeron has messages alone where all ranks are on one host, and one that chooses"
              + " for itself says which way the call goes on it. COMM_BACKEND unless given.")
  @Nullable String backend; // read with the other settings

  @Option(
      names = "--rank",
      paramLabel = "RANK",
      description = "Whose plan to show; everybody's unless given.")
  @Nullable Integer rank;

  @Option(
      names = "--limit",
      defaultValue = "200",
      paramLabel = "STEPS",
      description = "How many steps to show at most; ${DEFAULT-VALUE} unless given.")
  int limit;

  @Option(
      names = "--format",
      defaultValue = "table",
      description = "table, json or csv (the steps only); ${DEFAULT-VALUE} unless given.")
  Listing.Format format = Listing.Format.TABLE;

  Explain() {
    this(Environment.all());
  }

  Explain(Map<String, String> environment) {
    this.environment = Map.copyOf(environment);
  }

  @Override
  public Integer call() {
    CommandSpec own = Objects.requireNonNull(spec);
    check(own);
    long count = count(own);
    CommConfig config = config(own);
    ordered = kind.isReducing() && config.reduction() == Reduction.ORDERED;
    Optional<String> way = way(count, config);
    if (way.isPresent()) {
      printWay(own.commandLine().getOut(), way.get());
      return ExitCode.FINE;
    }
    sharesMemory = sharesMemory(own, config);
    Shape shape = shape(root, count);
    Choice choice = choice(own, config, shape);
    List<PlannedRound> rounds = new ArrayList<>();
    long leftOut = collect(choice.algorithm(), count, rounds);
    PrintWriter out = own.commandLine().getOut();
    switch (format) {
      case TABLE -> printText(out, shape, choice, rounds, leftOut);
      case JSON -> out.println(Listing.JSON.toJson(json(shape, choice, rounds, leftOut)));
      case CSV -> steps(rounds).print(format, out);
    }
    out.flush();
    if (format == Listing.Format.CSV && leftOut > 0) {
      own.commandLine().getErr().println("comm-cli: " + leftOut(leftOut));
    }
    return ExitCode.FINE;
  }

  /// The user's settings, as a communicator would have them, with what is asked.
  private CommConfig config(CommandSpec own) {
    CommConfig config = Environment.config(environment, RankOptions.given(own));
    return ordered ? config.toBuilder().reduction(Reduction.ORDERED).build() : config;
  }

  /// What a backend says that runs no plans of ours.
  private Optional<String> way(long count, CommConfig config) {
    return Backends.explain(
        kind.label(), type, kind.isReducing() ? op : null, type.bytes(count), ranks, config);
  }

  private void printWay(PrintWriter out, String way) {
    switch (format) {
      case TABLE -> out.println(way);
      case JSON -> out.println(Listing.JSON.toJson(Map.of("way", way)));
      case CSV -> new Listing("way").row(way).print(format, out);
    }
    out.flush();
  }

  /// Whether the ranks of a launch on one host read each other's windows: not on a backend of
  /// messages alone, unless the command line says how large they are.
  private boolean sharesMemory(CommandSpec own, CommConfig config) {
    return config.backend().equals(CommConfig.AUTO)
        || own.commandLine().getParseResult().hasMatchedOption("--windows")
        || Backends.availableBackends(config).stream()
            .filter(each -> each.name().equals(config.backend()))
            .allMatch(each -> each.capabilities().contains(Capability.SHARED_MEMORY));
  }

  // --- what is asked ---

  private void check(CommandSpec own) {
    if (ranks < 1 || ranks > MOST_RANKS) {
      throw wrong(own, "-n: %d (expected: 1..%d ranks)".formatted(ranks, MOST_RANKS));
    }
    if (root < 0 || root >= ranks) {
      throw wrong(own, "--root: %d (expected: 0..%d)".formatted(root, ranks - 1));
    }
    Integer shown = rank;
    if (shown != null && (shown < 0 || shown >= ranks)) {
      throw wrong(own, "--rank: %d (expected: 0..%d)".formatted(shown, ranks - 1));
    }
    Integer perHost = ranksPerHost;
    if (perHost != null && perHost < 1) {
      throw wrong(own, "--ranks-per-host: %d (expected: 1 or more)".formatted(perHost));
    }
    if (limit < 0) {
      throw wrong(own, "--limit: %d (expected: 0 or more steps)".formatted(limit));
    }
    if (!kind.isReducing() && own.commandLine().getParseResult().hasMatchedOption("--op")) {
      throw wrong(
          own,
          "--op: %s, for %s (expected: with one of %s, which combine elements)"
              .formatted(Names.of(op), kind.label(), labels(CollectiveKind::isReducing)));
    }
    if (!kind.isRooted() && own.commandLine().getParseResult().hasMatchedOption("--root")) {
      throw wrong(
          own,
          "--root: %d, for %s (expected: with one of %s, which have a root)"
              .formatted(root, kind.label(), labels(CollectiveKind::isRooted)));
    }
    if (!kind.isReducing() && ordered) {
      throw wrong(
          own,
          "--ordered, for %s (expected: with one of %s, which combine elements)"
              .formatted(kind.label(), labels(CollectiveKind::isReducing)));
    }
    if (kind.isReducing() && !op.supports(type)) {
      throw wrong(
          own,
          "--op: %s is not defined for %s (expected: one of %s); choose another --op or --dtype"
              .formatted(Names.of(op), Names.of(type), opsOf(type)));
    }
  }

  private static String labels(Predicate<CollectiveKind> which) {
    return Arrays.stream(CollectiveKind.values())
        .filter(which)
        .map(CollectiveKind::label)
        .collect(Collectors.joining(", "));
  }

  private static List<String> opsOf(DataType type) {
    return Arrays.stream(ReduceOp.Predefined.values())
        .filter(each -> each.supports(type))
        .map(Names::of)
        .toList();
  }

  private static ParameterException wrong(CommandSpec own, String message) {
    return new ParameterException(own.commandLine(), message);
  }

  private long count(CommandSpec own) {
    Long elements = amount == null ? null : amount.count;
    Long bytes = amount == null ? Long.valueOf(1 << 20) : amount.bytes;
    if (kind == CollectiveKind.BARRIER) {
      return 0;
    }
    if (elements != null && elements < 0) {
      throw wrong(own, "--count: %d (expected: 0 or more elements)".formatted(elements));
    }
    if (bytes != null && bytes % type.bytes() != 0) {
      throw wrong(
          own,
          "--bytes: %d (expected: a multiple of %d, the size of %s); or give --count"
              .formatted(bytes, type.bytes(), Names.of(type)));
    }
    long count = elements != null ? elements : bytes == null ? 0 : bytes / type.bytes();
    if (count > Long.MAX_VALUE / 32 / ranks) {
      throw wrong(own, "--count: %d (expected: buffers of less than 2^58 bytes)".formatted(count));
    }
    return count;
  }

  /// The shape as a rank sees it.
  private Shape shape(int ofRank, long count) {
    return Shapes.even(
        kind,
        ofRank,
        ranks,
        count,
        root,
        type,
        op,
        ordered ? Reduction.ORDERED : Reduction.FAST,
        areOnOneHost() && sharesMemory ? windowBytes : 0,
        hosts());
  }

  private boolean areOnOneHost() {
    Integer perHost = ranksPerHost;
    return perHost == null || perHost >= ranks;
  }

  private @Nullable Hosts hosts() {
    Integer perHost = ranksPerHost;
    return perHost == null || areOnOneHost() || perHost == 1 || windowBytes == 0
        ? null
        : Hosts.of(IntStream.range(0, ranks).map(each -> each / perHost).toArray(), windowBytes);
  }

  private Choice choice(CommandSpec own, CommConfig config, Shape shape) {
    Choice usual = new Selector(Tuning.of(config)).choose(shape);
    String name = algorithm;
    if (name == null) {
      return usual;
    }
    Algorithm named =
        Algorithms.find(kind, name)
            .orElseThrow(() ->
                wrong(
                    own,
                    "--algorithm: '%s' (expected: one of %s for %s)"
                        .formatted(name, names(Algorithms.of(kind)), kind.label())));
    if (!named.supports(shape)) {
      throw wrong(
          own,
          "--algorithm: '%s' can't do this (expected: one of %s)"
              .formatted(name, names(supporting(shape))));
    }
    return new Choice(
        named, "asked for; the choice would be %s".formatted(usual.algorithm().name()));
  }

  private static List<String> names(List<Algorithm> algorithms) {
    return algorithms.stream().map(Algorithm::name).toList();
  }

  private List<Algorithm> supporting(Shape shape) {
    return Algorithms.of(kind).stream().filter(each -> each.supports(shape)).toList();
  }

  // --- the answer ---

  /// A round that has steps.
  ///
  /// @param stepsLeftOut how many come behind these
  private record PlannedRound(int rank, int round, List<String> steps, int stepsLeftOut) {}

  /// Collects rounds until there are as many steps as the limit says.
  ///
  /// @return how many rounds are left out
  private long collect(Algorithm chosen, long count, List<PlannedRound> rounds) {
    Integer only = rank;
    int first = only == null ? 0 : only;
    int end = only == null ? ranks : only + 1;
    int stepsLeft = limit;
    for (int each = first; each < end; each++) {
      Schedule plan = chosen.plan(shape(each, count), each);
      for (int index = 0; index < plan.rounds(); index++) {
        if (stepsLeft == 0) {
          // counting those of thousands of ranks is not worth the time: all have about as many
          return plan.rounds() - index + (long) (end - 1 - each) * plan.rounds();
        }
        List<Step> steps = plan.round(index).steps();
        int shown = Math.min(stepsLeft, steps.size());
        if (shown > 0) {
          rounds.add(
              new PlannedRound(
                  each,
                  index,
                  steps.stream().limit(shown).map(this::text).toList(),
                  steps.size() - shown));
        }
        stepsLeft -= shown;
      }
    }
    return 0;
  }

  /// Plans are for any operator; of those only averages are divided.
  private String text(Step step) {
    if (op == ReduceOp.Predefined.AVERAGE) {
      return ScheduleText.of(step);
    }
    return ScheduleText.of(
        switch (step) {
          case Step.Finish finish -> new Step.Finish(finish.from(), finish.to(), 1);
          case Step.FinishPeer finish ->
              new Step.FinishPeer(
                  finish.peer(),
                  finish.stage(),
                  finish.from(),
                  finish.own(),
                  finish.to(),
                  finish.ownFirst(),
                  1);
          case Step.Local _, Step.Message _, Step.Peer _ -> step;
        });
  }

  private String leftOut(long rounds) {
    return "%s%d more rounds are left out; --rank shows one rank, --limit more steps"
        .formatted(rank == null ? "about " : "", rounds);
  }

  /// Empty where counting would take long.
  private Optional<Cost> cost(Algorithm of, long count) {
    IntFunction<Schedule> plans = each -> of.plan(shape(each, count), each);
    long rounds = plans.apply(root).rounds() + (long) plans.apply(ranks - 1).rounds();
    return ranks > MOST_COUNTED_RANKS || rounds * ranks > MOST_COUNTED_ROUNDS
        ? Optional.empty()
        : Optional.of(Cost.of(shape(0, count), plans));
  }

  private void printText(
      PrintWriter out, Shape shape, Choice choice, List<PlannedRound> rounds, long leftOut) {
    out.println(question(shape));
    out.println("algorithm: " + choice.algorithm().name());
    out.println("why:       " + choice.reason());
    out.println("order:     " + order(choice.algorithm()));
    out.println();
    candidates(shape, choice).print(Listing.Format.TABLE, out);
    out.println();
    out.println(
        "latency: messages, or looks at peers' flags, of which each waits for the one before it;"
            + " the rest is of the busiest rank");
    printPicture(out, choice.algorithm(), amountCount(shape));
    int last = -1;
    for (PlannedRound each : rounds) {
      if (each.rank() != last) {
        out.println();
        out.println("rank " + each.rank());
        last = each.rank();
      }
      out.println(
          "  round %d: %s%s"
              .formatted(
                  each.round(),
                  String.join(" | ", each.steps()),
                  each.stepsLeftOut() == 0
                      ? ""
                      : " | … %d more steps".formatted(each.stepsLeftOut())));
    }
    if (leftOut > 0) {
      out.println("  … " + leftOut(leftOut));
    }
  }

  private void printPicture(PrintWriter out, Algorithm chosen, long count) {
    IntFunction<Schedule> plans = each -> chosen.plan(shape(each, count), each);
    if (rank == null
        && ranks <= MOST_PICTURED_RANKS
        && plans.apply(root).rounds() <= MOST_PICTURED_ROUNDS) {
      out.println();
      out.print(ScheduleText.picture(ranks, plans));
    }
  }

  private String question(Shape shape) {
    StringBuilder text = new StringBuilder(kind.label());
    if (kind != CollectiveKind.BARRIER) {
      long count = amountCount(shape);
      text.append(" of %d × %s (%s)".formatted(count, type, Sizes.text(type.bytes(count))));
    }
    if (kind.isReducing()) {
      text.append(" with ").append(Names.of(op)).append(ordered ? ", ordered," : "");
    }
    if (kind.isRooted()) {
      text.append(", root ").append(root).append(',');
    }
    text.append(" on ").append(ranks).append(ranks == 1 ? " rank" : " ranks");
    boolean windows = shape.stageBytes() > 0;
    text.append(windows ? ", windows of " + Sizes.text(windowBytes) : ", messages only");
    return shape.hosts() == null
        ? text.toString()
        : text.append(", hosts of %d ranks".formatted(ranksPerHost)).toString();
  }

  private static long amountCount(Shape shape) {
    Partition parts = shape.parts();
    return parts == null ? shape.count() : parts.count(0);
  }

  private static String order(Algorithm algorithm) {
    return switch (algorithm.order()) {
      case NONE -> "nothing is combined, or in any order with the same bits";
      case LEFT_FOLD -> "the left fold over ranks";
      case FIXED -> "an order of its own, the same on all ranks and in every run";
    };
  }

  /// Every algorithm that could do it, with its cost; the chosen one first.
  private Listing candidates(Shape shape, Choice choice) {
    Listing listing =
        new Listing(
            "algorithm",
            "chosen",
            "over",
            "order",
            "rounds",
            "latency",
            "messages",
            "sent_bytes",
            "read_bytes",
            "temporary_bytes");
    for (Map<String, @Nullable Object> row : rows(shape, choice)) {
      listing.row(row.values().toArray());
    }
    return listing;
  }

  private List<Map<String, @Nullable Object>> rows(Shape shape, Choice choice) {
    List<Algorithm> algorithms = new ArrayList<>(supporting(shape));
    algorithms.sort(
        Comparator.comparing((Algorithm each) -> !each.name().equals(choice.algorithm().name())));
    List<Map<String, @Nullable Object>> rows = new ArrayList<>();
    for (Algorithm each : algorithms) {
      Optional<Cost> cost = cost(each, amountCount(shape));
      Schedule plan = each.plan(shape, root);
      Map<String, @Nullable Object> row = new LinkedHashMap<>();
      row.put("algorithm", each.name());
      row.put("chosen", each.name().equals(choice.algorithm().name()));
      row.put("over", over(each));
      row.put("order", each.order().name().toLowerCase(Locale.ROOT).replace('_', '-'));
      row.put("rounds", plan.rounds());
      row.put("latency", cost.map(Cost::latency).orElse(null));
      row.put("messages", cost.map(Cost::messages).orElse(null));
      row.put("sent_bytes", cost.map(Cost::sentBytes).orElse(null));
      row.put("read_bytes", cost.map(Cost::readBytes).orElse(null));
      row.put(
          "temporary_bytes",
          plan.workCount() * shape.accumulatorBytes() + plan.scratchCount() * shape.valueBytes());
      rows.add(row);
    }
    return rows;
  }

  private static String over(Algorithm algorithm) {
    if (!algorithm.usesPeerMemory()) {
      return "messages";
    }
    return algorithm.usesMessages() ? "memory+messages" : "memory";
  }

  private Map<String, @Nullable Object> json(
      Shape shape, Choice choice, List<PlannedRound> rounds, long leftOut) {
    Map<String, @Nullable Object> json = new LinkedHashMap<>();
    json.put("operation", kind.label());
    json.put("ranks", ranks);
    json.put("count", amountCount(shape));
    json.put("dtype", kind == CollectiveKind.BARRIER ? null : Names.of(type));
    json.put("op", kind.isReducing() ? Names.of(op) : null);
    json.put("root", kind.isRooted() ? root : null);
    json.put("ordered", shape.ordered());
    json.put("window_bytes", shape.stageBytes());
    json.put("ranks_per_host", ranksPerHost);
    json.put("algorithm", choice.algorithm().name());
    json.put("reason", choice.reason());
    json.put("algorithms", rows(shape, choice));
    json.put("schedule", rounds);
    json.put("rounds_left_out", leftOut);
    return json;
  }

  private static Listing steps(List<PlannedRound> rounds) {
    Listing listing = new Listing("rank", "round", "step");
    for (PlannedRound each : rounds) {
      each.steps().forEach(step -> listing.row(each.rank(), each.round(), step));
    }
    return listing;
  }
}
