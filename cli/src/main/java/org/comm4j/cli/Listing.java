package org.comm4j.cli;

import com.google.gson.FormattingStyle;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonNull;
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
/// A value is a string, a number, a boolean, null, a list of them, or a map of texts.
final class Listing {
  /// How to print.
  enum Format {
    TABLE,
    JSON,
    CSV
  }

  static final Gson JSON =
      new GsonBuilder().serializeNulls().setFormattingStyle(FormattingStyle.PRETTY).create();

  private final List<String> columns;
  private final List<Map<String, Object>> rows = new ArrayList<>();

  Listing(String... columns) {
    this.columns = new ArrayList<>(List.of(columns));
  }

  /// Adds a row.
  ///
  /// @param values one for each column
  Listing row(@Nullable Object... values) {
    if (values.length != columns.size()) {
      throw new IllegalArgumentException(values.length + " values for the columns " + columns);
    }
    Map<String, Object> row = new LinkedHashMap<>();
    for (int i = 0; i < values.length; i++) {
      Object value = values[i];
      row.put(columns.get(i), value == null ? JsonNull.INSTANCE : value);
    }
    rows.add(row);
    return this;
  }

  /// Leaves a column out.
  void without(String column) {
    columns.remove(column);
    rows.forEach(row -> row.remove(column));
  }

  /// {@return the rows, each by its columns}
  List<Map<String, Object>> rows() {
    return List.copyOf(rows);
  }

  void print(Format format, PrintWriter out) {
    switch (format) {
      case JSON -> out.println(JSON.toJson(rows));
      case CSV -> {
        out.println(String.join(",", columns));
        for (var row : rows) {
          out.println(row.values().stream().map(Listing::csv).collect(Collectors.joining(",")));
        }
      }
      case TABLE -> printTable(out);
    }
    out.flush();
  }

  private static String csv(Object value) {
    String text = text(value);
    boolean plain = text.chars().noneMatch(c -> c == ',' || c == '"' || c == '\n' || c == '\r');
    return plain ? text : '"' + text.replace("\"", "\"\"") + '"';
  }

  private void printTable(PrintWriter out) {
    List<Integer> widths = new ArrayList<>();
    for (String column : columns) {
      int width = column.length();
      for (var row : rows) {
        width = Math.max(width, text(row.getOrDefault(column, "")).length());
      }
      widths.add(width);
    }
    out.println(line(List.copyOf(columns), widths));
    for (var row : rows) {
      out.println(line(List.copyOf(row.values()), widths));
    }
  }

  /// Numbers stand to the right, words to the left.
  private static String line(List<?> values, List<Integer> widths) {
    StringBuilder line = new StringBuilder();
    for (int i = 0; i < values.size(); i++) {
      String text = text(values.get(i));
      String padding = " ".repeat(widths.get(i) - text.length());
      line.append(i == 0 ? "" : "  ")
          .append(values.get(i) instanceof Number ? padding + text : text + padding);
    }
    return line.toString().stripTrailing();
  }

  private static String text(Object value) {
    return switch (value) {
      case JsonNull _ -> "";
      case Collection<?> list ->
          list.stream().map(String::valueOf).collect(Collectors.joining(" "));
      case Map<?, ?> texts ->
          texts.entrySet().stream()
              .map(text -> text.getKey() + ": " + text.getValue())
              .collect(Collectors.joining("; "));
      default -> value.toString();
    };
  }
}
