package org.comm4j.api;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The conventions by which launchers tell a process who it is. A set counts only when complete,
/// and where no set is, half of one is refused: a rank must not take itself for a group of one.
final class Launchers {
  static final String OWN = "comm4j";
  static final String TORCHRUN = "torchrun";
  static final String OPEN_MPI = "openmpi";
  static final String PMI = "pmi";
  static final String SLURM = "slurm";
  static final String KUBERNETES = "kubernetes";

  /// The variables of ours that say who a process is.
  static final Set<String> OWN_VARIABLES =
      Set.of(
          "COMM_RANK",
          "COMM_WORLD_SIZE",
          "COMM_LOCAL_RANK",
          "COMM_LOCAL_WORLD_SIZE",
          "COMM_NODE_RANK");

  private static final List<Function<Map<String, String>, Optional<Launch>>> CONVENTIONS =
      List.of(
          Launchers::own,
          Launchers::torchrun,
          Launchers::openMpi,
          Launchers::pmi,
          Launchers::slurm,
          Launchers::kubernetes);

  /// Steps from here on are none that srun started: the batch script, an interactive shell.
  private static final long FIRST_SPECIAL_STEP = 0xFFFF_FFF0L;

  private Launchers() {}

  /// The first convention whose variables are all there.
  ///
  /// @throws IllegalArgumentException if ours is incomplete, or another's where none is complete;
  ///   if one holds nonsense or two disagree
  static Optional<Launch> detect(Map<String, String> environment) {
    checkWhole(environment);
    List<Launch> found =
        CONVENTIONS.stream().flatMap(convention -> convention.apply(environment).stream()).toList();
    if (found.isEmpty()) {
      checkNoAddress(environment);
      checkNoHalf(environment);
      return Optional.empty();
    }
    Launch first = found.getFirst();
    found.forEach(first::checkAgrees);
    return Optional.of(first);
  }

  private static void checkWhole(Map<String, String> environment) {
    boolean rank = environment.containsKey("COMM_RANK");
    boolean size = environment.containsKey("COMM_WORLD_SIZE");
    boolean indexed = environment.containsKey("JOB_COMPLETION_INDEX");
    if (rank && !size) {
      throw half(environment, "COMM_RANK", "COMM_WORLD_SIZE");
    }
    if (size && !rank && !indexed) {
      throw half(environment, "COMM_WORLD_SIZE", "COMM_RANK");
    }
    if (rank
        && environment.containsKey("COMM_MASTER_PORT")
        && !environment.containsKey("COMM_MASTER_ADDR")) {
      throw half(environment, "COMM_MASTER_PORT", "COMM_MASTER_ADDR");
    }
    if (!rank) {
      Stream.of("COMM_LOCAL_RANK", "COMM_LOCAL_WORLD_SIZE", "COMM_NODE_RANK")
          .filter(environment::containsKey)
          .findFirst()
          .ifPresent(variable -> {
            throw half(environment, variable, "COMM_RANK", "COMM_WORLD_SIZE");
          });
    }
  }

  private static void checkNoAddress(Map<String, String> environment) {
    Stream.of("COMM_MASTER_ADDR", "COMM_MASTER_PORT")
        .filter(environment::containsKey)
        .findFirst()
        .ifPresent(variable -> {
          throw half(environment, variable, "COMM_RANK", "COMM_WORLD_SIZE");
        });
  }

  /// Other launchers' sets. Each begins with the variables that show the launcher; what may be set
  /// without it comes after these.
  private static void checkNoHalf(Map<String, String> environment) {
    checkNoHalf(environment, 2, "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT");
    checkNoHalf(environment, 2, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
    checkNoHalf(environment, 2, pmiRank(environment), "PMI_SIZE");
    checkNoHalf(environment, 1, "JOB_COMPLETION_INDEX", "COMM_WORLD_SIZE");
    var read = new LaunchReader(environment);
    String step = slurmStep(read);
    if (read.has("SLURM_PROCID", step) && read.unsigned(step) < FIRST_SPECIAL_STEP) {
      checkNoHalf(environment, 1, "SLURM_PROCID", slurmSize(read), slurmJob(read));
    }
  }

  private static void checkNoHalf(Map<String, String> environment, int telling, String... set) {
    if (Arrays.stream(set, 0, telling).anyMatch(environment::containsKey)) {
      List<String> given = Arrays.stream(set).filter(environment::containsKey).toList();
      List<String> missing = Arrays.stream(set).filter(each -> !given.contains(each)).toList();
      throw half(environment, given, missing, ", or COMM_RANK and COMM_WORLD_SIZE");
    }
  }

  private static IllegalArgumentException half(
      Map<String, String> environment, String given, String... missing) {
    return half(environment, List.of(given), List.of(missing), "");
  }

  private static IllegalArgumentException half(
      Map<String, String> environment, List<String> given, List<String> missing, String instead) {
    String names = String.join(" and ", missing);
    return new IllegalArgumentException(
        "%s without %s (expected: all or none of them); set %s too%s, or start the processes"
                .formatted(
                    given.stream()
                        .map(each -> "%s: '%s'".formatted(each, environment.get(each)))
                        .collect(Collectors.joining(", ")),
                    names,
                    names,
                    instead)
            + " with comm-cli run, or unset "
            + String.join(" and ", given));
  }

  private static Optional<Launch> own(Map<String, String> environment) {
    if (!environment.containsKey("COMM_RANK")) {
      return Optional.empty();
    }
    return Optional.of(
        new LaunchReader(environment)
            .launch(OWN, "COMM_RANK", "COMM_WORLD_SIZE")
            .local("COMM_LOCAL_RANK", "COMM_LOCAL_WORLD_SIZE")
            .node("COMM_NODE_RANK")
            .end());
  }

  private static Optional<Launch> torchrun(Map<String, String> environment) {
    var read = new LaunchReader(environment);
    if (!read.has("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")) {
      return Optional.empty();
    }
    read.launch(TORCHRUN, "RANK", "WORLD_SIZE")
        .local("LOCAL_RANK", "LOCAL_WORLD_SIZE")
        .node("GROUP_RANK")
        .agents("GROUP_WORLD_SIZE");
    String host = Values.host("MASTER_ADDR", read.text("MASTER_ADDR"));
    int port =
        Values.integer(
            "MASTER_PORT", read.text("MASTER_PORT"), 1, 0xFFFF, "correct torchrun's --master-port");
    if (read.optional("TORCHELASTIC_USE_AGENT_STORE").equals(Optional.of("True"))) {
      port = port < 0xFFFF ? port + 1 : port - 1; // torchrun itself listens there
    }
    read.meet(host, port);
    read.optional("TORCHELASTIC_RUN_ID")
        .ifPresent(id ->
            read.session(
                id + read.optional("TORCHELASTIC_RESTART_COUNT").map(n -> "." + n).orElse("")));
    return Optional.of(read.end());
  }

  private static Optional<Launch> openMpi(Map<String, String> environment) {
    var read = new LaunchReader(environment);
    if (!read.has("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) {
      return Optional.empty();
    }
    // OMPI_COMM_WORLD_NODE_RANK counts processes on a host, not hosts: it is no node rank of ours.
    read.launch(OPEN_MPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
        .local("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
    read.optional("PMIX_NAMESPACE").ifPresent(read::session);
    return Optional.of(read.end());
  }

  private static Optional<Launch> pmi(Map<String, String> environment) {
    var read = new LaunchReader(environment);
    String rank = pmiRank(environment);
    if (!read.has(rank, "PMI_SIZE")) {
      return Optional.empty();
    }
    read.launch(PMI, rank, "PMI_SIZE").local("MPI_LOCALRANKID", "MPI_LOCALNRANKS");
    read.optional("PMIX_NAMESPACE").or(() -> read.optional("PMI_JOBID")).ifPresent(read::session);
    return Optional.of(read.end()).filter(launch -> !isOfSrun(environment, launch));
  }

  /// Whether srun speaks PMI itself: then its own variables say the same, and where ranks meet too.
  /// Of MPICH's mpiexec, which may run in a step of one task per rank, there is a trace.
  private static boolean isOfSrun(Map<String, String> environment, Launch pmi) {
    return !environment.containsKey("HYDI_CONTROL_FD")
        && !environment.containsKey("MPI_LOCALRANKID")
        && slurm(environment).filter(step -> step.isOfSameRank(pmi)).isPresent();
  }

  private static String pmiRank(Map<String, String> environment) {
    return environment.containsKey("PMIX_RANK") && !environment.containsKey("PMI_RANK")
        ? "PMIX_RANK"
        : "PMI_RANK";
  }

  private static Optional<Launch> slurm(Map<String, String> environment) {
    var read = new LaunchReader(environment);
    String size = slurmSize(read);
    String stepVariable = slurmStep(read);
    String jobVariable = slurmJob(read);
    if (!read.has("SLURM_PROCID", size, stepVariable, jobVariable)) {
      return Optional.empty();
    }
    long step = read.unsigned(stepVariable);
    if (step >= FIRST_SPECIAL_STEP) {
      return Optional.empty();
    }
    long job = read.unsigned(jobVariable);
    read.launch(SLURM, "SLURM_PROCID", size).node("SLURM_NODEID");
    read.local("SLURM_LOCALID", slurmLocalSize(read));
    String hosts = read.firstOf("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
    read.optional(hosts)
        .ifPresent(
            list -> read.meet(SlurmLists.firstHost(hosts, list), SlurmLists.port(job, step)));
    read.session(job + "." + step);
    return Optional.of(read.end());
  }

  private static String slurmSize(LaunchReader read) {
    return read.firstOf("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
  }

  private static String slurmStep(LaunchReader read) {
    return read.firstOf("SLURM_STEPID", "SLURM_STEP_ID");
  }

  private static String slurmJob(LaunchReader read) {
    return read.firstOf("SLURM_JOBID", "SLURM_JOB_ID");
  }

  private static OptionalInt slurmLocalSize(LaunchReader read) {
    int node = read.peek("SLURM_NODEID");
    for (String variable : List.of("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")) {
      Optional<String> list = read.optional(variable);
      if (list.isPresent()) {
        int[] tasks = SlurmLists.tasksPerNode(variable, list.get());
        // The job's list is not the step's when srun took only a part of the job.
        if (node >= 0 && node < tasks.length && Arrays.stream(tasks).sum() == read.size()) {
          return OptionalInt.of(tasks[node]);
        }
      }
    }
    int perNode = read.peek("SLURM_NTASKS_PER_NODE");
    return perNode >= 1 && perNode <= read.size() && read.size() % perNode == 0
        ? OptionalInt.of(perNode)
        : OptionalInt.empty();
  }

  private static Optional<Launch> kubernetes(Map<String, String> environment) {
    var read = new LaunchReader(environment);
    if (!read.has("JOB_COMPLETION_INDEX", "COMM_WORLD_SIZE") || read.has("COMM_RANK")) {
      return Optional.empty();
    }
    read.launch(KUBERNETES, "JOB_COMPLETION_INDEX", "COMM_WORLD_SIZE").alone();
    String host = read.optional("HOSTNAME").orElse("");
    int dot = host.indexOf('.');
    String label = dot < 0 ? host : host.substring(0, dot);
    String ending = "-" + read.rank();
    String job = label.endsWith(ending) ? label.substring(0, label.length() - ending.length()) : "";
    if (!job.isEmpty()) {
      read.session(job);
      if (dot >= 0) {
        read.meet(job + "-0" + host.substring(dot), Settings.MASTER_PORT);
      }
    }
    if ((job.isEmpty() || dot < 0) && !read.has("COMM_MASTER_ADDR") && read.size() > 1) {
      throw new IllegalArgumentException(
          "HOSTNAME: '%s' of rank %d of %d (expected: <job>-%d.<service>, where rank 0 is"
                  .formatted(host, read.rank(), read.size(), read.rank())
              + " <job>-0.<service>); set COMM_MASTER_ADDR=%s-0.<service> with the job's headless"
                  .formatted(job.isEmpty() ? "<job>" : job)
              + " service, or setHostnameAsFQDN: true in the pod");
    }
    return Optional.of(read.end());
  }
}
