package org.comm4j.cli;

import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/// Errors in words, for people.
final class Sentences {
  private Sentences() {}

  /// What an exception says; its kind only where it says nothing.
  static String of(Throwable thrown) {
    String message = thrown.getMessage();
    return message == null || message.isBlank() ? "failed with " + thrown : message;
  }

  /// What is wrong with a command line: the value and what was expected, as everywhere, where
  /// picocli's own words lack one of them.
  static String ofUsage(ParameterException wrong) {
    CommandSpec command = wrong.getCommandLine().getCommandSpec();
    if (wrong instanceof UnmatchedArgumentException unmatched) {
      String first = unmatched.getUnmatched().getFirst();
      boolean isOption = first.startsWith("-");
      Stream<String> known =
          isOption
              ? command.options().stream()
                  .filter(each -> !each.hidden())
                  .map(OptionSpec::longestName)
              : command.subcommands().keySet().stream();
      String expected = known.distinct().sorted().collect(Collectors.joining(", "));
      return "%s: unknown %s of %s (expected: %s)%s"
          .formatted(
              first,
              isOption ? "option" : "argument",
              command.qualifiedName(),
              expected.isEmpty() ? "nothing more" : expected,
              unmatched.getSuggestions().stream()
                  .findFirst()
                  .map(near -> "; did you mean " + near + "?")
                  .orElse(""));
    }
    ArgSpec argument = wrong.getArgSpec();
    String value = wrong.getValue();
    String expected = argument == null ? "" : expected(argument.type());
    return value == null || expected.isEmpty()
        ? of(wrong)
        : "%s: '%s' (expected: %s)"
            .formatted(
                argument instanceof OptionSpec option
                    ? option.longestName()
                    : argument.paramLabel(),
                value,
                expected);
  }

  /// Empty for types whose converters say it themselves.
  private static String expected(Class<?> type) {
    if (type.isEnum()) {
      return Stream.of(type.getEnumConstants())
          .map(each -> each.toString().toLowerCase(Locale.ROOT))
          .collect(Collectors.joining(", "));
    }
    if (type == int.class || type == Integer.class || type == long.class || type == Long.class) {
      return "a whole number";
    }
    return type == double.class ? "a number" : "";
  }

  /// Lets the calling thread, a rank of a program of our own, end with a sentence in place of a
  /// stack trace.
  static void forUncaught() {
    Thread.currentThread()
        .setUncaughtExceptionHandler((_, thrown) -> System.err.println("comm-cli: " + of(thrown)));
  }
}
