package org.comm4j.core.select;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.comm4j.core.algorithm.Algorithm;
import org.comm4j.core.algorithm.Algorithms;
import org.comm4j.core.schedule.CollectiveKind;

/// A user's own choices, which come before the built-in table. The first line that fits a call counts:
///
///     # collective, conditions that must all hold, algorithm
///     allReduce size<=8 bytes<=64KiB gather-fold
///     allReduce bytes>=1MiB ring
///     broadcast binomial
///
/// Conditions are on `size`, the ranks of the group, and `bytes`, what one rank's buffer or part has;
/// with `<=`, `>=`, `=`, and KiB or MiB behind a number. For gatherV, scatterV and allToAllV there is no
/// `bytes`: ranks know it differently and would choose differently. For the same reason all ranks must
/// have the same lines.
///
/// A line whose algorithm can't do a call (it has no ordered form and the call is ordered; it needs a
/// power of two; it reads windows and there are none) is passed over, and the choice's reason says so.
/// An error it is not: lines are about speed, and a file that serves one call must not break another.
/// A name that does not exist is an error at once.
public final class Tuning {
  private static final Pattern CONDITION =
      Pattern.compile("(size|bytes)(<=|>=|=)(\\d{1,12})(KiB|MiB)?");

  private final List<Rule> rules;

  private Tuning(List<Rule> rules) {
    this.rules = List.copyOf(rules);
  }

  /// One line.
  ///
  /// @param place for messages: where it stands
  record Rule(
      String place,
      String text,
      CollectiveKind kind,
      List<Condition> conditions,
      Algorithm algorithm) {
    boolean fits(Facts facts) {
      return facts.shape().kind() == kind
          && conditions.stream().allMatch(condition -> condition.holds(facts));
    }
  }

  private enum Field {
    SIZE,
    BYTES
  }

  private enum Comparison {
    AT_MOST,
    AT_LEAST,
    EQUAL
  }

  /// One condition of a line.
  record Condition(Field field, Comparison comparison, long number) {
    boolean holds(Facts facts) {
      long value =
          switch (field) {
            case SIZE -> facts.size();
            case BYTES -> facts.bytes();
          };
      return switch (comparison) {
        case AT_MOST -> value <= number;
        case AT_LEAST -> value >= number;
        case EQUAL -> value == number;
      };
    }
  }

  /// No choices: the built-in table alone.
  public static Tuning none() {
    return new Tuning(List.of());
  }

  /// Lines as they would stand in a file.
  ///
  /// @throws IllegalArgumentException naming line, value and expectation
  public static Tuning of(String... lines) {
    return parse("tuning", List.of(lines));
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
    for (int index = 0; index < lines.size(); index++) {
      String text = lines.get(index).replaceFirst("#.*", "").strip();
      if (!text.isEmpty()) {
        rules.add(rule(source + ", line " + (index + 1), text));
      }
    }
    return new Tuning(rules);
  }

  /// The first line that fits and whose algorithm supports the shape, and what was passed over.
  Optional<Choice> choose(Facts facts, List<String> passedOver) {
    for (Rule rule : rules) {
      if (rule.fits(facts)) {
        if (rule.algorithm.supports(facts.shape())) {
          return Optional.of(new Choice(rule.algorithm, "%s: %s".formatted(rule.place, rule.text)));
        }
        passedOver.add(
            "%s wants %s, which can't do this call".formatted(rule.place, rule.algorithm.name()));
      }
    }
    return Optional.empty();
  }

  private static Rule rule(String place, String text) {
    List<String> words = List.of(text.split("\\s+", -1));
    CollectiveKind kind = kind(place, words.getFirst());
    if (words.size() < 2) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: collective, conditions, algorithm)".formatted(place, text));
    }
    List<Condition> conditions = new ArrayList<>();
    for (String word : words.subList(1, words.size() - 1)) {
      conditions.add(condition(place, kind, word));
    }
    return new Rule(place, text, kind, conditions, algorithm(place, kind, words.getLast()));
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

  private static Condition condition(String place, CollectiveKind kind, String word) {
    Matcher matcher = CONDITION.matcher(word);
    if (!matcher.matches()) {
      throw new IllegalArgumentException(
          "%s: '%s' is no condition (expected: size or bytes, then <=, >= or =, then a number, for example bytes<=64KiB)"
              .formatted(place, word));
    }
    Field field = matcher.group(1).equals("size") ? Field.SIZE : Field.BYTES;
    if (field == Field.BYTES && !Facts.knowsBytes(kind)) {
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
    String unit = matcher.group(4);
    long factor = unit == null ? 1 : unit.equals("KiB") ? 1 << 10 : 1 << 20;
    return new Condition(field, comparison, Long.parseLong(matcher.group(3)) * factor);
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
