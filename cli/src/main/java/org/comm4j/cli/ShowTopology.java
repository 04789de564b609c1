package org.comm4j.cli;

import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/// Starts ranks and shows where they are.
@Command(
    name = "topology",
    mixinStandardHelpOptions = true,
    description = "Start ranks and show the hosts that they are on, as they see them.")
final class ShowTopology implements Callable<Integer> {
  @Mixin final RankOptions ranks = new RankOptions();

  @Option(
      names = {"-n", "--ranks"},
      defaultValue = "1",
      paramLabel = "N",
      description = "How many ranks; ${DEFAULT-VALUE} unless given.")
  int count = 1;

  @Option(
      names = "--format",
      defaultValue = "table",
      description = "table, json or csv; ${DEFAULT-VALUE} unless given.")
  Listing.Format format = Listing.Format.TABLE;

  ShowTopology() {}

  @Override
  public Integer call() throws Exception {
    var program =
        new Program.MainClass(
            TopologyProgram.class.getName(),
            List.of(),
            List.of(format.name().toLowerCase(Locale.ROOT)));
    return Launch.of(count, ranks.backend(), program).run(System.out, System.err);
  }
}
