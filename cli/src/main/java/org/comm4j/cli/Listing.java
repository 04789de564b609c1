package org.comm4j.cli;

import com.google.gson.FormattingStyle;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Rows with named columns, printed as a table, as JSON (an array of objects) or as CSV.
///
/// A value is a string, a number, a boolean, null, or a list of them.
final class Listing {
  /// How to print.
  enum Format {
    TABLE,
    JSON,
    CSV
  }

  private static final Gson JSON =
      new GsonBuilder().serializeNulls().setFormattingStyle(FormattingStyle.PRETTY).create();

  private final List<String> columns;
  private final List<Map<String, @Nullable Object>> rows = new ArrayList<>();

  Listing(String... columns) {
    this.columns = List.of(columns);
  }

  /// Adds a row.
  ///
  /// @param values one for each column
  Listing row(@Nullable Object... values) {
    if (values.length != columns.size()) {
      throw new IllegalArgumentException(values.length + " values for the columns " + columns);
    }
    Map<String, @Nullable Object> row = new LinkedHashMap<>();
    for (int i = 0; i < values.length; i++) {
      row.put(columns.get(i), values[i]);
    }
    rows.add(row);
    return this;
  }

  void print(Format format, PrintWriter out) {
    switch (format) {
      case JSON -> out.println(JSON.toJson(rows));
      case CSV -> {
        out.println(String.join(",", columns));
        rows.forEach(row -> out.println(csv(row.values())));
      }
      case TABLE -> printTable(out);
    }
    out.flush();
  }

  private static String csv(Collection<@Nullable Object> values) {
    return values.stream().map(value -> quoted(text(value))).collect(Collectors.joining(","));
  }

  private static String quoted(String text) {
    boolean plain = text.chars().noneMatch(c -> c == ',' || c == '"' || c == '\n' || c == '\r');
    return plain ? text : '"' + text.replace("\"", "\"\"") + '"';
  }

  private void printTable(PrintWriter out) {
    List<Integer> widths = new ArrayList<>();
    for (String column : columns) {
      int width = column.length();
      for (var row : rows) {
        width = Math.max(width, text(row.get(column)).length());
      }
      widths.add(width);
    }
    out.println(line(columns, widths, true));
    for (var row : rows) {
      out.println(line(List.copyOf(texts(row)), widths, false, row));
    }
  }

  private static List<String> texts(Map<String, @Nullable Object> row) {
    return row.values().stream().map(Listing::text).toList();
  }

  private static String line(List<String> cells, List<Integer> widths, boolean header) {
    return line(cells, widths, header, Map.of());
  }

  /// Numbers stand to the right, words to the left.
  private static String line(
      List<String> cells,
      List<Integer> widths,
      boolean header,
      Map<String, @Nullable Object> row) {
    List<@Nullable Object> values = new ArrayList<>(row.values());
    StringBuilder line = new StringBuilder();
    for (int i = 0; i < cells.size(); i++) {
      boolean number = !header && i < values.size() && values.get(i) instanceof Number;
      String padding = " ".repeat(widths.get(i) - cells.get(i).length());
      line.append(i == 0 ? "" : "  ")
          .append(number ? padding + cells.get(i) : cells.get(i) + padding);
    }
    return line.toString().stripTrailing();
  }

  private static String text(@Nullable Object value) {
    return switch (value) {
      case null -> "";
      case Collection<?> list ->
          list.stream().map(String::valueOf).collect(Collectors.joining(" "));
      default -> value.toString();
    };
  }
}
