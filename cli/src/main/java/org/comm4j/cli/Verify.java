package org.comm4j.cli;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ThreadLocalRandom;
import org.comm4j.core.session.OwnFolder;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// Starts ranks and checks the rules of the contract on them.
@Command(
    name = "verify",
    mixinStandardHelpOptions = true,
    modelTransformer = RankOptions.class,
    description = {
      "Start ranks and check on them that a backend keeps the rules of docs/contract.md.",
      "",
      "A rule that was not run says why: for example, it needs more ranks, or another setting"
          + " such as COMM_REDUCTION=ordered. Exit code 1 if a rule failed."
    })
final class Verify implements Callable<Integer> {
  @Spec @Nullable CommandSpec spec;

  @Option(
      names = {"-n", "--ranks"},
      paramLabel = "N",
      description =
          "How many ranks; those of its launch where a launcher has started this process.")
  @Nullable Integer ranks;

  @Option(
      names = "--seed",
      paramLabel = "SEED",
      description = "Repeats a verification; a new one is taken and printed unless given.")
  @Nullable Long seed;

  @Option(
      names = "--format",
      defaultValue = "table",
      description = "table, json or csv; ${DEFAULT-VALUE} unless given.")
  Listing.Format format = Listing.Format.TABLE;

  Verify() {}

  @Override
  public Integer call() throws Exception {
    long chosen = seed != null ? seed : ThreadLocalRandom.current().nextInt(Integer.MAX_VALUE);
    try (OwnFolder folder = LaunchFolder.create()) {
      Path result = Files.createFile(folder.path().resolve("result"));
      int code =
          RankOptions.run(
              Objects.requireNonNull(spec),
              VerifyProgram.class,
              VerifyProgram::main,
              List.of(Long.toString(chosen), format.name(), result.toString()));
      return code == ExitCode.FINE && Files.readString(result).equals(VerifyProgram.FAILED)
          ? ExitCode.CHECK_FAILED
          : code;
    }
  }
}
