package org.comm4j.cli;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.core.session.Processors;

/// Binds each rank of this host to a core, by `taskset`, or leaves all of them to the kernel.
final class Binding {
  /// What ranks are bound to.
  enum To {
    NONE,
    CORE
  }

  static final Binding NONE = new Binding(List.of());

  private static final String OPTION = "--bind-to";
  private static final String TOOL = "taskset";

  private final List<String> places; // of each local rank, as taskset takes them

  private Binding(List<String> places) {
    this.places = places;
  }

  /// @param ranks how many on this host
  static Binding of(To what, int ranks) {
    if (what == To.NONE) {
      return NONE;
    }
    checkTool(Environment.all().getOrDefault("PATH", ""));
    return of(
        ranks,
        Processors.ofThisThread(),
        Runtime.getRuntime().availableProcessors(),
        Path.of("/sys/devices/system/cpu"));
  }

  /// A rank per core, with those of the core's processors that this process may use.
  ///
  /// @param processors that this process may use
  /// @param worth how many its quota of processor time is worth
  /// @param system where the kernel says which processors are of one core
  static Binding of(int ranks, Set<Integer> processors, int worth, Path system) {
    if (processors.isEmpty()) {
      throw new IllegalArgumentException(
          "%s: core (expected: none, since the kernel does not say which processors ranks may use)"
              .formatted(OPTION));
    }
    Set<SortedSet<Integer>> cores = new LinkedHashSet<>();
    for (int processor : new TreeSet<>(processors)) {
      SortedSet<Integer> core = new TreeSet<>(coreOf(processor, system));
      core.retainAll(processors);
      cores.add(core);
    }
    if (ranks > cores.size()) {
      throw new IllegalArgumentException(
          "%s: core, for %d ranks on %d cores (expected: a core for each rank; leave it out where they must share)"
              .formatted(OPTION, ranks, cores.size()));
    }
    if (ranks > worth) {
      throw new IllegalArgumentException(
          "%s: core, for %d ranks with the time of %d processors (expected: the time of one for each rank; leave it out where they must share)"
              .formatted(OPTION, ranks, worth));
    }
    return new Binding(
        cores.stream()
            .limit(ranks)
            .map(core -> core.stream().map(String::valueOf).collect(Collectors.joining(",")))
            .toList());
  }

  private static Set<Integer> coreOf(int processor, Path system) {
    Path siblings = system.resolve("cpu" + processor).resolve("topology/thread_siblings_list");
    try {
      Set<Integer> core = Processors.parse(Files.readString(siblings).strip());
      return core.contains(processor) ? core : Set.of(processor);
    } catch (IOException | IllegalArgumentException e) {
      return Set.of(processor); // the kernel does not tell
    }
  }

  /// @param path the folders of programs
  static void checkTool(String path) {
    if (!isProgram(TOOL, path)) {
      throw new IllegalArgumentException(
          "%s: core (expected: none, since there is no %s on the PATH; Debian has it in util-linux)"
              .formatted(OPTION, TOOL));
    }
  }

  /// Whether there is such a program: `taskset` starts whether there is or not.
  ///
  /// @param path the folders of programs
  static boolean isProgram(String name, String path) {
    return name.contains("/")
        ? Files.isExecutable(Path.of(name))
        : Stream.of(path.split(File.pathSeparator))
            .anyMatch(folder -> Files.isExecutable(Path.of(folder, name)));
  }

  boolean isNone() {
    return places.isEmpty();
  }

  /// The command of one rank, bound.
  ///
  /// @param local the rank's number on this host
  List<String> command(int local, List<String> command) {
    if (isNone()) {
      return command;
    }
    List<String> bound = new ArrayList<>(List.of(TOOL, "-c", places.get(local)));
    bound.addAll(command);
    return bound;
  }

  /// A command for all ranks, each of which binds itself.
  ///
  /// @param rankVariable where the rank is
  List<String> command(String rankVariable, List<String> command) {
    if (isNone()) {
      return command;
    }
    String script =
        """
        place=$(echo "$1" | cut -d " " -f $((${%s} + 1))); shift
        [ -n "$place" ] || exec "$@"
        exec %s -c "$place" "$@"
        """
            .formatted(rankVariable, TOOL);
    List<String> bound =
        new ArrayList<>(List.of("sh", "-c", script, "comm-cli", String.join(" ", places)));
    bound.addAll(command);
    return bound;
  }
}
