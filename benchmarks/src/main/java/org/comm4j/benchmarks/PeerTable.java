package org.comm4j.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// Makes Markdown tables of the rows of `benchmarks/compare`: comm4j beside the best of its peers.
/// Only rows of one state of the machine meet: a cache line takes less than 120 ns between two
/// processors (near), or more (far). A cell is the median over the rounds of their medians.
public final class PeerTable {
  private static final String OURS = "comm4j-";
  private static final double NEAR_NS = 120;

  private record Row(
      String system, int ranks, String op, String type, long bytes, double us, double crossNs) {
    static Optional<Row> of(String line) {
      String[] cell = line.split(",", -1);
      if (cell.length < 10 || cell[0].equals("system")) {
        return Optional.empty();
      }
      return Optional.of(
          new Row(
              cell[0],
              Integer.parseInt(cell[2]),
              cell[3],
              cell[4],
              Long.parseLong(cell[5]),
              Double.parseDouble(cell[6]),
              Double.parseDouble(cell[9])));
    }

    boolean isNear() {
      return crossNs < NEAR_NS;
    }

    boolean isKnown() {
      return crossNs > 0;
    }

    boolean isOurs() {
      return system.startsWith(OURS);
    }

    String table() {
      return "%d ranks, %s %s, %s".formatted(ranks, op, type, isNear() ? "near" : "far");
    }
  }

  private record Best(String system, double us) {}

  private PeerTable() {}

  /// Prints the tables.
  ///
  /// @param files of rows
  /// @throws IOException if one can't be read
  public static void main(String[] files) throws IOException {
    List<Row> rows = new ArrayList<>();
    for (String file : files) {
      Files.readAllLines(Path.of(file)).stream()
          .map(Row::of)
          .forEach(row -> row.ifPresent(rows::add));
    }
    long unknown = rows.stream().filter(row -> !row.isKnown()).count();
    rows.removeIf(row -> !row.isKnown());
    rows.stream()
        .collect(Collectors.groupingBy(Row::table, TreeMap::new, Collectors.toList()))
        .forEach(PeerTable::print);
    System.out.printf("%d rows; %d more were of an unknown state.%n", rows.size(), unknown);
  }

  private static void print(String name, List<Row> rows) {
    List<String> ours =
        rows.stream()
            .filter(Row::isOurs)
            .map(Row::system)
            .distinct()
            .sorted(Comparator.reverseOrder())
            .toList();
    System.out.printf(
        "%n### %s%n| bytes | best peer µs |%s%n",
        name, cells(ours, each -> " %s µs | ratio |".formatted(each.substring(OURS.length()))));
    System.out.printf("|---:|---:|%s%n", cells(ours, _ -> "---:|---:|"));
    Map<String, List<Double>> ratios = new TreeMap<>();
    Map<String, Double> worst = new TreeMap<>();
    rows.stream()
        .collect(Collectors.groupingBy(Row::bytes, TreeMap::new, Collectors.toList()))
        .forEach((bytes, point) -> {
          Optional<Best> best =
              point.stream()
                  .filter(row -> !row.isOurs())
                  .map(Row::system)
                  .distinct()
                  .map(system -> new Best(system, median(point, system).orElseThrow()))
                  .min(Comparator.comparingDouble(Best::us));
          System.out.printf(
              "| %d | %s |%s%n",
              bytes,
              best.map(each -> number(each.us()) + " " + each.system()).orElse(""),
              cells(
                  ours,
                  system -> {
                    OptionalDouble us = median(point, system);
                    if (us.isEmpty() || best.isEmpty()) {
                      return " %s | |".formatted(us.isEmpty() ? "" : number(us.getAsDouble()));
                    }
                    double ratio = us.getAsDouble() / best.get().us();
                    ratios.computeIfAbsent(system, _ -> new ArrayList<>()).add(ratio);
                    worst.merge(system, ratio, Math::max);
                    return " %s | %.2f |".formatted(number(us.getAsDouble()), ratio);
                  }));
        });
    System.out.printf(
        "| geometric mean, worst | |%s%n",
        cells(
            ours,
            system ->
                ratios.containsKey(system)
                    ? " | **%.2f**, %.2f |".formatted(mean(ratios.get(system)), worst.get(system))
                    : " | |"));
  }

  private static String cells(
      List<String> systems, java.util.function.Function<String, String> cell) {
    return systems.stream().map(cell).collect(Collectors.joining());
  }

  private static OptionalDouble median(List<Row> rows, String system) {
    double[] us =
        rows.stream()
            .filter(row -> row.system().equals(system))
            .mapToDouble(Row::us)
            .sorted()
            .toArray();
    if (us.length == 0) {
      return OptionalDouble.empty();
    }
    int middle = us.length / 2;
    return OptionalDouble.of(us.length % 2 == 1 ? us[middle] : (us[middle - 1] + us[middle]) / 2);
  }

  private static double mean(List<Double> ratios) {
    return Math.exp(ratios.stream().mapToDouble(Math::log).average().orElse(0));
  }

  private static String number(double us) {
    return us < 10 ? "%.2f".formatted(us) : us < 100 ? "%.1f".formatted(us) : "%.0f".formatted(us);
  }
}
