package org.comm4j.backend.mpi;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Availability;
import org.comm4j.backend.mpi.MpiLibrary.Maker;

/// Finds the MPI libraries of this host and says which one is used. It looks at files only: nothing
/// of a library runs. For any thread.
///
/// `COMM_MPI_LIBRARY` decides where it is set: a file, or a name to look for. Else the launcher
/// that started this process does, for a library under another one's takes itself for rank 0 of 1.
/// Else `LD_LIBRARY_PATH` goes before the rest of the host, and then the standard's interface
/// before Open MPI's and MPICH's. Symbolic links are followed, so that each file counts once.
///
/// It looks once and remembers, since a listing asks several times.
final class MpiLibraries {
  static final String OPTION = "COMM_MPI_LIBRARY";

  /// As libraries and links to them are called where programs find them, likely ones first.
  private static final List<String> NAMES =
      List.of(
          "libmpi_abi.so.1",
          "libmpi_abi.so.0",
          "libmpi_abi.so",
          "libmpi.so.40",
          "libmpi.so.12",
          "libmpich.so.12",
          "libmpi_cray.so.12",
          "libmpi_ibm.so.3",
          "libmpi.so",
          "libmpich.so",
          "libmpi_cray.so");

  private static final int MOST_REFUSALS_TOLD = 3;

  private static final String HOW_TO_GET_ONE =
      "install openmpi-bin and libopenmpi3 or mpich (apt), openmpi or mpich (dnf), or set "
          + OPTION
          + " to the library's file";

  /// Who started this process, as far as it decides which libraries work.
  private enum Launcher {
    /// The mpirun of Open MPI.
    OPEN_MPI("Open MPI's mpirun", Maker.OPEN_MPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    /// The mpiexec of MPICH and its like.
    HYDRA("MPICH's mpiexec", Maker.MPICH, "PMI_RANK", "PMI_SIZE");

    private final String text;
    private final Maker starts;
    private final String rankVariable;
    private final String sizeVariable;

    Launcher(String text, Maker starts, String rankVariable, String sizeVariable) {
      this.text = text;
      this.starts = starts;
      this.rankVariable = rankVariable;
      this.sizeVariable = sizeVariable;
    }

    /// Neither for srun, which starts all, nor where there is no launcher.
    static Optional<Launcher> of(Map<String, String> environment) {
      if (environment.containsKey(OPEN_MPI.rankVariable)) {
        return Optional.of(OPEN_MPI);
      }
      boolean hydra =
          environment.containsKey("HYDI_CONTROL_FD") || environment.containsKey("MPI_LOCALRANKID");
      return hydra && environment.containsKey(HYDRA.rankVariable)
          ? Optional.of(HYDRA)
          : Optional.empty();
    }

    boolean starts(int rank, int size, Map<String, String> environment) {
      return Integer.toString(rank).equals(environment.get(rankVariable))
          && Integer.toString(size).equals(environment.get(sizeVariable));
    }

    boolean starts(MpiLibrary library) {
      return library.maker() == starts;
    }

    boolean conflictsWith(MpiLibrary library) {
      return library.maker() != starts && library.maker() != Maker.UNKNOWN;
    }
  }

  /// What a search came to.
  ///
  /// @param libraries the best first
  /// @param reason where there is none, why
  /// @param remedy where there is none, what to do about it
  private record Search(List<MpiLibrary> libraries, String reason, String remedy) {}

  /// Made when it is first asked for.
  private static final class Here {
    static final MpiLibraries LIBRARIES = new MpiLibraries(System.getenv(), Path.of("/"));
  }

  private final Map<String, String> environment;
  private final LibraryFolders folders;
  private final Map<String, Search> searches = new ConcurrentHashMap<>();

  /// @param environment of this process
  /// @param root the host's root folder; a test gives another
  MpiLibraries(Map<String, String> environment, Path root) {
    this.environment = Map.copyOf(environment);
    this.folders = new LibraryFolders(root);
  }

  /// {@return those of this host, in this process}
  static MpiLibraries here() {
    return Here.LIBRARIES;
  }

  /// {@return every library found, or those that `COMM_MPI_LIBRARY` names; the best first}
  List<MpiLibrary> find(CommConfig config) {
    return search(config).libraries();
  }

  /// {@return the library to use; empty if there is none}
  Optional<MpiLibrary> choose(CommConfig config) {
    return find(config).stream().findFirst();
  }

  /// {@return whether there is a library that can be used in this process}
  Availability availability(CommConfig config) {
    Search search = search(config);
    if (search.libraries().isEmpty()) {
      return Availability.unavailable(search.reason(), search.remedy());
    }
    return conflict(search.libraries().getFirst())
        .<Availability>map(conflict -> conflict)
        .orElseGet(Availability::ready);
  }

  /// {@return what is wrong with this library in this process: started by another one's launcher,
  /// it would take each process for rank 0 of 1}
  Optional<Availability.Unavailable> conflict(MpiLibrary library) {
    return Launcher.of(environment)
        .filter(launcher -> launcher.conflictsWith(library))
        .map(launcher ->
            new Availability.Unavailable(
                "%s started this process, and %s would not see the other ranks"
                    .formatted(launcher.text, library.shown()),
                "start it with the launcher that came with the library, or set %s to a library of the"
                        .formatted(OPTION)
                    + " launcher's"));
  }

  /// {@return whether the launcher of an MPI started this process as that rank, whoever else says
  /// so too}
  boolean isStarted(int rank, int size) {
    return Launcher.of(environment)
        .filter(launcher -> launcher.starts(rank, size, environment))
        .isPresent();
  }

  /// {@return whether something tells a library in this process which ranks there are} It does so
  /// by PMI or PMIx, and is known by their variables, apart from what users set.
  boolean isServed() {
    return environment.keySet().stream()
        .filter(name -> !name.startsWith("PMIX_MCA_"))
        .anyMatch(name -> name.startsWith("PMI_") || name.startsWith("PMIX_"));
  }

  private Search search(CommConfig config) {
    return searches.computeIfAbsent(config.options().getOrDefault(OPTION, ""), this::search);
  }

  private Search search(String named) {
    if (named.isEmpty()) {
      return everywhere();
    }
    return named.contains("/") ? file(named) : name(named);
  }

  // --- named ---

  private Search file(String named) {
    try {
      return new Search(List.of(MpiLibrary.of(Path.of(named).toRealPath())), "", "");
    } catch (ElfSymbols.FormatException e) {
      return none(named, e.why());
    } catch (NoSuchFileException _) {
      return none(named, "is not there");
    } catch (IOException | InvalidPathException e) {
      return none(named, "can't be read: " + e);
    }
  }

  private Search name(String named) {
    Looked looked = new Looked(List.of(named));
    looked.all();
    if (looked.libraries.isEmpty()) {
      return none(
          named,
          looked.refused.isEmpty()
              ? "is in no folder of libraries"
              : "can't be used" + looked.refusals());
    }
    return new Search(looked.bestFirst(), "", "");
  }

  private static Search none(String named, String why) {
    return new Search(
        List.of(),
        "%s: '%s' %s".formatted(OPTION, named, why),
        "give it the path of an MPI library, or a name such as libmpi.so.40, or unset it to use what"
            + " is found");
  }

  // --- not named ---

  private Search everywhere() {
    Looked looked = new Looked(NAMES);
    looked.all();
    return new Search(
        looked.bestFirst(), "no MPI library found" + looked.refusals(), HOW_TO_GET_ONE);
  }

  /// Looks for names in folders.
  private final class Looked {
    private final List<String> names;
    private final Map<Path, MpiLibrary> libraries = new LinkedHashMap<>();
    private final Map<Path, String> refused = new LinkedHashMap<>();
    private final List<MpiLibrary> ofPath = new ArrayList<>();

    Looked(List<String> names) {
      this.names = names;
    }

    void all() {
      LibraryFolders.ofPath(environment.getOrDefault("LD_LIBRARY_PATH", "")).forEach(this::look);
      ofPath.addAll(libraries.values());
      folders.ofHost().forEach(this::look);
    }

    private void look(Path folder) {
      if (!Files.isDirectory(folder)) {
        return;
      }
      for (String name : names) {
        Path file = folder.resolve(name);
        if (Files.exists(file)) {
          read(file);
        }
      }
    }

    private void read(Path link) {
      Path file = link;
      try {
        file = link.toRealPath();
        if (!libraries.containsKey(file) && !refused.containsKey(file)) {
          libraries.put(file, MpiLibrary.of(file));
        }
      } catch (ElfSymbols.FormatException e) {
        refused.put(file, e.why());
      } catch (IOException e) {
        refused.put(file, "can't be read: " + e);
      }
    }

    List<MpiLibrary> bestFirst() {
      Optional<Launcher> launcher = Launcher.of(environment);
      return libraries.values().stream()
          .sorted(
              Comparator.comparing(
                      (MpiLibrary each) -> launcher.map(by -> by.conflictsWith(each)).orElse(false))
                  .thenComparing(each -> launcher.map(by -> !by.starts(each)).orElse(false))
                  .thenComparing(each -> !ofPath.contains(each))
                  .thenComparingInt(MpiLibraries::preference))
          .toList();
    }

    String refusals() {
      return refused.isEmpty()
          ? ""
          : refused.entrySet().stream()
              .limit(MOST_REFUSALS_TOLD)
              .map(each -> each.getKey() + " " + each.getValue())
              .collect(Collectors.joining("; ", " (", ")"));
    }
  }

  private static int preference(MpiLibrary library) {
    return switch (library.abi()) {
      case STANDARD -> 0;
      case OPEN_MPI -> 1;
      case MPICH -> 2;
    };
  }
}
