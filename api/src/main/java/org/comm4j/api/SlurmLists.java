package org.comm4j.api;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Slurm's short forms for lists of hosts and tasks.
final class SlurmLists {
  private static final Pattern TASKS = Pattern.compile("([0-9]{1,9})(?:\\(x([0-9]{1,6})\\))?");

  /// One host, with ranges such as `[01-04,07]` anywhere in it.
  private static final Pattern HOST =
      Pattern.compile("(?:[A-Za-z0-9._-]|\\[[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*])+");

  private static final Pattern RANGES = Pattern.compile("\\[([0-9]+)[^]]*]");
  private static final int FIRST_PORT = 20_000;
  private static final int PORTS = 10_000;

  private SlurmLists() {}

  /// How many tasks each host runs: `4(x2),3` is 4, 4, 3.
  static int[] tasksPerNode(String variable, String text) {
    return Stream.of(text.split(",", -1))
        .flatMapToInt(part -> {
          Matcher tasks = TASKS.matcher(part);
          if (!tasks.matches()) {
            throw new IllegalArgumentException(
                "%s: '%s' (expected: a list such as 4(x2),3); leave it as slurm set it"
                    .formatted(variable, text));
          }
          int hosts = tasks.group(2) == null ? 1 : Integer.parseInt(tasks.group(2));
          int each = Integer.parseInt(tasks.group(1));
          return IntStream.generate(() -> each).limit(hosts);
        })
        .toArray();
  }

  /// The first host of a list: of `node[01-04,07],other` it is `node01`.
  static String firstHost(String variable, String text) {
    Matcher host = HOST.matcher(text);
    if (!host.lookingAt() || (host.end() < text.length() && text.charAt(host.end()) != ',')) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: hosts such as node[01-04,07]); leave it as slurm set it, or set"
                  .formatted(variable, text)
              + " COMM_MASTER_ADDR");
    }
    return RANGES.matcher(host.group()).replaceAll("$1");
  }

  /// A port that the ranks of a step agree on and two steps rarely share, below the ports that
  /// Linux gives to outgoing connections.
  static int port(long job, long step) {
    return FIRST_PORT + (int) Math.floorMod(job * 31 + step, (long) PORTS);
  }
}
