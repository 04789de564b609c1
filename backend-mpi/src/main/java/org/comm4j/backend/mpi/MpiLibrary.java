package org.comm4j.backend.mpi;

import java.io.IOException;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;

/// An MPI library on this host, told by looking at its file.
///
/// @param file where it is
/// @param abi which of the binary interfaces it has
/// @param maker whose it is, which decides what can start its processes
/// @param version what it says of itself, for people, for example `Open MPI 4.1.4`
/// @param standard the version of MPI, as far as its functions tell, for example `3.1`
/// @param features of [MpiLibrary.Feature], those that it exports
record MpiLibrary(
    Path file, Abi abi, Maker maker, String version, String standard, Set<Feature> features) {
  /// What not every library has.
  @SuppressWarnings("ImmutableEnumChecker") // List.of
  enum Feature {
    /// Counts of 64 bits, in all functions that we call: what has only some is called with ints.
    LARGE_COUNTS(
        true,
        "MPI_Send_c",
        "MPI_Ssend_c",
        "MPI_Isend_c",
        "MPI_Issend_c",
        "MPI_Recv_c",
        "MPI_Irecv_c",
        "MPI_Bcast_c",
        "MPI_Ibcast_c",
        "MPI_Allreduce_c",
        "MPI_Iallreduce_c",
        "MPI_Reduce_c",
        "MPI_Ireduce_c",
        "MPI_Reduce_scatter_block_c",
        "MPI_Ireduce_scatter_block_c",
        "MPI_Reduce_scatter_c",
        "MPI_Ireduce_scatter_c",
        "MPI_Scan_c",
        "MPI_Iscan_c",
        "MPI_Exscan_c",
        "MPI_Iexscan_c",
        "MPI_Allgather_c",
        "MPI_Iallgather_c",
        "MPI_Allgatherv_c",
        "MPI_Iallgatherv_c",
        "MPI_Gather_c",
        "MPI_Igather_c",
        "MPI_Scatter_c",
        "MPI_Iscatter_c",
        "MPI_Alltoall_c",
        "MPI_Ialltoall_c"),
    /// Persistent collectives: `MPI_Allreduce_init` and its like.
    PERSISTENT_COLLECTIVES(false, "MPI_Allreduce_init"),
    /// `MPIX_Comm_revoke`, `MPIX_Comm_shrink`, `MPIX_Comm_agree`.
    FAULT_TOLERANCE(false, "MPIX_Comm_revoke", "MPIX_Comm_shrink", "MPIX_Comm_agree");

    private final boolean isUsed;
    private final List<String> functions;

    /// @param isUsed whether we use it where it is; `docs/rationale.md` says why not
    Feature(boolean isUsed, String... functions) {
      this.isUsed = isUsed;
      this.functions = List.of(functions);
    }

    /// What a library exports that has it.
    List<String> functions() {
      return functions;
    }

    /// {@return its name, and whether it lies idle, for people}
    String shown() {
      String name = name().toLowerCase(Locale.ROOT).replace('_', '-');
      return isUsed ? name : name + " (not used)";
    }
  }

  /// Whose library it is.
  @SuppressWarnings("ImmutableEnumChecker") // List.of
  enum Maker {
    OPEN_MPI("Open MPI", List.of("ompi_", "opal_"), List.of("ompi_version_string")),
    MPICH(
        "MPICH",
        List.of("MPIR_", "MPII_", "MPID_", "MPIDI_"),
        List.of("MPII_Version_string", "MPIR_Version_string")),
    UNKNOWN("MPI", List.of(), List.of());

    private final String text;
    private final List<String> prefixes;
    private final List<String> versions;

    /// @param prefixes what only its functions and variables begin with
    /// @param versions variables that hold its version
    Maker(String text, List<String> prefixes, List<String> versions) {
      this.text = text;
      this.prefixes = prefixes;
      this.versions = versions;
    }
  }

  /// A version of the standard.
  ///
  /// @param functions some that came with it; implementations get a version's functions one by one
  private record Standard(String version, List<String> functions) {}

  private static final List<Standard> NEWEST_FIRST =
      List.of(
          new Standard("5.0", List.of("MPI_Abi_get_version", "MPI_Abi_get_info")),
          new Standard("4.1", List.of("MPI_Remove_error_class", "MPI_Buffer_flush")),
          new Standard("4.0", List.of("MPI_Session_init", "MPI_Allreduce_c", "MPI_Allreduce_init")),
          new Standard("3.1", List.of("MPI_File_iread_all", "MPI_File_iread_at_all")),
          new Standard("3.0", List.of("MPI_Iallreduce", "MPI_Win_allocate_shared")));

  private static final String OLDEST_STANDARD = "2.2 or older";

  /// What others link to where the interface is the standard's, as that one says; a number follows.
  private static final String STANDARD_NAME = "libmpi_abi.so";

  /// The number that MPICH and those who keep its interface have agreed on.
  private static final String MPICH_NUMBER = ".so.12";

  MpiLibrary {
    features = Set.copyOf(features);
  }

  /// Looks at a file.
  ///
  /// @param file where it is, without symbolic links
  /// @throws ElfSymbols.FormatException if it is no MPI library that this process could load
  /// @throws IOException if it can't be read
  static MpiLibrary of(Path file) throws IOException {
    try (ElfSymbols symbols = ElfSymbols.of(file)) {
      if (!symbols.exports("MPI_Init")) {
        throw new ElfSymbols.FormatException("is no MPI library: it exports no MPI_Init");
      }
      String name = symbols.soname().orElseGet(() -> file.getFileName().toString());
      Maker maker = maker(symbols, name);
      return new MpiLibrary(
          file,
          abi(symbols, maker, name),
          maker,
          version(symbols, maker, file),
          standard(symbols),
          features(symbols));
    }
  }

  private static Maker maker(ElfSymbols symbols, String name) {
    for (Maker maker : Maker.values()) {
      for (String prefix : maker.prefixes) {
        if (symbols.hasPrefix(prefix)) {
          return maker;
        }
      }
    }
    return name.startsWith("libmpi") && name.contains(MPICH_NUMBER) ? Maker.MPICH : Maker.UNKNOWN;
  }

  /// Only the name tells the standard's interface: libraries of MPI 5 have its functions under
  /// their own interface too.
  private static Abi abi(ElfSymbols symbols, Maker maker, String name)
      throws ElfSymbols.FormatException {
    if (name.startsWith(STANDARD_NAME)) {
      return Abi.STANDARD;
    }
    return switch (maker) {
      case OPEN_MPI -> Abi.OPEN_MPI;
      case MPICH -> Abi.MPICH;
      case UNKNOWN -> {
        if (symbols.exports("MPI_Abi_get_version")) {
          yield Abi.STANDARD;
        }
        throw new ElfSymbols.FormatException(
            "is an MPI library whose binary interface is not known (expected: Open MPI's, MPICH's"
                + " or the standard's)");
      }
    };
  }

  private static String version(ElfSymbols symbols, Maker maker, Path file) throws IOException {
    for (String variable : maker.versions) {
      Optional<String> version = symbols.text(variable);
      if (version.isPresent()) {
        return maker.text + " " + version.get();
      }
    }
    return "%s, %s".formatted(maker.text, file.getFileName());
  }

  private static String standard(ElfSymbols symbols) {
    for (Standard standard : NEWEST_FIRST) {
      if (standard.functions.stream().allMatch(symbols::exports)) {
        return standard.version;
      }
    }
    return OLDEST_STANDARD;
  }

  private static Set<Feature> features(ElfSymbols symbols) {
    Set<Feature> features = EnumSet.noneOf(Feature.class);
    for (Feature feature : Feature.values()) {
      if (feature.functions.stream().allMatch(symbols::exports)) {
        features.add(feature);
      }
    }
    return features;
  }

  /// {@return version and file, for messages}
  String shown() {
    return "%s (%s)".formatted(version, file);
  }
}
