package org.comm4j.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.comm4j.api.spi.OptionText;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/// Sizes in bytes as people write them: `4KiB`, a list `8B,1MiB`, or a range `8B..64MiB`, which
/// goes up in steps of ×4 (`8B..64MiB*2`: of ×2) and always has both of its ends.
///
/// @param bytes ascending in a range, else in the order given
record Sizes(List<Long> bytes) {
  /// Three dots are accepted for two, and the factor may be missing.
  private static final Pattern RANGE =
      Pattern.compile("([^.*]+)\\.\\.\\.?([^.*]+)(?:\\*(\\d{1,4}))?");

  private static final String FORMS =
      "(expected: a number with B, KiB, MiB, GiB or TiB, a list of them like 8B,4KiB, or a range"
          + " like 8B..64MiB)";
  private static final long STEP = 4;

  Sizes {
    bytes = List.copyOf(bytes);
  }

  /// @throws IllegalArgumentException saying what is wrong with the text
  static Sizes parse(String text) {
    List<Long> sizes = new ArrayList<>();
    for (String part : text.split(",", -1)) {
      Matcher range = RANGE.matcher(part.strip());
      if (range.matches()) {
        String factor = range.group(3);
        addRange(
            part,
            parseOne(range.group(1)),
            parseOne(range.group(2)),
            factor == null ? STEP : Long.parseLong(factor),
            sizes);
      } else {
        sizes.add(parseOne(part));
      }
    }
    return new Sizes(sizes);
  }

  private static void addRange(String part, long from, long to, long factor, List<Long> sizes) {
    if (from < 1 || to < from || factor < 2) {
      throw new IllegalArgumentException(
          ("'%s' (expected: a range that starts at 1B or more, ends at or above its start, and has"
                  + " steps of ×2 or more); write for example 8B..64MiB*4")
              .formatted(part));
    }
    for (long size = from; size < to; size = size > to / factor ? to : size * factor) {
      sizes.add(size);
    }
    sizes.add(to);
  }

  /// One size in bytes.
  ///
  /// @throws IllegalArgumentException saying what is wrong with the text
  static long parseOne(String text) {
    long bytes =
        OptionText.bytes(text)
            .orElseThrow(
                () -> new IllegalArgumentException("'" + text + "' " + FORMS + remedy(text)));
    if (bytes == Long.MAX_VALUE) {
      throw new IllegalArgumentException(
          "'" + text + "' (expected: less than 2^63 bytes); write a smaller number");
    }
    return bytes;
  }

  private static String remedy(String text) {
    return text.strip().toLowerCase(Locale.ROOT).matches("\\d+[kmgt]b")
        ? "; write %siB, or the number of bytes".formatted(text.strip().replaceAll("[bB]$", ""))
        : "; write for example 4KiB";
  }

  /// A size for people: in the largest unit that gives a whole number.
  static String text(long bytes) {
    String[] units = {" B", " KiB", " MiB", " GiB"};
    int unit = 0;
    long number = bytes;
    while (unit + 1 < units.length && number >= 1024 && number % 1024 == 0) {
      number /= 1024;
      unit++;
    }
    return number + units[unit];
  }

  /// A size for people where its last digits don't matter.
  static String roughly(long bytes) {
    String[] units = {" KiB", " MiB", " GiB", " TiB"};
    if (bytes < 1024) {
      return bytes + " B";
    }
    double number = bytes / 1024.0;
    int unit = 0;
    while (unit + 1 < units.length && number >= 1024) {
      number /= 1024;
      unit++;
    }
    return String.format(Locale.ROOT, "%.1f%s", number, units[unit]);
  }

  /// For options that take several.
  static final class Converter implements ITypeConverter<Sizes> {
    @Override
    public Sizes convert(String text) {
      try {
        return parse(text);
      } catch (IllegalArgumentException e) {
        throw new TypeConversionException(Sentences.of(e));
      }
    }
  }

  /// For options that take one.
  static final class One implements ITypeConverter<Long> {
    @Override
    public Long convert(String text) {
      try {
        return parseOne(text);
      } catch (IllegalArgumentException e) {
        throw new TypeConversionException(Sentences.of(e));
      }
    }
  }
}
