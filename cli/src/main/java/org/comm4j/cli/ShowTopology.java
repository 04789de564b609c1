package org.comm4j.cli;

import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// Starts ranks and shows where they are.
@Command(
    name = "topology",
    mixinStandardHelpOptions = true,
    modelTransformer = RankOptions.class,
    description = "Start ranks and show the hosts that they are on, as they see them.")
final class ShowTopology implements Callable<Integer> {
  @Spec @Nullable CommandSpec spec;

  @Option(
      names = {"-n", "--ranks"},
      defaultValue = "1",
      paramLabel = "N",
      description =
          "How many ranks to start; ${DEFAULT-VALUE} unless given. Where a launcher (mpirun, srun) has"
              + " started this process, its launch has the ranks.")
  int ranks = 1;

  @Option(
      names = "--format",
      defaultValue = "table",
      description = "table, json or csv (the hosts alone); ${DEFAULT-VALUE} unless given.")
  Listing.Format format = Listing.Format.TABLE;

  ShowTopology() {}

  @Override
  public Integer call() throws Exception {
    return RankOptions.run(
        Objects.requireNonNull(spec),
        TopologyProgram.class,
        TopologyProgram::main,
        List.of(format.name()));
  }
}
