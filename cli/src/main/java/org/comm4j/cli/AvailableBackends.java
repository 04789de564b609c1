package org.comm4j.cli;

import java.util.Locale;
import java.util.concurrent.Callable;
import org.comm4j.api.BackendInfo;
import org.comm4j.api.Backends;
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
    description =
        "List every backend that was found, whether it works here, and if not what to do.")
final class AvailableBackends implements Callable<Integer> {
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
    for (BackendInfo backend : Backends.availableBackends(Environment.config())) {
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
    if (spec != null) {
      listing.print(format, spec.commandLine().getOut());
    }
    return ExitCode.FINE;
  }

  private static String lower(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
