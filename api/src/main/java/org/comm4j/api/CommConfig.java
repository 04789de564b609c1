package org.comm4j.api;

import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// How a process takes part: who it is in the launch, how it finds the others, and how its
/// communicators behave. Immutable and valid: whoever holds one checks nothing again.
///
/// Made by [#builder()], or once from the environment ([#fromEnvironment]). [#settings()] describes
/// every component with its variable, default and range.
///
/// @param backend the backend's name, or [#AUTO]
/// @param rank this process's number in the launch, in `0..worldSize-1`; empty where nothing
///   launched it
/// @param worldSize how many processes the launch has, at least 1; given exactly where rank is
/// @param localRank this process's number on its host, as the launcher says; never used to decide
///   who shares memory
/// @param localWorldSize how many processes the host has, as the launcher says
/// @param nodeRank the host's number, as the launcher says
/// @param masterAddress host name or IP address of where the ranks meet
/// @param masterPort its port, in `1..65535`; 29500 unless given, where there is an address
/// @param session names the launch, so that ranks of two launches never mix
/// @param secretFile holds the secret that ranks prove they know; only its owner may read it, which
///   is checked when it is read
/// @param secret the secret itself; excludes `secretFile`
/// @param timeout how long an operation may wait for peers that are alive
/// @param liveness how long a peer may be silent before it counts as failed, 100 ms or more
/// @param joinTimeout how long the ranks may take to come together
/// @param reduction the order in which reductions combine ranks
/// @param check how much ranks compare before they communicate
/// @param synchronousSend whether every send waits for its receive
/// @param tuning a file with choices of algorithms
/// @param pluginPath where further backends are, as a class path
/// @param options settings of single backends, by variable (`COMM_SHM_WINDOW`); not yet held
///   against the backends that there are
/// @param launcher which convention gave the rank: `comm4j`, `torchrun`, `openmpi`, `pmi`, `slurm`,
///   `kubernetes`, `program` ([Builder#rank]) or `none`
/// @param launchVariables the environment variables that gave it, in the order in which they were
///   read
public record CommConfig(
    String backend,
    OptionalInt rank,
    OptionalInt worldSize,
    OptionalInt localRank,
    OptionalInt localWorldSize,
    OptionalInt nodeRank,
    Optional<String> masterAddress,
    OptionalInt masterPort,
    Optional<String> session,
    Optional<Path> secretFile,
    Optional<Secret> secret,
    Duration timeout,
    Duration liveness,
    Duration joinTimeout,
    Reduction reduction,
    CheckLevel check,
    boolean synchronousSend,
    Optional<Path> tuning,
    Optional<String> pluginPath,
    Map<String, String> options,
    String launcher,
    List<String> launchVariables) {

  /// The backend name that stands for the best usable one.
  public static final String AUTO = "auto";

  /// The launcher of a process that nothing launched.
  public static final String NO_LAUNCHER = "none";

  private static final Pattern CONFIDENTIAL =
      Pattern.compile(".*(SECRET|TOKEN|PASSWORD|PASSPHRASE|KEY|CREDENTIAL).*");

  /// How much ranks compare with each other before they communicate.
  public enum CheckLevel {
    /// What costs nothing: a fingerprint of the call travels with the data, where the backend has
    /// its own messages or kernels.
    BASIC,

    /// On `mpi` also an agreement before each call.
    FULL
  }

  /// Describes one setting, for the command line and the documentation.
  ///
  /// @param name the component of [CommConfig]
  /// @param variable the environment variable
  /// @param flag the command line's option, where it has one
  /// @param doc what it does, a sentence
  /// @param unit of its value, or what kind of value it is
  /// @param defaultValue as the variable would give it, or in words where it depends
  /// @param reason why that is the default, a sentence
  /// @param range which values are allowed
  public record Setting(
      String name,
      String variable,
      Optional<String> flag,
      String doc,
      String unit,
      String defaultValue,
      String reason,
      String range) {}

  /// Checks every component.
  ///
  /// @throws IllegalArgumentException naming component, value, what was expected and what to do
  public CommConfig {
    Values.backend("backend", backend);
    checkPlace(rank, worldSize, localRank, localWorldSize, nodeRank);
    masterAddress.ifPresent(host -> Values.host("masterAddress", host));
    if (masterAddress.isPresent() && masterPort.isEmpty()) {
      masterPort = OptionalInt.of(Settings.MASTER_PORT);
    }
    masterPort.ifPresent(port -> checkAtLeast("masterPort", port, 1, 0xFFFF));
    session.ifPresent(name -> Values.session("session", name));
    if (secretFile.isPresent() && secret.isPresent()) {
      throw new IllegalArgumentException(
          "secretFile: %s and a secret (expected: one of them); unset COMM_SECRET, which other "
                  .formatted(secretFile.get())
              + "processes can see");
    }
    Values.positive("timeout", timeout);
    Values.liveness("liveness", liveness);
    Values.positive("joinTimeout", joinTimeout);
    Objects.requireNonNull(reduction, "reduction");
    Objects.requireNonNull(check, "check");
    pluginPath.ifPresent(path -> Values.given("pluginPath", path));
    options = Map.copyOf(options);
    options.forEach(Settings::checkOption);
    Values.given("launcher", launcher);
    launchVariables = List.copyOf(launchVariables);
  }

  private static void checkPlace(
      OptionalInt rank,
      OptionalInt worldSize,
      OptionalInt localRank,
      OptionalInt localWorldSize,
      OptionalInt nodeRank) {
    if (rank.isPresent() != worldSize.isPresent()) {
      throw new IllegalArgumentException(
          rank.isPresent()
              ? "rank: %d without worldSize (expected: both); give the number of processes too"
                  .formatted(rank.getAsInt())
              : "worldSize: %d without rank (expected: both); give this process's number too"
                  .formatted(worldSize.getAsInt()));
    }
    if (rank.isEmpty()) {
      if (localRank.isPresent() || localWorldSize.isPresent() || nodeRank.isPresent()) {
        throw new IllegalArgumentException(
            "localRank: %s, localWorldSize: %s, nodeRank: %s without rank and worldSize "
                    .formatted(text(localRank), text(localWorldSize), text(nodeRank))
                + "(expected: all or none of them); give rank and worldSize too");
      }
      return;
    }
    int size = worldSize.getAsInt();
    checkAtLeast("worldSize", size, 1, Integer.MAX_VALUE);
    checkAtLeast("rank", rank.getAsInt(), 0, size - 1);
    localWorldSize.ifPresent(local -> checkAtLeast("localWorldSize", local, 1, size));
    localRank.ifPresent(
        local -> checkAtLeast("localRank", local, 0, localWorldSize.orElse(size) - 1));
    nodeRank.ifPresent(node -> checkAtLeast("nodeRank", node, 0, Integer.MAX_VALUE));
  }

  private static void checkAtLeast(String what, int value, int min, int max) {
    Values.integer(what, Integer.toString(value), min, max, "correct it where it is set");
  }

  private static String text(OptionalInt value) {
    return value.isPresent() ? Integer.toString(value.getAsInt()) : "not given";
  }

  /// {@return a builder with every default}
  public static Builder builder() {
    return new Builder();
  }

  /// {@return a builder with the values of this configuration}
  public Builder toBuilder() {
    return new Builder(this);
  }

  /// Reads the configuration from environment variables: our settings as [#settings()] lists them,
  /// and who this process is from the first of these conventions whose variables are all there.
  ///
  /// - `comm4j`: `COMM_RANK`, `COMM_WORLD_SIZE`; also reads `COMM_LOCAL_RANK`,
  ///   `COMM_LOCAL_WORLD_SIZE` and `COMM_NODE_RANK`.
  /// - `torchrun`: `RANK`, `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`; also reads `LOCAL_RANK`,
  ///   `LOCAL_WORLD_SIZE`, `GROUP_RANK` and `GROUP_WORLD_SIZE`, the session from
  ///   `TORCHELASTIC_RUN_ID` and `TORCHELASTIC_RESTART_COUNT`. Where torchrun listens on
  ///   `MASTER_PORT` itself (`TORCHELASTIC_USE_AGENT_STORE`), ranks meet on the next port.
  /// - `openmpi`: `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`; also reads
  ///   `OMPI_COMM_WORLD_LOCAL_RANK`, `OMPI_COMM_WORLD_LOCAL_SIZE`, the session from
  ///   `PMIX_NAMESPACE`.
  /// - `pmi` (MPICH, Hydra, PMIx): `PMI_RANK`, or `PMIX_RANK` where that is not set, and
  ///   `PMI_SIZE`; also reads `MPI_LOCALRANKID`, `MPI_LOCALNRANKS`, the session from
  ///   `PMIX_NAMESPACE` or `PMI_JOBID`. Where srun has set these (`--mpi=pmi2`) its own count.
  /// - `slurm`: `SLURM_PROCID`, `SLURM_STEP_NUM_TASKS` (else `SLURM_NTASKS`), `SLURM_JOB_ID` and
  ///   the `SLURM_STEP_ID` of a step that srun started; also reads `SLURM_LOCALID`, `SLURM_NODEID`,
  ///   the local size from `SLURM_STEP_TASKS_PER_NODE`, `SLURM_TASKS_PER_NODE` or
  ///   `SLURM_NTASKS_PER_NODE`, the address from the first host of `SLURM_STEP_NODELIST` or
  ///   `SLURM_JOB_NODELIST`, port and session from job and step.
  /// - `kubernetes` (indexed job): `JOB_COMPLETION_INDEX`, `COMM_WORLD_SIZE`; address and session
  ///   from `HOSTNAME`, which is `job-index`, followed by the service's domain where the pod has
  ///   `setHostnameAsFQDN: true`. Without the domain give `COMM_MASTER_ADDR` as `job-0.service`.
  ///
  /// `COMM_MASTER_ADDR`, `COMM_MASTER_PORT` and `COMM_SESSION` go before what a convention says. An
  /// incomplete set of ours is refused; one of another launcher's too, unless another one is
  /// complete. A program in a batch script of Slurm, which no srun started, has no rank and no such
  /// set: `SLURM_PROCID` counts with a step only. Sets that disagree on rank or size are refused
  /// too, unless one launcher has visibly started the other: a torchrun agent (`GROUP_WORLD_SIZE`
  /// of them) or a daemon of mpirun or mpiexec per task of Slurm, or anything in a launch of one.
  ///
  /// Variables that start with `COMM_` and are none of our settings become [#options()], to be held
  /// against the backends once these are known.
  ///
  /// @param environment for example [System#getenv()]
  /// @return the configuration
  /// @throws IllegalArgumentException naming variable, value, what was expected and what to do
  public static CommConfig fromEnvironment(Map<String, String> environment) {
    return Settings.read(environment);
  }

  /// {@return every setting, in the order of the components}
  public static List<Setting> settings() {
    return Settings.ALL;
  }

  /// Refuses options that no backend understands.
  ///
  /// @param backends for each backend found its options, without the prefix `COMM_<NAME>_`
  /// @param missing ends the message about an option of no backend: those that can't be asked
  /// @throws IllegalArgumentException naming the variable, what was expected, and the nearest name
  void checkOptions(Map<String, Set<String>> backends, String missing) {
    new TreeMap<>(options)
        .forEach((variable, value) -> Settings.checkOption(variable, value, backends, missing));
  }

  /// What is set for a backend, without the prefix `COMM_<NAME>_`.
  Set<String> optionsOf(String backend) {
    String prefix = Settings.prefix(backend);
    return options.keySet().stream()
        .filter(variable -> variable.startsWith(prefix))
        .map(variable -> variable.substring(prefix.length()))
        .collect(Collectors.toSet());
  }

  /// Refuses settings that a launch of threads, which goes on already, does not have. What has its
  /// default was not asked for, and what only processes need counts for nothing
  /// ([Communicators#open(CommConfig)]).
  void checkAgrees(CommConfig launch) {
    CommConfig usual = builder().build();
    Map<String, Function<CommConfig, Object>> settings =
        Map.of(
            "timeout", each -> Values.text(each.timeout),
            "reduction", each -> Values.lower(each.reduction),
            "check", each -> Values.lower(each.check),
            "synchronousSend", CommConfig::synchronousSend,
            "tuning", each -> each.tuning.map(Path::toString).orElse("not set"));
    new TreeMap<>(settings)
        .forEach((name, of) -> {
          Object asked = of.apply(this);
          if (!asked.equals(of.apply(usual)) && !asked.equals(of.apply(launch))) {
            throw differs(name, asked, of.apply(launch));
          }
        });
    options.forEach((variable, value) -> {
      String there = launch.options.getOrDefault(variable, "not set");
      if (!value.equals(there) && !Settings.OF_THE_SESSION.contains(variable)) {
        throw differs(variable, shown(variable, value), shown(variable, there));
      }
    });
  }

  private static IllegalArgumentException differs(String name, Object asked, Object there) {
    return new IllegalArgumentException(
        "%s: %s (expected: %s, as in the launch of threads that this rank is of); give it to the launch, or leave it out"
            .formatted(name, asked, there));
  }

  /// What a message may show of a variable's value: all of it, unless the name tells that it is a
  /// secret, or is a secret's place, or is such a name of ours misspelt. Whoever prints settings
  /// asks here.
  ///
  /// @param variable an environment variable, also one that is none of comm4j's
  /// @param value what it is set to
  /// @return the value, or `(not shown)`
  public static String shown(String variable, String value) {
    String name = variable.toUpperCase(Locale.ROOT);
    boolean isSecret =
        isConfidential(name) || Settings.near(name).filter(CommConfig::isConfidential).isPresent();
    return isSecret ? "(not shown)" : value;
  }

  private static boolean isConfidential(String name) {
    return CONFIDENTIAL.matcher(name).matches();
  }

  /// {@return what is set, without secrets}
  @Override
  public String toString() {
    Map<String, String> parts = new LinkedHashMap<>();
    parts.put("backend", backend);
    put(parts, "rank", rank);
    put(parts, "worldSize", worldSize);
    put(parts, "localRank", localRank);
    put(parts, "localWorldSize", localWorldSize);
    put(parts, "nodeRank", nodeRank);
    masterAddress.ifPresent(host -> parts.put("masterAddress", host));
    put(parts, "masterPort", masterPort);
    session.ifPresent(name -> parts.put("session", name));
    secretFile.ifPresent(file -> parts.put("secretFile", file.toString()));
    secret.ifPresent(given -> parts.put("secret", given.toString()));
    parts.put("timeout", Values.text(timeout));
    parts.put("liveness", Values.text(liveness));
    parts.put("joinTimeout", Values.text(joinTimeout));
    parts.put("reduction", Values.lower(reduction));
    parts.put("check", Values.lower(check));
    parts.put("synchronousSend", Boolean.toString(synchronousSend));
    tuning.ifPresent(file -> parts.put("tuning", file.toString()));
    pluginPath.ifPresent(path -> parts.put("pluginPath", path));
    new TreeMap<>(options).forEach((name, value) -> parts.put(name, shown(name, value)));
    parts.put("launcher", launcher);
    return parts.entrySet().stream()
        .map(part -> part.getKey() + "=" + part.getValue())
        .collect(Collectors.joining(", ", "CommConfig[", "]"));
  }

  private static void put(Map<String, String> parts, String name, OptionalInt value) {
    value.ifPresent(number -> parts.put(name, Integer.toString(number)));
  }

  /// Collects values for a [CommConfig]; [#build()] checks them. For one thread.
  public static final class Builder {
    private String backend = AUTO;
    private OptionalInt rank = OptionalInt.empty();
    private OptionalInt worldSize = OptionalInt.empty();
    private OptionalInt localRank = OptionalInt.empty();
    private OptionalInt localWorldSize = OptionalInt.empty();
    private OptionalInt nodeRank = OptionalInt.empty();
    private Optional<String> masterAddress = Optional.empty();
    private OptionalInt masterPort = OptionalInt.empty();
    private Optional<String> session = Optional.empty();
    private Optional<Path> secretFile = Optional.empty();
    private Optional<Secret> secret = Optional.empty();
    private Duration timeout = Settings.TIMEOUT;
    private Duration liveness = Settings.LIVENESS;
    private Duration joinTimeout = Settings.JOIN_TIMEOUT;
    private Reduction reduction = Reduction.FAST;
    private CheckLevel check = CheckLevel.BASIC;
    private boolean synchronousSend;
    private Optional<Path> tuning = Optional.empty();
    private Optional<String> pluginPath = Optional.empty();
    private final Map<String, String> options = new LinkedHashMap<>();
    private @Nullable String launcher;
    private List<String> launchVariables = List.of();

    private Builder() {}

    private Builder(CommConfig config) {
      backend = config.backend;
      rank = config.rank;
      worldSize = config.worldSize;
      localRank = config.localRank;
      localWorldSize = config.localWorldSize;
      nodeRank = config.nodeRank;
      masterAddress = config.masterAddress;
      masterPort = config.masterPort;
      session = config.session;
      secretFile = config.secretFile;
      secret = config.secret;
      timeout = config.timeout;
      liveness = config.liveness;
      joinTimeout = config.joinTimeout;
      reduction = config.reduction;
      check = config.check;
      synchronousSend = config.synchronousSend;
      tuning = config.tuning;
      pluginPath = config.pluginPath;
      options.putAll(config.options);
      launcher = config.launcher.equals(NO_LAUNCHER) ? null : config.launcher;
      launchVariables = config.launchVariables;
    }

    /// Which backend to use.
    ///
    /// @param value a name, or [#AUTO], the same on every rank
    /// @return this
    public Builder backend(String value) {
      backend = Objects.requireNonNull(value, "backend");
      return this;
    }

    /// Who this process is.
    ///
    /// @param value in `0..worldSize-1`
    /// @return this
    public Builder rank(int value) {
      rank = OptionalInt.of(value);
      return this;
    }

    /// How many processes the launch has.
    ///
    /// @param value at least 1
    /// @return this
    public Builder worldSize(int value) {
      worldSize = OptionalInt.of(value);
      return this;
    }

    /// Which process of its host this is.
    ///
    /// @param value in `0..localWorldSize-1`
    /// @return this
    public Builder localRank(int value) {
      localRank = OptionalInt.of(value);
      return this;
    }

    /// How many processes the host has.
    ///
    /// @param value in `1..worldSize`
    /// @return this
    public Builder localWorldSize(int value) {
      localWorldSize = OptionalInt.of(value);
      return this;
    }

    /// Which host this is.
    ///
    /// @param value 0 or more
    /// @return this
    public Builder nodeRank(int value) {
      nodeRank = OptionalInt.of(value);
      return this;
    }

    /// Where the ranks meet.
    ///
    /// @param value a host name or an IP address
    /// @return this
    public Builder masterAddress(String value) {
      masterAddress = Optional.of(Objects.requireNonNull(value, "masterAddress"));
      return this;
    }

    /// The port where the ranks meet; 29500 unless given, where there is an address.
    ///
    /// @param value in `1..65535`
    /// @return this
    public Builder masterPort(int value) {
      masterPort = OptionalInt.of(value);
      return this;
    }

    /// Names the launch.
    ///
    /// @param value the same on every rank, and of no other launch
    /// @return this
    public Builder session(String value) {
      session = Optional.of(Objects.requireNonNull(value, "session"));
      return this;
    }

    /// Where the secret is.
    ///
    /// @param value a file that only its owner may read
    /// @return this
    public Builder secretFile(Path value) {
      secretFile = Optional.of(Objects.requireNonNull(value, "secretFile"));
      return this;
    }

    /// The secret itself.
    ///
    /// @param value the same on every rank
    /// @return this
    public Builder secret(Secret value) {
      secret = Optional.of(Objects.requireNonNull(value, "secret"));
      return this;
    }

    /// How long an operation may wait for peers that are alive.
    ///
    /// @param value more than zero
    /// @return this
    public Builder timeout(Duration value) {
      timeout = Objects.requireNonNull(value, "timeout");
      return this;
    }

    /// How long a peer may be silent.
    ///
    /// @param value 100 ms or more, the same on every rank
    /// @return this
    public Builder liveness(Duration value) {
      liveness = Objects.requireNonNull(value, "liveness");
      return this;
    }

    /// How long the ranks may take to come together.
    ///
    /// @param value more than zero
    /// @return this
    public Builder joinTimeout(Duration value) {
      joinTimeout = Objects.requireNonNull(value, "joinTimeout");
      return this;
    }

    /// In which order reductions combine ranks.
    ///
    /// @param value the same on every rank
    /// @return this
    public Builder reduction(Reduction value) {
      reduction = Objects.requireNonNull(value, "reduction");
      return this;
    }

    /// How much ranks compare.
    ///
    /// @param value the same on every rank
    /// @return this
    public Builder check(CheckLevel value) {
      check = Objects.requireNonNull(value, "check");
      return this;
    }

    /// Whether every send waits for its receive.
    ///
    /// @param value the same on every rank
    /// @return this
    public Builder synchronousSend(boolean value) {
      synchronousSend = value;
      return this;
    }

    /// Where choices of algorithms are.
    ///
    /// @param value a file, which says the same on every rank
    /// @return this
    public Builder tuning(Path value) {
      tuning = Optional.of(Objects.requireNonNull(value, "tuning"));
      return this;
    }

    /// Where further backends are.
    ///
    /// @param value a class path
    /// @return this
    public Builder pluginPath(String value) {
      pluginPath = Optional.of(Objects.requireNonNull(value, "pluginPath"));
      return this;
    }

    /// Sets an option of a single backend.
    ///
    /// @param variable its environment variable, for example `COMM_SHM_WINDOW`
    /// @param value as the variable would give it; the same on every rank, to the letter, unless it
    ///   names something of one host, as the variable's end says (`ADDRESS`, `DEVICE`, `PORTS`, …)
    /// @return this
    public Builder option(String variable, String value) {
      options.put(variable, value);
      return this;
    }

    /// Which convention gave the rank.
    ///
    /// @param name as [CommConfig#launcher()]
    /// @param variables that gave it
    /// @return this
    public Builder launcher(String name, List<String> variables) {
      launcher = name;
      launchVariables = List.copyOf(variables);
      return this;
    }

    /// Sets what a variable sets, from text.
    ///
    /// @param variable of one of the [CommConfig#settings()], or of a backend's option
    /// @param text as the environment would give it
    /// @return this
    /// @throws IllegalArgumentException naming variable, value, what was expected and what to do
    public Builder set(String variable, String text) {
      Settings.set(this, variable, text);
      return this;
    }

    /// {@return the configuration}
    ///
    /// @throws IllegalArgumentException naming component, value, what was expected and what to do
    public CommConfig build() {
      String by = launcher;
      if (by == null) {
        by = rank.isPresent() ? "program" : NO_LAUNCHER;
      }
      return new CommConfig(
          backend,
          rank,
          worldSize,
          localRank,
          localWorldSize,
          nodeRank,
          masterAddress,
          masterPort,
          session,
          secretFile,
          secret,
          timeout,
          liveness,
          joinTimeout,
          reduction,
          check,
          synchronousSend,
          tuning,
          pluginPath,
          options,
          by,
          launchVariables);
    }
  }
}
