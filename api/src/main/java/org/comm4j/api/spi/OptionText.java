package org.comm4j.api.spi;

import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;

/// A setting as somebody has written it, and how it is read: the same for all backends, so that
/// what one of them takes (`16MiB`, `1` for true, capitals) none refuses. Backends read their
/// options with it ([BackendProvider#checkOptions]); what they want besides they refuse with
/// [#refused].
///
/// @param variable the environment variable, for messages
/// @param text what it is set to; spaces around it mean nothing
public record OptionText(String variable, String text) {
  private static final Pattern SIZE = Pattern.compile("([+]?[0-9]+)[ \\t]*([A-Za-z]*)");

  /// What a backend's option is set to.
  ///
  /// @param config of the rank
  /// @param variable the whole name, `COMM_<BACKEND>_<NAME>`
  /// @return empty where it is not set
  public static Optional<OptionText> of(CommConfig config, String variable) {
    return Optional.ofNullable(config.options().get(variable))
        .map(text -> new OptionText(variable, text));
  }

  /// {@return the constant whose name it is, in capitals or not}
  ///
  /// @param <E> the words that there are
  /// @param type of the words
  /// @throws IllegalArgumentException if it is none of them
  public <E extends Enum<E>> E word(Class<E> type) {
    return word(type, "");
  }

  /// {@return the constant whose name it is, in capitals or not}
  ///
  /// @param <E> the words that there are
  /// @param type of the words
  /// @param advice what to do, behind what is expected
  /// @throws IllegalArgumentException if it is none of them
  public <E extends Enum<E>> E word(Class<E> type, String advice) {
    String word = text.strip().toLowerCase(Locale.ROOT);
    return Stream.of(type.getEnumConstants())
        .filter(constant -> lower(constant).equals(word))
        .findFirst()
        .orElseThrow(() -> refused(with(advice, words(type))));
  }

  /// The words as a message or a page lists them.
  ///
  /// @param type of the words
  /// @return `one, two or three`
  public static String words(Class<? extends Enum<?>> type) {
    String all =
        String.join(", ", Stream.of(type.getEnumConstants()).map(OptionText::lower).toList());
    return all.replaceFirst(", ([^,]*)$", " or $1");
  }

  private static String lower(Enum<?> constant) {
    return constant.name().toLowerCase(Locale.ROOT);
  }

  /// {@return whether it is `1` or `true`, in capitals or not}
  ///
  /// @throws IllegalArgumentException if it is neither that nor `0` or `false`
  public boolean flag() {
    return switch (text.strip().toLowerCase(Locale.ROOT)) {
      case "1", "true" -> true;
      case "0", "false" -> false;
      default -> throw refused("1 or true, 0 or false");
    };
  }

  /// {@return the whole number that it is}
  ///
  /// @param min the least that is valid
  /// @param max the largest
  /// @throws IllegalArgumentException if it is no number, or none of `min..max`
  public int number(int min, int max) {
    return number(min, max, "");
  }

  /// {@return the whole number that it is}
  ///
  /// @param min the least that is valid
  /// @param max the largest
  /// @param advice what to do, behind what is expected
  /// @throws IllegalArgumentException if it is no number, or none of `min..max`
  public int number(int min, int max, String advice) {
    try {
      int number = Integer.parseInt(text.strip());
      if (number >= min && number <= max) {
        return number;
      }
    } catch (NumberFormatException _) {
      // refused below
    }
    throw refused(with(advice, "a whole number, %d..%d".formatted(min, max)));
  }

  private static String with(String advice, String expected) {
    return advice.isEmpty() ? expected : expected + "; " + advice;
  }

  /// {@return the bytes that it means}
  ///
  /// @param min the least that is valid, 0 or more
  /// @param max the largest
  /// @param step of which they are a multiple; 1 for any number
  /// @throws IllegalArgumentException if it is no size ([#bytes]), or none of these
  public long size(long min, long max, long step) {
    long bytes = bytes(text).orElse(-1);
    if (bytes >= min && bytes <= max && bytes % step == 0) {
      return bytes;
    }
    throw refused(
        "%s from %s to %s, in bytes or with KiB, MiB, GiB or TiB"
            .formatted(
                step == 1 ? "a size" : "a multiple of " + shown(step), shown(min), shown(max)));
  }

  /// Reads a size: a number of bytes, or one with a unit, B, KiB, MiB, GiB or TiB, in capitals or
  /// not. K, M, G and T are these too.
  ///
  /// @param text for example `512MiB`
  /// @return the bytes, `Long.MAX_VALUE` where they are more than that; empty if it is no size
  public static OptionalLong bytes(String text) {
    Matcher matcher = SIZE.matcher(text.strip());
    int shift =
        switch (matcher.matches() ? matcher.group(2).toUpperCase(Locale.ROOT) : "none") {
          case "", "B" -> 0;
          case "K", "KIB" -> 10;
          case "M", "MIB" -> 20;
          case "G", "GIB" -> 30;
          case "T", "TIB" -> 40;
          default -> -1;
        };
    if (shift < 0) {
      return OptionalLong.empty();
    }
    try {
      long number = Long.parseLong(matcher.group(1));
      boolean fits = number <= Long.MAX_VALUE >> shift;
      return number < 0
          ? OptionalLong.empty()
          : OptionalLong.of(fits ? number << shift : Long.MAX_VALUE);
    } catch (NumberFormatException _) {
      return OptionalLong.empty();
    }
  }

  /// In the largest unit of which it is a whole number.
  private static String shown(long bytes) {
    int units = bytes == 0 ? 0 : Math.min(4, Long.numberOfTrailingZeros(bytes) / 10);
    return (bytes >> (10 * units)) + new String[] {"", "KiB", "MiB", "GiB", "TiB"}[units];
  }

  /// {@return what says that the value is not valid: variable, value, expectation}
  ///
  /// @param expected what would be valid, and perhaps what to do, without a full stop
  public IllegalArgumentException refused(String expected) {
    return new IllegalArgumentException(
        "%s: '%s' (expected: %s)".formatted(variable, CommConfig.shown(variable, text), expected));
  }
}
