package org.comm4j.backend.local;

import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.comm4j.api.CommConfig;

/// The size of the windows, `COMM_SHM_WINDOW` and `COMM_LOCAL_WINDOW`: bytes, or a number with a
/// unit (`512MiB`), the same on all ranks.
///
/// A window costs address space, not memory; memory is behind what is used of it. So the default is
/// large: 1 GiB, of which 128 MiB are for the engine's own use and the rest for allocated buffers.
///
/// @param variable the option's name
record WindowOption(String variable) {
  static final WindowOption SHM = new WindowOption("COMM_SHM_WINDOW");
  static final WindowOption LOCAL = new WindowOption("COMM_LOCAL_WINDOW");

  /// The option without the prefix of the backend.
  static final String NAME = "WINDOW";

  private static final long DEFAULT_BYTES = 1L << 30;
  private static final long LEAST_BYTES = 1L << 20;
  private static final long MOST_BYTES = 1L << 40;
  private static final Pattern FORMAT = Pattern.compile("(\\d{1,13})\\s*(B|KIB|MIB|GIB|TIB)?");
  private static final Map<String, Integer> SHIFTS =
      Map.of("B", 0, "KIB", 10, "MIB", 20, "GIB", 30, "TIB", 40);

  /// What is configured, rounded up to whole pages.
  ///
  /// @throws IllegalArgumentException if that is not a size from 1 MiB to 1 TiB
  long bytes(CommConfig config) {
    String text = config.options().get(variable);
    return text == null ? DEFAULT_BYTES : parse(text);
  }

  private long parse(String text) {
    Matcher matcher = FORMAT.matcher(text.strip().toUpperCase(Locale.ROOT));
    if (matcher.matches()) {
      String unit = matcher.group(2) == null ? "B" : matcher.group(2);
      int shift = SHIFTS.getOrDefault(unit, 0);
      long count = Long.parseLong(matcher.group(1));
      if (count <= MOST_BYTES >> shift && count << shift >= LEAST_BYTES) {
        return BlockLayout.roundUp(count << shift, BlockLayout.PAGE_BYTES);
      }
    }
    throw new IllegalArgumentException(
        "%s: '%s' (expected: a size from 1MiB to 1TiB, for example 512MiB)"
            .formatted(variable, text));
  }
}
