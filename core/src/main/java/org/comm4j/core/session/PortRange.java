package org.comm4j.core.session;

import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/// Ports from which one that is free is taken, for hosts with firewalls.
///
/// @param first the lowest
/// @param last the highest; 0 to 0 is whatever the system gives
public record PortRange(int first, int last) {
  /// Whatever the system gives.
  public static final PortRange ANY = new PortRange(0, 0);

  private static final int LAST_PORT = 65_535;
  private static final Pattern RANGE = Pattern.compile("(\\d{1,5})-(\\d{1,5})");

  /// Reads a range.
  ///
  /// @param variable that has it, for messages
  /// @param text two ports with a dash between
  /// @return the range
  /// @throws IllegalArgumentException if it is not valid
  public static PortRange of(String variable, String text) {
    Matcher matcher = RANGE.matcher(text.strip());
    if (matcher.matches()) {
      int first = Integer.parseInt(matcher.group(1));
      int last = Integer.parseInt(matcher.group(2));
      if (first > 0 && first <= last && last <= LAST_PORT) {
        return new PortRange(first, last);
      }
    }
    throw new IllegalArgumentException(
        "%s: '%s' (expected: two ports from 1 to 65535 with a dash between, the lower one first, for example 40000-40099)"
            .formatted(variable, text));
  }

  /// {@return whether it is whatever the system gives}
  public boolean isAny() {
    return last == 0;
  }

  /// {@return each of them once, beginning anywhere: others take theirs at the same time}
  public List<Integer> ports() {
    int count = last - first + 1;
    int offset = ThreadLocalRandom.current().nextInt(count);
    return IntStream.range(0, count).mapToObj(i -> first + (offset + i) % count).toList();
  }

  @Override
  public String toString() {
    return first + "-" + last;
  }
}
