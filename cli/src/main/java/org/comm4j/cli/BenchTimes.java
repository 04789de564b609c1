package org.comm4j.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// What one launch of [Bench] has measured, for a second one to be compared with.
final class BenchTimes {
  private final Map<Key, BenchHarness.Time> times = new HashMap<>();

  private record Key(BenchOperation operation, long bytes) {}

  /// What is in a file; nothing if that is empty.
  ///
  /// @param file as [#write] leaves it
  static BenchTimes read(Path file) throws IOException {
    var found = new BenchTimes();
    for (String line : Files.readAllLines(file)) {
      String[] words = line.split(" ", -1);
      found.add(
          BenchOperation.valueOf(words[0]),
          Long.parseLong(words[1]),
          new BenchHarness.Time(
              Double.parseDouble(words[2]),
              Double.parseDouble(words[3]),
              Double.parseDouble(words[4])));
    }
    return found;
  }

  void write(Path file) throws IOException {
    List<String> lines =
        times.entrySet().stream()
            .map(each ->
                "%s %d %s %s %s"
                    .formatted(
                        each.getKey().operation().name(),
                        each.getKey().bytes(),
                        each.getValue().medianUs(),
                        each.getValue().minUs(),
                        each.getValue().crossNs()))
            .toList();
    Files.write(file, lines);
  }

  boolean isEmpty() {
    return times.isEmpty();
  }

  void add(BenchOperation operation, long bytes, BenchHarness.Time time) {
    times.put(new Key(operation, bytes), time);
  }

  /// {@return how many times as long a point takes now; empty if it was not measured, or not in the
  /// same state of the machine}
  Optional<Double> ratio(BenchOperation operation, long bytes, BenchHarness.Time now) {
    BenchHarness.Time before = times.get(new Key(operation, bytes));
    return before == null || before.medianUs() <= 0 || !now.isAsNearAs(before)
        ? Optional.empty()
        : Optional.of(now.medianUs() / before.medianUs());
  }
}
