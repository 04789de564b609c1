package org.comm4j.api;

import java.math.BigDecimal;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.format.DateTimeParseException;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// Settings as text: reading them, writing them, and refusing what is no value. Every refusal names
/// the setting (`what`: an environment variable or a component of [CommConfig]), the value, what
/// was expected and what to do.
final class Values {
  static final String DURATION_FORMS =
      "a positive time such as 500ms, 30s, 2m or 5min, 1h, or ISO-8601 such as PT1M30S";

  static final Duration LEAST_LIVENESS = Duration.ofMillis(100);

  /// Fits in a signed 64-bit number of nanoseconds, with room for sums.
  static final Duration LONGEST = Duration.ofDays(36_500);

  private static final Pattern AMOUNT = Pattern.compile("([0-9]{1,18})(ms|s|min|m|h)");
  private static final Pattern BARE_NUMBER = Pattern.compile("0*[1-9][0-9]{0,8}");
  private static final Pattern INTEGER = Pattern.compile("-?[0-9]{1,18}");
  private static final Pattern BACKEND = Pattern.compile("[a-z][a-z0-9-]*");
  private static final Pattern HOST_AND_PORT = Pattern.compile("[^:]+:[0-9]+");
  private static final int LONGEST_SESSION = 256;

  private Values() {}

  static String given(String what, String text) {
    if (text.isBlank()) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: a value); unset it where it says nothing".formatted(what, text));
    }
    return text;
  }

  /// @param remedy what to do, a sentence without a full stop
  static int integer(String what, String text, int min, int max, String remedy) {
    String range = max == Integer.MAX_VALUE ? min + " or more" : min + ".." + max;
    long value = INTEGER.matcher(text).matches() ? Long.parseLong(text) : Long.MIN_VALUE;
    if (value < min || value > max) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: a whole number, %s); %s".formatted(what, text, range, remedy));
    }
    return (int) value;
  }

  static Duration duration(String what, String text) {
    Matcher amount = AMOUNT.matcher(text);
    try {
      if (amount.matches()) {
        return positive(what, duration(Long.parseLong(amount.group(1)), amount.group(2)));
      }
      if (text.startsWith("P") || text.startsWith("-P")) {
        return positive(what, Duration.parse(text));
      }
    } catch (DateTimeParseException | ArithmeticException e) {
      throw new IllegalArgumentException(noDuration(what, text), e);
    }
    throw new IllegalArgumentException(noDuration(what, text));
  }

  private static Duration duration(long amount, String unit) {
    return switch (unit) {
      case "ms" -> Duration.ofMillis(amount);
      case "s" -> Duration.ofSeconds(amount);
      case "m", "min" -> Duration.ofMinutes(amount);
      case "h" -> Duration.ofHours(amount);
      default -> throw new AssertionError(unit);
    };
  }

  private static String noDuration(String what, String text) {
    String hint = BARE_NUMBER.matcher(text).matches() ? "; add a unit, for example " : "";
    return "%s: '%s' (expected: %s)%s"
        .formatted(what, text, DURATION_FORMS, hint.isEmpty() ? "" : hint + text + "s");
  }

  static Duration positive(String what, Duration value) {
    if (value.compareTo(Duration.ZERO) <= 0 || value.compareTo(LONGEST) > 0) {
      throw new IllegalArgumentException(
          "%s: %s (expected: %s, at most %d days)"
              .formatted(what, text(value), DURATION_FORMS, LONGEST.toDays()));
    }
    return value;
  }

  /// How long peers may be silent. Less than pauses that every JVM makes would give up who lives.
  static Duration liveness(String what, Duration value) {
    if (positive(what, value).compareTo(LEAST_LIVENESS) < 0) {
      throw new IllegalArgumentException(
          "%s: %s (expected: %s or more); a JVM pauses longer to collect garbage, or for want of a processor, and would be given up although it lives"
              .formatted(what, text(value), text(LEAST_LIVENESS)));
    }
    return value;
  }

  /// For sentences, `3 s` or `0.25 s`.
  static String seconds(Duration value) {
    return BigDecimal.valueOf(value.getSeconds())
            .add(BigDecimal.valueOf(value.getNano(), 9))
            .stripTrailingZeros()
            .toPlainString()
        + " s";
  }

  /// In the largest unit that fits, as [#duration] reads it.
  static String text(Duration value) {
    if (value.isNegative() || !value.truncatedTo(ChronoUnit.MILLIS).equals(value)) {
      return value.toString();
    }
    if (!value.truncatedTo(ChronoUnit.SECONDS).equals(value)) {
      return value.toMillis() + "ms";
    }
    long seconds = value.toSeconds();
    if (seconds == 0 || seconds % 60 != 0) {
      return seconds + "s";
    }
    return seconds % 3600 != 0 ? seconds / 60 + "min" : seconds / 3600 + "h";
  }

  static String lower(Enum<?> constant) {
    return constant.name().toLowerCase(Locale.ROOT);
  }

  static String backend(String what, String text) {
    if (!BACKEND.matcher(text).matches()) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: auto or a backend's name, in lower case); ".formatted(what, text)
              + "comm-cli available-backends lists them");
    }
    return text;
  }

  static String host(String what, String text) {
    given(what, text);
    if (HOST_AND_PORT.matcher(text).matches()) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: a host name or an IP address); give the port in COMM_MASTER_PORT"
              .formatted(what, text));
    }
    if (text.chars().anyMatch(c -> c <= ' ' || c == '/' || c == ',')) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: one host name or IP address and nothing else)"
              .formatted(what, text));
    }
    return text;
  }

  static String session(String what, String text) {
    given(what, text);
    if (text.length() > LONGEST_SESSION || text.chars().anyMatch(c -> c <= ' ' || c == 127)) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: 1..%d characters without spaces); any name that only the ranks of "
                  .formatted(what, text, LONGEST_SESSION)
              + "this launch share will do");
    }
    return text;
  }

  static Path path(String what, String text) {
    try {
      return Path.of(given(what, text));
    } catch (InvalidPathException e) {
      throw new IllegalArgumentException("%s: '%s' (expected: a path)".formatted(what, text), e);
    }
  }

  /// The candidate that a misspelt word most likely means; empty if none is near.
  static Optional<String> near(String word, Stream<String> candidates) {
    int limit = Math.max(2, word.length() / 4);
    return candidates
        .filter(candidate -> distance(word, candidate) <= limit)
        .min(
            Comparator.<String>comparingInt(candidate -> distance(word, candidate))
                .thenComparing(Comparator.naturalOrder()));
  }

  /// Levenshtein's edit distance.
  static int distance(String a, String b) {
    int[] row = new int[b.length() + 1];
    Arrays.setAll(row, j -> j);
    for (int i = 1; i <= a.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int substituted = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(substituted, 1 + Math.min(row[j], row[j - 1]));
      }
    }
    return row[b.length()];
  }
}
