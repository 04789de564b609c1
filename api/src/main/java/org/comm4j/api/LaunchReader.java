package org.comm4j.api;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.regex.Pattern;
import org.comm4j.api.Launch.Variable;

/// Reads one launcher's variables and remembers which. [#launch] comes first.
final class LaunchReader {
  private static final Pattern UNSIGNED = Pattern.compile("[0-9]{1,10}");

  private final Map<String, String> environment;
  private final Set<String> used = new LinkedHashSet<>();
  private String launcher = "";
  private Variable rank = new Variable("", 0);
  private Variable size = new Variable("", 1);
  private OptionalInt localRank = OptionalInt.empty();
  private OptionalInt localSize = OptionalInt.empty();
  private OptionalInt nodeRank = OptionalInt.empty();
  private OptionalInt agents = OptionalInt.empty();
  private Optional<String> address = Optional.empty();
  private OptionalInt port = OptionalInt.empty();
  private Optional<String> session = Optional.empty();

  LaunchReader(Map<String, String> environment) {
    this.environment = environment;
  }

  boolean has(String... variables) {
    for (String variable : variables) {
      if (!environment.containsKey(variable)) {
        return false;
      }
    }
    return true;
  }

  /// The first of two variables that is set, else the second.
  String firstOf(String variable, String other) {
    return has(variable) ? variable : other;
  }

  String text(String variable) {
    String value = environment.get(variable);
    used.add(variable);
    return Values.given(variable, value == null ? "" : value);
  }

  Optional<String> optional(String variable) {
    return has(variable) ? Optional.of(text(variable)) : Optional.empty();
  }

  long unsigned(String variable) {
    String value = text(variable);
    if (!UNSIGNED.matcher(value).matches()) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: a whole number, 0 or more); leave it as the launcher set it"
              .formatted(variable, value));
    }
    return Long.parseLong(value);
  }

  /// A number that only helps: -1 where it is not set or none.
  int peek(String variable) {
    String value = environment.getOrDefault(variable, "");
    if (!UNSIGNED.matcher(value).matches() || Long.parseLong(value) > Integer.MAX_VALUE) {
      return -1;
    }
    used.add(variable);
    return Integer.parseInt(value);
  }

  LaunchReader launch(String name, String rankVariable, String sizeVariable) {
    launcher = name;
    int ranks = number(sizeVariable, 1, Integer.MAX_VALUE, "the number of processes");
    String meaning = sizeVariable + " is " + ranks;
    rank = new Variable(rankVariable, number(rankVariable, 0, ranks - 1, meaning));
    size = new Variable(sizeVariable, ranks);
    return this;
  }

  LaunchReader local(String rankVariable, String sizeVariable) {
    if (has(sizeVariable)) {
      String meaning = size.name() + " is " + size.value();
      localSize = OptionalInt.of(number(sizeVariable, 1, size.value(), meaning));
    }
    return localRank(rankVariable, sizeVariable);
  }

  LaunchReader local(String rankVariable, OptionalInt tasks) {
    localSize = tasks;
    return localRank(rankVariable, "the host's number of tasks");
  }

  private LaunchReader localRank(String rankVariable, String sizeName) {
    if (has(rankVariable)) {
      int ranks = localSize.orElse(size.value());
      String meaning = (localSize.isPresent() ? sizeName : size.name()) + " is " + ranks;
      localRank = OptionalInt.of(number(rankVariable, 0, ranks - 1, meaning));
    }
    return this;
  }

  /// The only rank of its host.
  LaunchReader alone() {
    localRank = OptionalInt.of(0);
    localSize = OptionalInt.of(1);
    return this;
  }

  LaunchReader node(String variable) {
    if (has(variable)) {
      nodeRank = OptionalInt.of(number(variable, 0, Integer.MAX_VALUE, "the host's number"));
    }
    return this;
  }

  LaunchReader agents(String variable) {
    if (has(variable)) {
      agents = OptionalInt.of(number(variable, 1, Integer.MAX_VALUE, "the number of agents"));
    }
    return this;
  }

  void meet(String host, int atPort) {
    address = Optional.of(host);
    port = OptionalInt.of(atPort);
  }

  void session(String name) {
    session = Optional.of(name);
  }

  int rank() {
    return rank.value();
  }

  int size() {
    return size.value();
  }

  Launch end() {
    return new Launch(
        launcher,
        rank,
        size,
        localRank,
        localSize,
        nodeRank,
        address,
        port,
        session,
        agents,
        List.copyOf(used));
  }

  private int number(String variable, int min, int max, String meaning) {
    return Values.integer(
        variable,
        text(variable),
        min,
        max,
        meaning
            + (launcher.equals(Launchers.OWN)
                ? "; give every process its own number, or start them with comm-cli run"
                : "; leave it as " + launcher + " set it, or unset its variables"));
  }
}
