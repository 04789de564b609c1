package org.comm4j.cli;

import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.comm4j.api.BackendInfo;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.BackendProvider;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// Lists every backend that was found.
@Command(
    name = "available-backends",
    aliases = "available_backends",
    mixinStandardHelpOptions = true,
    modelTransformer = RankOptions.OfBackends.class,
    description =
        "List every backend that was found, whether it works here, and if not what to do.")
final class AvailableBackends implements Callable<Integer> {
  private static final String PLUGIN_PATH = "COMM_PLUGIN_PATH";

  @Spec @Nullable CommandSpec spec;

  @Option(
      names = "--format",
      defaultValue = "table",
      description = "table, json or csv; ${DEFAULT-VALUE} unless given.")
  Listing.Format format = Listing.Format.TABLE;

  @Option(names = "--verbose", description = "Show capabilities and advice in the table too.")
  boolean verbose;

  AvailableBackends() {}

  @Override
  public Integer call() {
    CommandSpec own = Objects.requireNonNull(spec);
    Map<String, String> given = RankOptions.given(own);
    CommConfig config = Environment.config(given);
    List<BackendInfo> backends = Wiring.backends(config);
    Listing listing =
        new Listing(
            "name",
            "status",
            "kind",
            "priority",
            "reaches",
            "version",
            "capabilities",
            "reason",
            "remedy",
            "details",
            "advice");
    for (BackendInfo backend : backends) {
      listing.row(
          backend.name(),
          lower(backend.status()),
          backend.kind().map(AvailableBackends::lower).orElse(null),
          backend.priority(),
          backend.reaches(),
          backend.version(),
          backend.capabilities().stream().sorted().map(AvailableBackends::lower).toList(),
          backend.reason().orElse(null),
          backend.remedy().orElse(null),
          backend.details(),
          backend.advice().stream()
              .map(each -> "%s: %s; %s".formatted(each.subject(), each.found(), each.remedy()))
              .toList());
    }
    if (format == Listing.Format.TABLE && !verbose) {
      listing.without("capabilities");
      listing.without("advice");
    }
    listing.print(format, own.commandLine().getOut());
    config
        .pluginPath()
        .ifPresent(path -> {
          if (names(backends).equals(names(Wiring.backends(withoutPlugins())))) {
            warn(own, given.containsKey(PLUGIN_PATH) ? RankOptions.PLUGIN_PATH : PLUGIN_PATH, path);
          }
        });
    return ExitCode.FINE;
  }

  private static CommConfig withoutPlugins() {
    Map<String, String> variables = Environment.withoutLaunch();
    variables.remove(PLUGIN_PATH);
    return CommConfig.fromEnvironment(variables);
  }

  private static List<String> names(List<BackendInfo> backends) {
    return backends.stream().map(BackendInfo::name).sorted().toList();
  }

  /// A plugin that does not say what it is has no row.
  private static void warn(CommandSpec own, String setting, String path) {
    PrintWriter err = own.commandLine().getErr();
    err.println(
        "comm-cli: %s: '%s' has no backend (expected: jars or folders of which one names it in META-INF/services/%s)"
            .formatted(setting, path, BackendProvider.class.getName()));
    err.flush();
  }

  private static String lower(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
