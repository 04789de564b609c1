package org.comm4j.cli;

import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.core.session.OpenFiles;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.TypeConversionException;
import picocli.CommandLine.UnmatchedArgumentException;

/// Errors in words, for people.
final class Sentences {
  private Sentences() {}

  /// What an exception says; its kind only where it says nothing.
  static String of(Throwable thrown) {
    String message = thrown.getMessage();
    String said = message == null || message.isBlank() ? "failed with " + thrown : message;
    String remedy = OpenFiles.remedy(thrown);
    return remedy.isEmpty() ? said : said.stripTrailing() + remedy;
  }

  /// What is wrong with a command line: the value and what was expected, as everywhere, where
  /// picocli's own words lack one of them.
  static String ofUsage(ParameterException wrong) {
    CommandSpec command = wrong.getCommandLine().getCommandSpec();
    if (wrong instanceof UnmatchedArgumentException unmatched) {
      return ofUnknown(unmatched.getUnmatched().getFirst(), command);
    }
    if (wrong instanceof MissingParameterException missing
        && missing.getMissing().getFirst() instanceof OptionSpec option) {
      return "%s: not given (expected: %s)".formatted(name(option), option.paramLabel());
    }
    ArgSpec argument = wrong.getArgSpec();
    String value = wrong.getValue();
    if (argument == null) {
      return value == null ? of(wrong) : ofUnknown(value, command); // of the command help
    }
    if (argument.converters().length > 0 && wrong.getCause() instanceof TypeConversionException e) {
      return name(argument) + ": " + of(e);
    }
    String expected =
        argument.typeInfo().isMap() ? argument.paramLabel() : expected(argument.type());
    return value == null || expected.isEmpty()
        ? of(wrong)
        : "%s: '%s' (expected: %s)".formatted(name(argument), value, expected);
  }

  private static String ofUnknown(String given, CommandSpec command) {
    boolean isOption = given.startsWith("-");
    List<String> known =
        (isOption
                ? command.options().stream()
                    .filter(each -> !each.hidden())
                    .map(OptionSpec::longestName)
                : command.subcommands().keySet().stream())
            .distinct()
            .sorted()
            .toList();
    return "%s: unknown %s of %s (expected: %s)%s"
        .formatted(
            given,
            isOption ? "option" : "argument",
            command.qualifiedName(),
            known.isEmpty() ? "nothing more" : String.join(", ", known),
            known.stream()
                .filter(each -> differences(given, each) <= Math.max(2, each.length() / 4))
                .min(Comparator.comparingInt(each -> differences(given, each)))
                .map(near -> "; did you mean " + near + "?")
                .orElse(""));
  }

  /// How many letters one of the words has and the other has not, wherever they stand: few where
  /// one is the other misspelt.
  private static int differences(String given, String known) {
    var missing = new StringBuilder(known);
    int unknown = 0;
    for (int i = 0; i < given.length(); i++) {
      int at = missing.indexOf(given.substring(i, i + 1));
      if (at < 0) {
        unknown++;
      } else {
        missing.deleteCharAt(at);
      }
    }
    return unknown + missing.length();
  }

  /// As help writes it first: `-n`, `--sizes`, `OPERATION`.
  private static String name(ArgSpec argument) {
    return argument instanceof OptionSpec option ? option.names()[0] : argument.paramLabel();
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
