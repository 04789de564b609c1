package org.comm4j.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Makes a Markdown table of the rows of `benchmarks/kernels`: medians over the rounds in GB/s.
/// What is calculated with the vector module is compared with C's loop over f32, and what is
/// calculated without it with the former.
public final class KernelTable {
  private static final String PEER = "C";

  /// What was measured: of a system, in a line of the table.
  private record Place(String system, Line line) {}

  private record Line(String kernel, String memory, long bytes) {}

  private record Row(Place place, double rate) {
    static Row of(String line) {
      String[] cell = line.split(",", -1);
      return new Row(
          new Place(cell[0], new Line(cell[2], cell[1], Long.parseLong(cell[3]))),
          Double.parseDouble(cell[4]));
    }
  }

  private KernelTable() {}

  /// Prints the table.
  ///
  /// @param files of rows
  /// @throws IOException if one can't be read
  public static void main(String[] files) throws IOException {
    Stream<String> lines = Stream.of();
    for (String file : files) {
      lines = Stream.concat(lines, Files.readAllLines(Path.of(file)).stream().skip(1));
    }
    Map<Place, double[]> rates =
        lines
            .map(Row::of)
            .collect(
                Collectors.groupingBy(
                    Row::place,
                    Collectors.collectingAndThen(
                        Collectors.toList(),
                        rows -> rows.stream().mapToDouble(Row::rate).sorted().toArray())));
    System.out.println("| kernel | memory | bytes | C | vectors | of C | plain | of vectors |");
    System.out.println("|---|---|---:|---:|---:|---:|---:|---:|");
    rates.keySet().stream()
        .filter(place -> !place.system().equals(PEER))
        .map(Place::line)
        .distinct()
        .sorted(
            Comparator.comparing(Line::kernel)
                .thenComparing(Line::memory)
                .thenComparingLong(Line::bytes))
        .forEach(line -> print(line, rates));
  }

  private static void print(Line line, Map<Place, double[]> rates) {
    OptionalDouble c =
        median(rates, new Place(PEER, new Line("SUM:FLOAT32", "native", line.bytes())));
    OptionalDouble vector = median(rates, new Place("vector", line));
    OptionalDouble plain = median(rates, new Place("plain", line));
    System.out.printf(
        "| %s | %s | %d | %s | %s | %s | %s | %s |%n",
        line.kernel(),
        line.memory(),
        line.bytes(),
        rate(c),
        rate(vector),
        ratio(vector, c),
        rate(plain),
        ratio(plain, vector));
  }

  private static OptionalDouble median(Map<Place, double[]> rates, Place place) {
    double[] sorted = rates.getOrDefault(place, new double[0]);
    return sorted.length == 0
        ? OptionalDouble.empty()
        : Arrays.stream(sorted, (sorted.length - 1) / 2, sorted.length / 2 + 1).average();
  }

  private static String rate(OptionalDouble rate) {
    return rate.isEmpty() ? "" : "%.1f".formatted(rate.getAsDouble());
  }

  private static String ratio(OptionalDouble rate, OptionalDouble other) {
    return rate.isEmpty() || other.isEmpty()
        ? ""
        : "%.2f".formatted(rate.getAsDouble() / other.getAsDouble());
  }
}
