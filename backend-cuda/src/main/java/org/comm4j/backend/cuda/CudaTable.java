package org.comm4j.backend.cuda;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.LongStream;
import org.comm4j.api.CommConfig;
import org.comm4j.core.schedule.CollectiveKind;
import org.comm4j.core.select.Tuning;

/// Which kernel does an all-reduce, on at most how many blocks: the first line that fits the call and
/// whose kernel can do it, of the user's `COMM_TUNING` and then of ours. Immutable.
///
///     cuda: allReduce arch>=90 size<=4 bytes<=1MiB one-stage blocks=64
///
/// Conditions are on `size`, `bytes` and `arch`, the lowest compute capability of the ranks' devices:
/// 90 for sm_90. All ranks must have the same lines.
///
/// Ours are Mojo's and TVM's published limits, not measured here. Their blocks are Mojo's, halved,
/// since ours have twice as many threads.
final class CudaTable {
  /// Up to how many blocks a line can allow.
  private static final int MOST_BLOCKS = Window.MAX_BLOCKS;

  private static final String BLOCKS = "blocks=";

  private static final List<Rule> OURS =
      List.of(
          ours("bytes<=8KiB low-latency", "little: each word goes with its flag, nobody meets"),
          ours("size<=2 one-stage blocks=256", "two ranks: both read all, and meet once"),
          ours("arch>=100 size<=4 bytes<=4MiB one-stage blocks=256", "reading all is no slower"),
          ours("arch>=100 size<=8 bytes<=2MiB one-stage blocks=256", "reading all is no slower"),
          ours("arch>=100 two-stage blocks=256", "large: each rank reduces a part"),
          ours("arch>=90 size<=8 bytes<=512KiB one-stage blocks=108", "reading all is no slower"),
          ours("size<=4 bytes<=512KiB one-stage blocks=108", "reading all is no slower"),
          ours("bytes<=256KiB one-stage blocks=108", "reading all is no slower"),
          ours("two-stage blocks=108", "large: each rank reduces a part"));

  private final List<Rule> rules;

  private CudaTable(List<Rule> rules) {
    this.rules = List.copyOf(rules);
  }

  /// How the ranks share the work.
  enum Form {
    /// Each sends all its data to all, in lines.
    LOW_LATENCY,
    /// Each reduces everything.
    ONE_STAGE,
    /// Each reduces a part, and fetches the others'.
    TWO_STAGE;

    String word() {
      return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
  }

  /// What all ranks know alike of an all-reduce.
  ///
  /// @param arch the lowest compute capability of their devices, 10 × major + minor
  /// @param size how many ranks
  /// @param hasLines whether lines can be used: its elements and operator fit, and its number does
  /// @param chunkBytes what a rank can copy at once for the others to read
  record Call(int arch, int size, long bytes, boolean hasLines, long chunkBytes) {
    private long fact(Tuning.Fact fact) {
      return switch (fact) {
        case SIZE -> size;
        case BYTES -> bytes;
        case ARCH -> arch;
      };
    }

    private Call on(int architecture) {
      return new Call(architecture, size, bytes, hasLines, chunkBytes);
    }
  }

  /// A line.
  ///
  /// @param maxBlocks how many blocks its kernel has at most
  /// @param reason why, for `explain`
  record Rule(Tuning.Line line, Form form, int maxBlocks, String reason) {
    private boolean can(Call call) {
      return switch (form) {
        case LOW_LATENCY -> call.hasLines && call.bytes > 0 && call.bytes <= DeviceGroup.LINE_BYTES;
        case ONE_STAGE -> call.bytes <= call.chunkBytes; // an input in place is copied first
        case TWO_STAGE -> call.bytes > 0; // else it is no kernel, and nobody meets
      };
    }

    @Override
    public String toString() {
      return "%s on at most %d blocks (%s)".formatted(form.word(), maxBlocks, reason);
    }
  }

  private static Rule ours(String text, String reason) {
    Tuning line = Tuning.of(CudaProvider.NAME + ": allReduce " + text);
    return rule(lines(line).getFirst(), Optional.of(reason));
  }

  /// The user's lines before ours.
  ///
  /// @throws IllegalArgumentException if the file can't be read or a line of this backend's is
  ///   wrong
  static CudaTable of(CommConfig config) {
    return of(Tuning.of(config));
  }

  static CudaTable of(Tuning tuning) {
    List<Rule> rules = new ArrayList<>();
    lines(tuning).forEach(line -> rules.add(rule(line, Optional.empty())));
    rules.addAll(OURS);
    return new CudaTable(rules);
  }

  private static List<Tuning.Line> lines(Tuning tuning) {
    return tuning.linesOf(CudaProvider.NAME, EnumSet.allOf(Tuning.Fact.class));
  }

  /// @param reason the line itself unless given
  private static Rule rule(Tuning.Line line, Optional<String> reason) {
    if (line.kind() != CollectiveKind.ALL_REDUCE) {
      throw new IllegalArgumentException(
          "%s: %s has no choice on %s (expected: allReduce)"
              .formatted(line.place(), line.kind().label(), CudaProvider.NAME));
    }
    List<String> choice = line.choice();
    if (choice.isEmpty() || choice.size() > 2) {
      throw new IllegalArgumentException(
          line + " (expected: allReduce, conditions, algorithm, perhaps blocks=64)");
    }
    int blocks = choice.size() == 1 ? MOST_BLOCKS : blocks(line, choice.get(1));
    return new Rule(line, form(line, choice.getFirst()), blocks, reason.orElse(line.toString()));
  }

  private static Form form(Tuning.Line line, String word) {
    List<String> words = new ArrayList<>();
    for (Form form : Form.values()) {
      if (form.word().equals(word)) {
        return form;
      }
      words.add(form.word());
    }
    throw new IllegalArgumentException(
        "%s: '%s' is no algorithm of allReduce on %s (expected: one of %s)"
            .formatted(line.place(), word, CudaProvider.NAME, String.join(", ", words)));
  }

  private static int blocks(Tuning.Line line, String word) {
    if (word.matches(BLOCKS + "\\d{1,4}")) {
      int blocks = Integer.parseInt(word, BLOCKS.length(), word.length(), 10);
      if (blocks >= 1 && blocks <= MOST_BLOCKS) {
        return blocks;
      }
    }
    throw new IllegalArgumentException(
        "%s: '%s' (expected: blocks=1 to blocks=%d, or nothing)"
            .formatted(line.place(), word, MOST_BLOCKS));
  }

  /// {@return the first line that fits and whose kernel can do the call} Ours have one for each.
  Rule choose(Call call) {
    return choose(call, _ -> {});
  }

  private Rule choose(Call call, Consumer<Rule> passedOver) {
    for (Rule rule : rules) {
      if (rule.line.holds(call::fact)) {
        if (rule.can(call)) {
          return rule;
        }
        passedOver.accept(rule);
      }
    }
    throw new AssertionError(call + ": no line of ours fits");
  }

  /// Says what is chosen on which devices, and what was passed over.
  ///
  /// @param call on any of them
  String explain(Call call) {
    List<String> choices = new ArrayList<>();
    String last = "";
    for (int arch : architectures()) {
      String choice = explained(call.on(arch));
      if (!choice.equals(last)) {
        choices.add("from sm_%d on %s".formatted(arch, choice));
        last = choice;
      }
    }
    return choices.size() == 1 ? last : String.join("; ", choices);
  }

  /// {@return on which devices the choice may be another one than on those before}
  private int[] architectures() {
    LongStream changes = rules.stream().flatMapToLong(rule -> rule.line.changes(Tuning.Fact.ARCH));
    return LongStream.concat(LongStream.of(CudaDevice.OLDEST_CAPABILITY), changes)
        .filter(arch -> arch >= CudaDevice.OLDEST_CAPABILITY && arch <= Integer.MAX_VALUE)
        .distinct()
        .sorted()
        .mapToInt(Math::toIntExact)
        .toArray();
  }

  private String explained(Call call) {
    List<String> passedOver = new ArrayList<>();
    Rule chosen =
        choose(
            call,
            rule ->
                passedOver.add(
                    "; not %s, which can't do it (%s)".formatted(rule.form.word(), rule.reason)));
    return chosen + String.join("", passedOver);
  }
}
