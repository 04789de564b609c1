package org.comm4j.cli;

import java.io.PrintWriter;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.CommException;
import org.comm4j.api.JoinException;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/// `comm-cli`: what works on this host, why not, how fast, and programs run on it.
@Command(
    name = "comm-cli",
    mixinStandardHelpOptions = true,
    versionProvider = Main.Version.class,
    description = "Collective communication for the JVM.",
    subcommands = {
      AvailableBackends.class,
      Run.class,
      Doctor.class,
      Explain.class,
      ShowTopology.class,
      Bench.class,
      Verify.class,
      CommandLine.HelpCommand.class
    },
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {
      "0:fine",
      "1:a check failed",
      "2:wrong usage",
      "3:a backend is not available",
      "4:a rank failed"
    })
public final class Main implements Callable<Integer> {
  private static final String RUN = "run";

  @Spec @Nullable CommandSpec spec;

  @Option(
      names = "--stacktrace",
      scope = ScopeType.INHERIT,
      description = "Show where an error comes from.")
  boolean stacktrace;

  Main() {}

  /// Runs a command line and ends the JVM with its exit code.
  ///
  /// @param args as the user typed them
  public static void main(String[] args) {
    StandardError.reconnect(System.getProperty("comm4j.stderr"));
    if (!List.of(args).contains(RUN)) { // which may bring a user's program into this JVM
      SerializedObjects.refuse();
    }
    System.exit(run(args));
  }

  /// Runs a command line.
  ///
  /// @return the exit code
  static int run(String... args) {
    Main main = new Main();
    CommandLine line = commandLine(main);
    int code = line.execute(args);
    if (code == ExitCode.FINE && System.out.checkError()) {
      line.getErr().println("comm-cli: the standard output could not be written to its end");
      line.getErr().flush();
      return ExitCode.CHECK_FAILED;
    }
    return code;
  }

  static CommandLine commandLine(Main main) {
    CommandLine line =
        new CommandLine(main)
            .setCaseInsensitiveEnumValuesAllowed(true)
            .setExpandAtFiles(false) // an argument of a program may begin with @
            .setColorScheme(CommandLine.Help.defaultColorScheme(Terminal.ansi()))
            .setParameterExceptionHandler(Main::onUsage)
            .setExecutionExceptionHandler((thrown, failed, _) -> main.onFailure(thrown, failed));
    Objects.requireNonNull(line.getSubcommands().get(RUN)).setStopAtPositional(true);
    return line;
  }

  private static int onUsage(ParameterException wrong, String[] args) {
    PrintWriter err = wrong.getCommandLine().getErr();
    err.println("comm-cli: " + Sentences.ofUsage(wrong));
    offerHelp(wrong.getCommandLine());
    err.flush();
    return ExitCode.USAGE;
  }

  private static void offerHelp(CommandLine line) {
    line.getErr().println("Try '%s --help'.".formatted(line.getCommandSpec().qualifiedName()));
  }

  private int onFailure(Exception thrown, CommandLine line) {
    PrintWriter err = line.getErr();
    String sentence = Sentences.of(thrown);
    err.println("comm-cli: " + sentence);
    if (thrown instanceof IllegalArgumentException && sentence.startsWith("-")) {
      offerHelp(line); // it is about an option
    }
    if (stacktrace) {
      thrown.printStackTrace(err);
    }
    err.flush();
    return switch (thrown) {
      case BackendUnavailableException _ -> ExitCode.UNAVAILABLE;
      case IllegalArgumentException _ -> ExitCode.USAGE;
      case JoinException join when join.reason() == JoinException.Reason.CONFIGURATION ->
          ExitCode.USAGE;
      case CommException _ -> ExitCode.RANK_FAILED;
      default -> ExitCode.CHECK_FAILED;
    };
  }

  /// Without a command there is nothing to do but to say which there are.
  @Override
  public Integer call() {
    if (spec != null) {
      spec.commandLine().usage(spec.commandLine().getErr());
    }
    return ExitCode.USAGE;
  }

  /// The version of this build.
  static final class Version implements CommandLine.IVersionProvider {
    @Override
    public String[] getVersion() {
      String version = Main.class.getPackage().getImplementationVersion();
      return new String[] {"comm-cli " + (version == null ? "(not packaged)" : version)};
    }
  }
}
