package org.comm4j.backend.mpi;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.RankLauncher;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.core.session.Versions;
import org.jspecify.annotations.Nullable;

/// `mpi`: ranks of an MPI job.
public final class MpiProvider implements BackendProvider {
  static final String NAME = "mpi";

  private static final String SLURM = "slurm";

  /// Launchers whose processes an MPI library finds itself a job of.
  private static final Set<String> MPI_LAUNCHERS = Set.of("openmpi", "pmi", SLURM);

  private final MpiLibraries libraries;

  /// For [java.util.ServiceLoader]; looks for nothing yet.
  public MpiProvider() {
    this(MpiLibraries.here());
  }

  MpiProvider(MpiLibraries libraries) {
    this.libraries = libraries;
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String version() {
    return Versions.ofJar(MpiProvider.class, "comm4j-backend-mpi");
  }

  @Override
  public RankKind rankKind() {
    return RankKind.PROCESSES;
  }

  @Override
  public int priority() {
    return 50;
  }

  @Override
  public String reaches() {
    return "processes of an MPI job, on any hosts";
  }

  @Override
  public Set<Capability> capabilities() {
    return Abilities.USUAL;
  }

  @Override
  public Set<String> options() {
    return Set.of("LIBRARY", "WAIT", "THREADS", "LAUNCHER", "LAUNCHER_ARGS", "LARGEST_COUNT");
  }

  @Override
  public void checkOptions(CommConfig config) {
    var _ = Wait.of(config);
    var _ = ThreadLevel.of(config);
    var _ = LargestCount.of(config);
  }

  @Override
  public Optional<RankLauncher> launcher(int ranks, CommConfig config) {
    MpiLibrary library = library(config);
    return Optional.of(MpiLauncher.here(library, config).starting(ranks));
  }

  @Override
  public void removeRemains(CommConfig config) {
    new Remains(Path.of("/dev/shm"), Path.of("/proc")).remove();
  }

  /// The library that this process would use.
  ///
  /// @throws BackendUnavailableException if there is none that fits its launcher
  private MpiLibrary library(CommConfig config) {
    if (libraries.availability(config) instanceof Availability.Unavailable it) {
      throw new BackendUnavailableException(NAME, it.reason(), it.remedy());
    }
    return libraries.choose(config).orElseThrow();
  }

  @Override
  public Optional<String> explain(
      String operation,
      DataType type,
      @Nullable ReduceOp op,
      long bytes,
      int ranks,
      CommConfig config) {
    boolean largeCounts =
        libraries
            .choose(config)
            .filter(library -> library.features().contains(MpiLibrary.Feature.LARGE_COUNTS))
            .isPresent();
    return Optional.of(Ways.of(operation, type, op, bytes, ranks, config, largeCounts));
  }

  @Override
  public Optional<CommConfig> meet(CommConfig launch) {
    return launch.options().containsKey(DefaultSessionFactory.HOSTED)
        ? Optional.empty() // who hosts the session has its secret
        : Optional.of(World.meet(library(launch), launch));
  }

  @Override
  public BackendCommunicator open(Session session, CommConfig config) {
    return World.open(library(config), session, config);
  }

  @Override
  public Availability availability(CommConfig config) {
    String system = System.getProperty("os.name");
    if (!system.equals("Linux")) {
      return Availability.unavailable(
          "it needs Linux, this is " + system, "use another backend, for example 'local'");
    }
    Module module = getClass().getModule();
    if (!module.isNativeAccessEnabled()) {
      return Availability.unavailable(
          "Java keeps it from calling native code",
          "start java with --enable-native-access="
              + (module.isNamed() ? module.getName() : "ALL-UNNAMED"));
    }
    int size = config.worldSize().orElse(1);
    if (size > 1
        && !config.launcher().isEmpty()
        && !MPI_LAUNCHERS.contains(config.launcher())
        && !libraries.isStarted(config.rank().orElse(0), size)) {
      return Availability.unavailable(
          "this launch was started by %s, and to an MPI library each of its processes is alone"
              .formatted(config.launcher()),
          "start the ranks with mpirun, mpiexec or srun --mpi=pmix, or with comm-cli run"
              + " --backend mpi");
    }
    boolean isAuto = config.backend().equals(CommConfig.AUTO); // Slurm's PMI-1 has no variables
    if (size > 1 && isAuto && config.launcher().equals(SLURM) && !libraries.isServed()) {
      return Availability.unavailable(
          "srun started this launch without PMI, and to an MPI library each of its processes is"
              + " alone",
          "start the ranks with srun --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH); srun --mpi=list"
              + " says what there is");
    }
    return libraries.availability(config);
  }

  @Override
  public Map<String, String> details(CommConfig config) {
    List<MpiLibrary> found = libraries.find(config);
    Map<String, String> details = new LinkedHashMap<>();
    if (!found.isEmpty()) {
      MpiLibrary library = found.getFirst();
      details.put("library", library.version());
      details.put("file", library.file().toString());
      details.put("standard", "MPI " + library.standard());
      details.put("interface", library.abi().name().toLowerCase(Locale.ROOT).replace('_', '-'));
      details.put(
          "features",
          library.features().isEmpty()
              ? "none"
              : library.features().stream()
                  .sorted()
                  .map(MpiLibrary.Feature::shown)
                  .collect(Collectors.joining(", ")));
      details.put("threads", "known once MPI runs");
    }
    if (found.size() > 1) {
      details.put(
          "others",
          found.stream().skip(1).map(MpiLibrary::shown).collect(Collectors.joining(", ")));
    }
    return details;
  }
}
