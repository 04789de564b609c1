package org.comm4j.core.select;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.ToLongFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.OptionText;
import org.comm4j.core.algorithm.Algorithm;
import org.comm4j.core.algorithm.Algorithms;
import org.comm4j.core.algorithm.Choice;
import org.comm4j.core.algorithm.Facts;
import org.comm4j.core.schedule.CollectiveKind;

/// A user's own choices, which come before the built-in table. The first line that fits a call counts:
///
///     # collective, conditions that must all hold, algorithm
///     allReduce size<=8 bytes<=64KiB gather-fold
///     allReduce bytes>=1MiB ring
///     broadcast binomial
///
/// Conditions are on `size`, the ranks of the group, and `bytes`, what one rank's buffer or part has;
/// with `<=`, `>=`, `=`, and KiB, MiB, GiB or TiB behind a number. For gatherV, scatterV and allToAllV there is no
/// `bytes`: ranks know it differently and would choose differently. For the same reason all ranks must
/// have the same lines.
///
/// A line whose algorithm can't do a call (it has no ordered form and the call is ordered; it needs a
/// power of two; it reads windows and there are none) is passed over, and the choice's reason says so.
/// An error it is not: lines are about speed, and a file that serves one call must not break another.
/// A name that does not exist is an error at once.
///
/// A line that begins with a backend's name and a colon is about algorithms of that backend's own. It
/// is nothing here: the backend reads it ([#linesOf]).
public final class Tuning {
  private static final Pattern CONDITION = Pattern.compile("([a-z]+)(<=|>=|=)(.+)");

  /// What stands for all larger numbers: no memory has so many bytes.
  private static final long LARGEST = 1L << 60;

  private static final Pattern OF_BACKEND = Pattern.compile("([a-z][a-z0-9-]*):\\s*(.*)");

  private static final Set<Fact> FACTS = EnumSet.of(Fact.SIZE, Fact.BYTES);

  private final List<Rule> rules;
  private final List<BackendLine> ofBackends;

  private Tuning(List<Rule> rules, List<BackendLine> ofBackends) {
    this.rules = List.copyOf(rules);
    this.ofBackends = List.copyOf(ofBackends);
  }

  /// What a condition can be on.
  public enum Fact {
    /// How many ranks the group has.
    SIZE,
    /// Of one rank's buffer or part.
    BYTES,
    /// The lowest compute capability of the ranks' devices, 10 × major + minor: of some backends.
    ARCH;

    String word() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  private enum Comparison {
    AT_MOST,
    AT_LEAST,
    EQUAL
  }

  /// A condition of a line.
  private record Condition(Fact fact, Comparison comparison, long number) {
    boolean holds(long value) {
      return switch (comparison) {
        case AT_MOST -> value <= number;
        case AT_LEAST -> value >= number;
        case EQUAL -> value == number;
      };
    }

    /// From which values on it may hold where it did not, or not where it did.
    LongStream changes() {
      return switch (comparison) {
        case AT_MOST -> LongStream.of(number + 1);
        case AT_LEAST -> LongStream.of(number);
        case EQUAL -> LongStream.of(number, number + 1);
      };
    }
  }

  /// A line, read.
  public static final class Line {
    private final String place;
    private final String text;
    private final CollectiveKind kind;
    private final List<Condition> conditions;
    private final List<String> choice;

    private Line(
        String place,
        String text,
        CollectiveKind kind,
        List<Condition> conditions,
        List<String> choice) {
      this.place = place;
      this.text = text;
      this.kind = kind;
      this.conditions = List.copyOf(conditions);
      this.choice = List.copyOf(choice);
    }

    /// {@return where it stands, for messages}
    public String place() {
      return place;
    }

    /// {@return the collective that it is about}
    public CollectiveKind kind() {
      return kind;
    }

    /// {@return the words behind the conditions}
    public List<String> choice() {
      return choice;
    }

    /// {@return whether all conditions hold}
    ///
    /// @param facts of a call of this line's collective; only of those that the line may be about
    public boolean holds(ToLongFunction<Fact> facts) {
      for (Condition condition : conditions) {
        if (!condition.holds(facts.applyAsLong(condition.fact))) {
          return false;
        }
      }
      return true;
    }

    /// {@return from which values of a fact on the conditions may hold where they did not, or the
    /// reverse}
    public LongStream changes(Fact fact) {
      return conditions.stream()
          .filter(condition -> condition.fact == fact)
          .flatMapToLong(Condition::changes);
    }

    /// Where it stands and what it says.
    @Override
    public String toString() {
      return place + ": " + text;
    }
  }

  private record Rule(Line line, Algorithm algorithm) {
    boolean fits(Facts facts) {
      return facts.shape().kind() == line.kind && line.holds(fact -> value(facts, fact));
    }

    private static long value(Facts facts, Fact fact) {
      return switch (fact) {
        case SIZE -> facts.size();
        case BYTES -> facts.bytes();
        case ARCH -> throw new AssertionError("no line of core's is about devices");
      };
    }
  }

  /// A line that is not read yet.
  private record BackendLine(String backend, String place, String text) {}

  /// No choices: the built-in table alone.
  public static Tuning none() {
    return new Tuning(List.of(), List.of());
  }

  /// Lines as they would stand in a file.
  ///
  /// @throws IllegalArgumentException naming line, value and expectation
  public static Tuning of(String... lines) {
    return parse("tuning", List.of(lines));
  }

  /// The lines of the file that `COMM_TUNING` names, if it names one.
  ///
  /// @throws IllegalArgumentException as [#read] does
  public static Tuning of(CommConfig config) {
    return config.tuning().map(Tuning::read).orElseGet(Tuning::none);
  }

  /// A file, as `COMM_TUNING` names it.
  ///
  /// @throws IllegalArgumentException naming file, line, value and expectation; also where the file
  ///   can't be read
  public static Tuning read(Path file) {
    try {
      return parse(file.toString(), Files.readAllLines(file));
    } catch (IOException e) {
      throw new IllegalArgumentException(
          "COMM_TUNING: '%s' can't be read (expected: a text file of UTF-8): %s".formatted(file, e),
          e);
    }
  }

  private static Tuning parse(String source, List<String> lines) {
    List<Rule> rules = new ArrayList<>();
    List<BackendLine> ofBackends = new ArrayList<>();
    for (int index = 0; index < lines.size(); index++) {
      String text = textOf(lines.get(index));
      String place = source + ", line " + (index + 1);
      Matcher ofBackend = OF_BACKEND.matcher(text);
      if (ofBackend.matches()) {
        checkBackend(place, ofBackend.group(1));
        ofBackends.add(new BackendLine(ofBackend.group(1), place, ofBackend.group(2)));
      } else if (!text.isEmpty()) {
        rules.add(rule(line(place, text, FACTS)));
      }
    }
    return new Tuning(rules, ofBackends);
  }

  /// Without comments, and without the mark that some editors begin a file with.
  private static String textOf(String line) {
    return line.replaceFirst("^\\uFEFF", "").replaceFirst("#.*", "").strip();
  }

  private static void checkBackend(String place, String name) {
    boolean isCollective =
        Stream.of(CollectiveKind.values()).anyMatch(kind -> kind.label().equals(name));
    if (isCollective) {
      throw new IllegalArgumentException(
          "%s: '%s:' (expected: a backend's name before a colon); a line about a collective has none behind its name"
              .formatted(place, name));
    }
  }

  /// {@return whom lines about own algorithms are for: the names before the colons}
  public Set<String> backends() {
    return ofBackends.stream()
        .map(BackendLine::backend)
        .collect(Collectors.toCollection(LinkedHashSet::new));
  }

  /// {@return the lines about a backend's own algorithms, in their order}
  ///
  /// @param backend its name
  /// @param facts what their conditions may be on
  /// @throws IllegalArgumentException naming line, value and expectation
  public List<Line> linesOf(String backend, Set<Fact> facts) {
    return ofBackends.stream()
        .filter(each -> each.backend.equals(backend))
        .map(each -> line(each.place, each.text, facts))
        .toList();
  }

  /// The first line that fits and whose algorithm supports the shape, and what was passed over.
  Optional<Choice> choose(Facts facts, List<String> passedOver) {
    for (Rule rule : rules) {
      if (rule.fits(facts)) {
        if (rule.algorithm.supports(facts.shape())) {
          return Optional.of(new Choice(rule.algorithm, rule.line.toString()));
        }
        passedOver.add(
            "%s wants %s, which can't do this call"
                .formatted(rule.line.place, rule.algorithm.name()));
      }
    }
    return Optional.empty();
  }

  private static Rule rule(Line line) {
    if (line.choice.size() != 1) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: collective, conditions, algorithm)"
              .formatted(line.place, line.text));
    }
    return new Rule(line, algorithm(line.place, line.kind, line.choice.getFirst()));
  }

  /// Conditions are the words in front that compare something.
  private static Line line(String place, String text, Set<Fact> facts) {
    List<String> words = List.of(text.split("\\s+", -1));
    CollectiveKind kind = kind(place, words.getFirst());
    List<Condition> conditions = new ArrayList<>();
    int next = 1;
    while (next < words.size() && words.get(next).matches(".*[<>=].*")) {
      conditions.add(condition(place, kind, words.get(next), facts));
      next++;
    }
    return new Line(place, text, kind, conditions, words.subList(next, words.size()));
  }

  private static CollectiveKind kind(String place, String word) {
    List<String> labels = new ArrayList<>();
    for (CollectiveKind kind : CollectiveKind.values()) {
      if (kind.label().equals(word)) {
        return kind;
      }
      labels.add(kind.label());
    }
    throw new IllegalArgumentException(
        "%s: '%s' is no collective (expected: one of %s)"
            .formatted(place, word, String.join(", ", labels)));
  }

  private static Condition condition(
      String place, CollectiveKind kind, String word, Set<Fact> facts) {
    Matcher matcher = CONDITION.matcher(word);
    OptionalLong number =
        matcher.matches() ? OptionText.bytes(matcher.group(3)) : OptionalLong.empty();
    Fact fact =
        facts.stream()
            .filter(each -> number.isPresent() && each.word().equals(matcher.group(1)))
            .findFirst()
            .orElseThrow(() ->
                new IllegalArgumentException(
                    "%s: '%s' is no condition (expected: %s, then <=, >= or =, then a number, perhaps with KiB, MiB, GiB or TiB, for example bytes<=64KiB)"
                        .formatted(
                            place,
                            word,
                            facts.stream()
                                .sorted()
                                .map(Fact::word)
                                .collect(Collectors.joining(" or ")))));
    if (fact == Fact.BYTES && kind.isVaried()) {
      throw new IllegalArgumentException(
          "%s: '%s': ranks know the bytes of %s differently, so the choice can't depend on them (expected: conditions on size only)"
              .formatted(place, word, kind.label()));
    }
    Comparison comparison =
        switch (matcher.group(2)) {
          case "<=" -> Comparison.AT_MOST;
          case ">=" -> Comparison.AT_LEAST;
          default -> Comparison.EQUAL;
        };
    return new Condition(fact, comparison, Math.min(number.orElseThrow(), LARGEST));
  }

  private static Algorithm algorithm(String place, CollectiveKind kind, String name) {
    List<Algorithm> candidates =
        Algorithms.of(kind).stream()
            .filter(algorithm -> !algorithm.equals(Algorithms.alone(kind)))
            .toList();
    for (Algorithm algorithm : candidates) {
      if (algorithm.name().equals(name)) {
        return algorithm;
      }
    }
    throw new IllegalArgumentException(
        "%s: '%s' is no algorithm of %s (expected: one of %s)"
            .formatted(
                place,
                name,
                kind.label(),
                String.join(", ", candidates.stream().map(Algorithm::name).toList())));
  }
}
