package org.comm4j.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.comm4j.api.CommConfig;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;

/// The settings of [CommConfig] as options of every command that starts ranks. Give a command its
/// options with `modelTransformer = RankOptions.class`.
final class RankOptions implements CommandLine.IModelTransformer {
  private static final String RANKS = "-n";
  private static final String BIND_TO = "--bind-to";
  static final String PLUGIN_PATH = "--plugin-path";

  private static final List<CommConfig.Setting> SETTINGS =
      CommConfig.settings().stream()
          .filter(setting -> setting.flag().filter(flag -> !flag.equals(RANKS)).isPresent())
          .toList();

  RankOptions() {}

  /// What a command of our own runs on each rank.
  interface Body {
    void run(String[] arguments) throws Exception;
  }

  @Override
  public CommandSpec transform(CommandSpec command) {
    SETTINGS.forEach(setting -> command.addOption(option(setting)));
    return command.addOption(
        OptionSpec.builder(BIND_TO)
            .type(Binding.To.class)
            .defaultValue("none")
            .description(
                "core: bind each rank to a core of its own; none: let the kernel move them."
                    + " ${DEFAULT-VALUE} unless given.")
            .build());
  }

  /// Of those options the one that says where further backends are, for a command that looks for
  /// backends and starts no ranks.
  static final class OfBackends implements CommandLine.IModelTransformer {
    OfBackends() {}

    @Override
    public CommandSpec transform(CommandSpec command) {
      SETTINGS.stream()
          .filter(setting -> flag(setting).equals(PLUGIN_PATH))
          .filter(setting -> command.findOption(flag(setting)) == null) // once for each alias
          .forEach(setting -> command.addOption(option(setting)));
      return command;
    }
  }

  private static OptionSpec option(CommConfig.Setting setting) {
    return OptionSpec.builder(flag(setting))
        .type(String.class)
        .paramLabel(setting.unit().toUpperCase(Locale.ROOT))
        .description(
            "%s Expected: %s. %s unless given, else %s."
                .formatted(
                    setting.doc(), setting.range(), setting.variable(), setting.defaultValue()))
        .build();
  }

  /// What the command line says about cores.
  ///
  /// @param ranks how many on this host
  static Binding binding(CommandSpec command, int ranks) {
    return Binding.of(command.findOption(BIND_TO).getValue(), ranks);
  }

  private static String flag(CommConfig.Setting setting) {
    return setting.flag().orElseThrow();
  }

  /// The settings that the command line has, by their variables.
  static Map<String, String> given(CommandSpec command) {
    Map<String, String> given = new TreeMap<>();
    for (CommConfig.Setting setting : SETTINGS) {
      OptionSpec option = command.findOption(flag(setting));
      String text = option == null ? null : option.getValue();
      if (text != null) {
        check(command, setting, text);
        given.put(setting.variable(), text);
      }
    }
    return given;
  }

  private static void check(CommandSpec command, CommConfig.Setting setting, String text) {
    try {
      var _ = CommConfig.builder().set(setting.variable(), text);
    } catch (IllegalArgumentException e) {
      throw new ParameterException(
          command.commandLine(),
          Sentences.of(e).replace(setting.variable() + ":", flag(setting) + ":"),
          e);
    }
  }

  /// Whether a launcher has started this process as one of several ranks.
  static boolean areLaunched() {
    return launched(CommConfig.fromEnvironment(Environment.all())) > 1;
  }

  private static int launched(CommConfig own) {
    return own.worldSize().orElse(1);
  }

  /// Runs a program of our own with the settings of the command line.
  static int run(CommandSpec command, Class<?> program, Body body, List<String> arguments)
      throws Exception {
    return run(command, program, body, arguments, Map.of());
  }

  /// Runs a program of our own. Where a launcher has started several of this process each of them
  /// is a rank of it; else it runs on new ranks, as many as `-n` says.
  ///
  /// @param arguments of the program; the settings come after them
  /// @param more settings, which only new ranks can have: variables and values
  static int run(
      CommandSpec command,
      Class<?> program,
      Body body,
      List<String> arguments,
      Map<String, String> more)
      throws Exception {
    Map<String, String> given = given(command);
    given.putAll(more);
    List<String> all = new ArrayList<>(arguments);
    given.forEach((variable, text) -> all.add(variable + "=" + text));
    CommConfig own = CommConfig.fromEnvironment(Environment.all());
    int launched = launched(own);
    @Nullable Integer ranks = command.findOption(RANKS).getValue();
    if (launched > 1) {
      boolean isAsked = command.commandLine().getParseResult().hasMatchedOption(RANKS);
      if (isAsked && ranks != null && ranks != launched) {
        throw new ParameterException(
            command.commandLine(),
            "-n: %d (expected: %d, as many as %s has started); leave it out, or unset %s"
                .formatted(
                    ranks, launched, own.launcher(), String.join(" ", own.launchVariables())));
      }
      if (command.commandLine().getParseResult().hasMatchedOption(BIND_TO)) {
        throw new ParameterException(
            command.commandLine(),
            "%s: given, but %s has started the ranks (expected: that it binds them, or not)"
                .formatted(BIND_TO, own.launcher()));
      }
      body.run(all.toArray(String[]::new));
      return ExitCode.FINE;
    }
    if (ranks == null) {
      throw new ParameterException(
          command.commandLine(), RANKS + ": not given (expected: how many ranks to start here)");
    }
    return Launch.of(
            ranks,
            given,
            binding(command, ranks),
            new Program.MainClass(program.getName(), List.of(), all))
        .run(System.out, System.err);
  }
}
