package org.comm4j.backend.mpi;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.RankLauncher;

/// Finds the launcher that belongs to an MPI library: under another one's each process takes itself
/// for rank 0 of 1.
///
/// `COMM_MPI_LAUNCHER` decides where it is set. Else it is looked for in the `bin` beside and above
/// the library, as far as only who is trusted may write there, then in `PATH`; what a program
/// answers to `--version` tells whose launcher it is, for its name may lead anywhere (`mpirun` of
/// Debian is a link that an administrator sets).
final class MpiLauncher {
  static final String OPTION = "COMM_MPI_LAUNCHER";
  static final String ARGUMENTS_OPTION = "COMM_MPI_LAUNCHER_ARGS";

  private static final long VERSION_SECONDS = 10;

  /// Who of Open MPI finds the hosts of batch jobs; those that a build lacks may be named too.
  private static final String NOT_OF_A_BATCH_JOB =
      "^alps,flux,gridengine,loadleveler,lsf,pbs,slurm,tm";

  /// Whose launcher one is, and what follows from that.
  ///
  /// @param version found in what it says of itself
  /// @param names it may have
  /// @param arguments that it gets; a JVM has many threads, so its processes are not bound to a
  ///   core
  /// @param environment that it gets where the user has not set it otherwise
  /// @param remedy how to get one
  private record Kind(
      String text,
      Pattern version,
      List<String> names,
      List<String> arguments,
      Map<String, String> environment,
      String rankVariable,
      String remedy) {
    static final Kind OPEN_MPI =
        new Kind(
            "Open MPI",
            Pattern.compile("Open MPI|OpenRTE"),
            List.of("mpirun.openmpi", "mpirun", "mpiexec"),
            List.of("--oversubscribe", "--bind-to", "none"),
            Map.of(
                // without them it refuses root, which containers have; they concern nobody else
                "OMPI_ALLOW_RUN_AS_ROOT",
                "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                "1",
                // else it takes the hosts of a batch job that it is in; of version 4, and 5
                "OMPI_MCA_ras",
                NOT_OF_A_BATCH_JOB,
                "PRTE_MCA_ras",
                NOT_OF_A_BATCH_JOB),
            "OMPI_COMM_WORLD_RANK",
            "install openmpi-bin (apt) or openmpi (dnf)");

    static final Kind MPICH =
        new Kind(
            "MPICH",
            Pattern.compile("HYDRA|MPICH|Intel\\(R\\) MPI|MVAPICH"),
            List.of("mpirun.mpich", "mpiexec.mpich", "mpiexec.hydra", "mpirun", "mpiexec"),
            List.of("-bind-to", "none"),
            // else it takes the hosts of a PBS, LSF, SGE or LoadLeveler job that it is in
            Map.of("HYDRA_RMK", "user"),
            "PMI_RANK",
            "install mpich (apt, dnf)");

    /// Those that can start processes of a library, the likeliest first.
    static List<Kind> of(MpiLibrary library) {
      return switch (library.maker()) {
        case OPEN_MPI -> List.of(OPEN_MPI);
        case MPICH -> List.of(MPICH);
        case UNKNOWN -> List.of(MPICH, OPEN_MPI);
      };
    }

    static Optional<Kind> ofVersion(String said) {
      return Stream.of(OPEN_MPI, MPICH)
          .filter(kind -> kind.version.matcher(said).find())
          .findFirst();
    }
  }

  /// A program that was found.
  ///
  /// @param kind empty if it does not say, as `srun` or a script
  private record Launcher(Path file, Optional<Kind> kind) {
    @Override
    public String toString() {
      return file + kind.map(whose -> " is of " + whose.text).orElse(" does not say whose it is");
    }
  }

  private final MpiLibrary library;
  private final CommConfig config;
  private final Map<String, String> environment;
  private final List<Path> path;

  /// @param environment in which the launcher runs
  MpiLauncher(MpiLibrary library, CommConfig config, Map<String, String> environment) {
    this.library = library;
    this.config = config;
    this.environment = environment;
    this.path =
        Arrays.stream(environment.getOrDefault("PATH", "").split(File.pathSeparator))
            .filter(folder -> !folder.isEmpty())
            .map(Path::of)
            .toList();
  }

  /// For the environment of this process.
  static MpiLauncher here(MpiLibrary library, CommConfig config) {
    return new MpiLauncher(library, config, System.getenv());
  }

  /// How this library's launcher starts ranks, on this host.
  ///
  /// @throws BackendUnavailableException if there is no launcher of this library
  RankLauncher starting(int ranks) {
    Launcher launcher = find();
    List<String> command = new ArrayList<>(List.of(launcher.file().toString()));
    Map<String, String> given = new HashMap<>();
    launcher
        .kind()
        .ifPresent(kind -> {
          command.addAll(kind.arguments);
          given.putAll(kind.environment);
        });
    if (!environment.containsKey(
        "OMPI_COMM_WORLD_RANK")) { // else of a launch, which ours is not in
      given.keySet().removeAll(environment.keySet());
    }
    command.addAll(words(config.options().getOrDefault(ARGUMENTS_OPTION, "")));
    command.addAll(List.of("-n", Integer.toString(ranks)));
    given.put("COMM_MPI_LIBRARY", library.file().toString());
    Kind whose = launcher.kind().orElseGet(() -> Kind.of(library).getFirst());
    return new RankLauncher(command, given, whose.rankVariable);
  }

  private static List<String> words(String text) {
    return Arrays.stream(text.split("\\s+")).filter(word -> !word.isEmpty()).toList();
  }

  private Launcher find() {
    String named = config.options().get(OPTION);
    return named == null ? search() : named(named);
  }

  private Launcher named(String name) {
    Launcher launcher =
        (name.contains("/")
                ? Stream.of(Path.of(name))
                : path.stream().map(folder -> folder.resolve(name)))
            .filter(MpiLauncher::isProgram)
            .findFirst()
            .map(MpiLauncher::ask)
            .orElseThrow(() ->
                unavailable(
                    "%s: '%s' is no program (expected: a path, or a name in PATH)"
                        .formatted(OPTION, name),
                    "correct it, or unset it"));
    List<Kind> fitting = Kind.of(library);
    if (launcher.kind().isPresent() && !fitting.contains(launcher.kind().get())) {
      throw unavailable(
          "%s: '%s' starts processes of %s, and %s (%s) would not see the others"
              .formatted(
                  OPTION, name, launcher.kind().get().text, library.version(), library.file()),
          "set COMM_MPI_LIBRARY to the launcher's library, or %s to the library's launcher"
              .formatted(OPTION));
    }
    return launcher;
  }

  private Launcher search() {
    List<Kind> fitting = Kind.of(library);
    List<String> names = fitting.stream().flatMap(kind -> kind.names.stream()).distinct().toList();
    List<Launcher> others = new ArrayList<>();
    Set<String> leftOut = new LinkedHashSet<>();
    for (Path folder : folders(leftOut)) {
      for (String name : names) {
        Path file = folder.resolve(name);
        if (isProgram(file)) {
          Launcher launcher = ask(file);
          if (launcher.kind().filter(fitting::contains).isPresent()) {
            return launcher;
          }
          others.add(launcher);
        }
      }
    }
    throw unavailable(
        "no launcher of %s (%s) found: looked for %s above it and in PATH%s%s"
            .formatted(
                library.version(),
                library.file(),
                String.join(", ", names),
                text(others),
                leftOut.isEmpty() ? "" : "; left out " + String.join(", ", leftOut)),
        fitting.stream().map(kind -> kind.remedy).collect(Collectors.joining(" or "))
            + ", or set %s to its mpirun, or COMM_MPI_LIBRARY to the library of a launcher that is here"
                .formatted(OPTION));
  }

  /// The `bin` of every folder above the library, where links lead and as it is named, but not of
  /// the root, nor from where on others could have put a program; then `PATH`.
  ///
  /// @param leftOut gets those where others could have, and who
  private Collection<Path> folders(Set<String> leftOut) {
    Set<Path> folders = new LinkedHashSet<>();
    for (Path file : List.of(real(library.file()), library.file().toAbsolutePath())) {
      for (Path above = file.getParent();
          above != null && above.getParent() != null;
          above = above.getParent()) {
        String others = othersThatWrite(above);
        if (!others.isEmpty()) {
          leftOut.add("%s and what is above it (%s may write there)".formatted(above, others));
          break;
        }
        Path bin = above.resolve("bin");
        String othersOfBin = othersThatWrite(bin);
        if (othersOfBin.isEmpty()) {
          folders.add(bin);
        } else if (Files.isDirectory(bin)) {
          leftOut.add("%s (%s may write there)".formatted(bin, othersOfBin));
        }
      }
    }
    folders.addAll(path);
    return folders;
  }

  /// {@return who can put a file there but root, this user, and who owns the library, which runs in
  /// each rank; empty if nobody can} Of a group of its owner's name nobody else is.
  private String othersThatWrite(Path folder) {
    try {
      Set<Object> trusted = new HashSet<>();
      trusted.add(0);
      trusted.add(Files.getAttribute(Path.of("/proc/self"), "unix:uid"));
      trusted.add(Files.getAttribute(library.file(), "unix:uid"));
      PosixFileAttributes of = Files.readAttributes(folder, PosixFileAttributes.class);
      String owner = of.owner().getName();
      if (!trusted.contains(Files.getAttribute(folder, "unix:uid"))) {
        return owner;
      }
      if (of.permissions().contains(PosixFilePermission.OTHERS_WRITE)) {
        return "everybody";
      }
      String group = of.group().getName();
      boolean isOfOthers =
          !group.equals(owner) && !Files.getAttribute(folder, "unix:gid").equals(0);
      return isOfOthers && of.permissions().contains(PosixFilePermission.GROUP_WRITE)
          ? "group " + group
          : "";
    } catch (IOException e) {
      return "perhaps others"; // it is not there, or can't be looked at
    }
  }

  private static Path real(Path file) {
    try {
      return file.toRealPath();
    } catch (IOException _) {
      return file.toAbsolutePath();
    }
  }

  private static boolean isProgram(Path file) {
    return Files.isRegularFile(file) && Files.isExecutable(file);
  }

  private static Launcher ask(Path file) {
    return new Launcher(file, Kind.ofVersion(version(file)));
  }

  /// What a program says of itself; nothing if it does not in time.
  private static String version(Path file) {
    Process process;
    try {
      process =
          new ProcessBuilder(file.toString(), "--version")
              .redirectErrorStream(true)
              .redirectInput(new File("/dev/null"))
              .start();
    } catch (IOException _) {
      return "";
    }
    try {
      boolean ended = process.waitFor(VERSION_SECONDS, TimeUnit.SECONDS);
      return ended ? new String(process.getInputStream().readAllBytes(), UTF_8) : "";
    } catch (IOException _) {
      return "";
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      return "";
    } finally {
      process.destroyForcibly();
    }
  }

  private static String text(List<Launcher> others) {
    return others.isEmpty()
        ? ""
        : others.stream().map(Launcher::toString).collect(Collectors.joining(", ", " (", ")"));
  }

  private static BackendUnavailableException unavailable(String reason, String remedy) {
    return new BackendUnavailableException("mpi", reason, remedy);
  }
}
