package org.comm4j.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;

/// Makes Markdown tables of the rows of `benchmarks/compare`: comm4j beside the best of its peers.
/// Only rows of one state of the machine meet: near, where a cache line takes little time from one
/// processor to another, or far. Which times are little depends on the machine: those below the
/// middle of the least and the most, each without a twentieth of the rows, where these differ by a
/// factor of two; else all are of one state. A third state is one core, which both processors share
/// for a while on a virtual machine: lines are nearer then, and code slower. A cell is the median
/// over the rounds of their medians.
public final class PeerTable {
  private static final String OURS = "comm4j-";
  private static final double STATES_APART = 2;
  private static final double ONE_CORE_NS = 35; // 25 within a core, 50 and more between two

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

    boolean isKnown() {
      return crossNs > 0;
    }

    boolean isOurs() {
      return system.startsWith(OURS);
    }

    String table(double nearNs) {
      String state =
          crossNs < ONE_CORE_NS
              ? ", one core"
              : nearNs == 0 ? "" : crossNs < nearNs ? ", near" : ", far";
      return "%d ranks, %s %s%s".formatted(ranks, op, type, state);
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
    double nearNs = nearNs(rows);
    List<Table> tables =
        rows.stream()
            .collect(
                Collectors.groupingBy(row -> row.table(nearNs), TreeMap::new, Collectors.toList()))
            .entrySet()
            .stream()
            .map(entry -> Table.of(entry.getKey(), entry.getValue()))
            .filter(table -> !table.systems().isEmpty())
            .toList();
    List<String> all =
        tables.stream()
            .flatMap(table -> table.systems().stream())
            .distinct()
            .sorted(Comparator.reverseOrder())
            .toList();
    System.out.printf(
        "%n| ours / best peer: geometric mean, worst |%s%n", cells(all, PeerTable::head));
    System.out.printf("|---|%s%n", cells(all, _ -> "---:|"));
    tables.forEach(table -> System.out.printf("| %s |%s%n", table.name(), cells(all, table::mean)));
    tables.forEach(Table::print);
    System.out.printf("%n%d rows; %d more were of an unknown state.%n", rows.size(), unknown);
    System.out.println(
        nearNs == 0
            ? "All but those of one core were of one state."
            : "Near: a line takes less than %.0f ns; one core: less than %.0f."
                .formatted(nearNs, ONE_CORE_NS));
  }

  /// Below which time of a line processors are near; 0 where all rows are of one state.
  private static double nearNs(List<Row> rows) {
    double[] times =
        rows.stream()
            .mapToDouble(Row::crossNs)
            .filter(time -> time >= ONE_CORE_NS)
            .sorted()
            .toArray();
    if (times.length == 0) {
      return 0;
    }
    double least = times[times.length / 20];
    double most = times[times.length - 1 - times.length / 20];
    return most < STATES_APART * least ? 0 : Math.sqrt(least * most);
  }

  private static String head(String system) {
    return " %s |".formatted(system.substring(OURS.length()));
  }

  /// The points of an operation at which we and a peer were measured in one state.
  private record Table(String name, List<String> systems, TreeMap<Long, List<Row>> points) {
    static Table of(String name, List<Row> rows) {
      TreeMap<Long, List<Row>> points =
          rows.stream()
              .collect(Collectors.groupingBy(Row::bytes, TreeMap::new, Collectors.toList()));
      points.values().removeIf(point -> point.stream().allMatch(Row::isOurs));
      points.values().removeIf(point -> point.stream().noneMatch(Row::isOurs));
      List<String> systems =
          points.values().stream()
              .flatMap(List::stream)
              .filter(Row::isOurs)
              .map(Row::system)
              .distinct()
              .sorted(Comparator.reverseOrder())
              .toList();
      return new Table(name, systems, points);
    }

    /// A cell of the summary.
    String mean(String system) {
      double[] ratios =
          points.values().stream()
              .map(point -> ratio(point, system))
              .flatMapToDouble(OptionalDouble::stream)
              .toArray();
      return ratios.length == 0
          ? " |"
          : " **%.2f**, %.2f |"
              .formatted(
                  Math.exp(Arrays.stream(ratios).map(Math::log).average().orElseThrow()),
                  Arrays.stream(ratios).max().orElseThrow());
    }

    void print() {
      System.out.printf(
          "%n### %s%n| bytes | best peer µs |%s%n",
          name,
          cells(systems, each -> " %s µs | ratio |".formatted(each.substring(OURS.length()))));
      System.out.printf("|---:|---:|%s%n", cells(systems, _ -> "---:|---:|"));
      points.forEach((bytes, point) -> {
        Best best = best(point);
        System.out.printf(
            "| %d | %s %s |%s%n",
            bytes, number(best.us()), best.system(), cells(systems, each -> cell(point, each)));
      });
    }

    private static String cell(List<Row> point, String system) {
      OptionalDouble us = median(point, system);
      return us.isEmpty()
          ? " | |"
          : " %s | %.2f |".formatted(number(us.getAsDouble()), ratio(point, system).orElseThrow());
    }

    private static OptionalDouble ratio(List<Row> point, String system) {
      OptionalDouble us = median(point, system);
      return us.isEmpty() ? us : OptionalDouble.of(us.getAsDouble() / best(point).us());
    }

    private static Best best(List<Row> point) {
      return point.stream()
          .filter(row -> !row.isOurs())
          .map(Row::system)
          .distinct()
          .map(system -> new Best(system, median(point, system).orElseThrow()))
          .min(Comparator.comparingDouble(Best::us))
          .orElseThrow();
    }
  }

  private static String cells(List<String> systems, Function<String, String> cell) {
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

  private static String number(double us) {
    return us < 10 ? "%.2f".formatted(us) : us < 100 ? "%.1f".formatted(us) : "%.0f".formatted(us);
  }
}
