package org.comm4j.cli;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.comm4j.api.CommConfig;

/// The environment that `comm-cli` was started in. Besides the API only this class reads it.
final class Environment {
  /// What other launchers say of a rank: not for ranks that `comm-cli` starts itself.
  private static final Set<String> FOREIGN =
      Set.of(
          "RANK",
          "WORLD_SIZE",
          "LOCAL_RANK",
          "LOCAL_WORLD_SIZE",
          "GROUP_RANK",
          "GROUP_WORLD_SIZE",
          "ROLE_RANK",
          "ROLE_WORLD_SIZE",
          "MASTER_ADDR",
          "MASTER_PORT",
          "JOB_COMPLETION_INDEX");

  /// How Open MPI and its PMIx are configured; of a launch only where there is one.
  private static final Set<String> OPEN_MPI_SETTINGS =
      Set.of("OMPI_MCA_", "OMPI_ALLOW_", "PMIX_MCA_");

  private static final Set<String> FOREIGN_PREFIXES =
      Set.of("OMPI_", "PMIX_", "PMI_", "HYDI_", "MPI_LOCAL", "SLURM_", "TORCHELASTIC_");

  /// What a batch system says of a job as a whole: of its processors, its memory, its folders.
  private static final Set<String> BATCH_JOB_PREFIXES =
      Set.of(
          "SLURM_ARRAY_",
          "SLURM_CLUSTER_",
          "SLURM_CPUS_",
          "SLURM_GPUS",
          "SLURM_JOB",
          "SLURM_MEM_",
          "SLURM_RESTART_",
          "SLURM_SUBMIT_",
          "SLURM_TMPDIR");

  /// What our own launch says of a rank.
  private static final Set<String> OF_A_RANK =
      Set.of(
          "COMM_RANK",
          "COMM_WORLD_SIZE",
          "COMM_LOCAL_RANK",
          "COMM_LOCAL_WORLD_SIZE",
          "COMM_NODE_RANK",
          "COMM_MASTER_ADDR",
          "COMM_MASTER_PORT",
          "COMM_SESSION",
          "COMM_SESSION_HOSTED");

  private Environment() {}

  /// All of it, for whoever explains it.
  static Map<String, String> all() {
    return System.getenv();
  }

  /// What the user configured, without the launch that `comm-cli` itself may be a rank of, with
  /// settings of the command line, by their variables.
  static CommConfig config(Map<String, String> given) {
    return config(all(), given);
  }

  /// The same of another environment.
  static CommConfig config(Map<String, String> environment, Map<String, String> given) {
    Map<String, String> variables = withoutLaunch(environment);
    variables.putAll(given);
    return CommConfig.fromEnvironment(variables);
  }

  /// What the user calls the launch that `comm-cli` is to start. In a rank it is the name of the
  /// launch that the rank is of.
  static Optional<String> launchName() {
    return System.getenv("COMM_RANK") == null
        ? Optional.ofNullable(System.getenv("COMM_SESSION")).filter(name -> !name.isBlank())
        : Optional.empty();
  }

  /// What a rank of a program of our own is configured with.
  ///
  /// @param arguments of the program
  /// @param settings where the settings of the command line begin, as `VARIABLE=value`
  static CommConfig config(String[] arguments, int settings) {
    Map<String, String> environment = new HashMap<>(System.getenv());
    for (String each : List.of(arguments).subList(settings, arguments.length)) {
      int equals = each.indexOf('=');
      environment.put(each.substring(0, equals), each.substring(equals + 1));
    }
    return CommConfig.fromEnvironment(environment);
  }

  /// The environment for a rank, to which its launch is added.
  static Map<String, String> withoutLaunch() {
    return withoutLaunch(System.getenv());
  }

  /// An environment without what it says of a launch.
  static Map<String, String> withoutLaunch(Map<String, String> environment) {
    Map<String, String> own = new HashMap<>(environment);
    boolean launched = environment.containsKey("OMPI_COMM_WORLD_RANK");
    own.keySet().removeIf(name -> isOfLaunch(name) && (launched || !isSetting(name)));
    return own;
  }

  /// What ranks may know of the batch job that their launch runs in. Not for MPI's launchers: they
  /// would start ranks by the batch system, on hosts that it names.
  static Map<String, String> ofBatchJob() {
    Map<String, String> own = new HashMap<>(System.getenv());
    own.keySet().removeIf(name -> BATCH_JOB_PREFIXES.stream().noneMatch(name::startsWith));
    return own;
  }

  private static boolean isSetting(String name) {
    return OPEN_MPI_SETTINGS.stream().anyMatch(name::startsWith);
  }

  /// Whether a variable says what a launch is, and which rank of it.
  static boolean isOfLaunch(String name) {
    return OF_A_RANK.contains(name)
        || FOREIGN.contains(name)
        || FOREIGN_PREFIXES.stream().anyMatch(name::startsWith);
  }
}
