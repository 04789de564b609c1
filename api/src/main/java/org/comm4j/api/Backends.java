package org.comm4j.api;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.RankLauncher;
import org.jspecify.annotations.Nullable;

/// The backends on the class path.
///
/// They are found by [java.util.ServiceLoader] with one class loader: the thread's context class
/// loader if it sees this API, else the API's own; `COMM_PLUGIN_PATH` adds a child of it.
public final class Backends {
  private static final System.Logger LOG = System.getLogger("org.comm4j.api");

  private Backends() {}

  /// Lists every backend that is found. Listing loads no native code, opens no socket and never
  /// throws: a backend that is broken is a row that says why.
  ///
  /// @return the most preferred first
  public static List<BackendInfo> availableBackends() {
    return availableBackends(environment(System.getenv()));
  }

  /// The environment, or, where that contradicts itself, the defaults with what it says of where
  /// backends are: a listing never fails.
  static CommConfig environment(Map<String, String> variables) {
    try {
      return CommConfig.fromEnvironment(variables);
    } catch (IllegalArgumentException _) {
      var builder = CommConfig.builder();
      String plugins = variables.getOrDefault("COMM_PLUGIN_PATH", "");
      return plugins.isEmpty() ? builder.build() : builder.pluginPath(plugins).build();
    }
  }

  /// Lists every backend that is found.
  ///
  /// @param config what the backends are judged by, and where to look for more
  /// @return the most preferred first
  public static List<BackendInfo> availableBackends(CommConfig config) {
    return Discovery.list(config);
  }

  /// Lists the backends that are found and can be used nowhere as they are: such as those that
  /// can't be loaded. Nothing is asked of this host, so it takes less time than a listing of all.
  ///
  /// @param config where to look for more
  /// @return each with its reason and remedy
  public static List<BackendInfo> brokenBackends(CommConfig config) {
    return Discovery.find(config).stream()
        .filter(each -> each.provider() == null)
        .map(Discovery.Found::info)
        .toList();
  }

  /// What the ranks of the backend are that is asked for by name. Nothing is asked of this host.
  ///
  /// @param config names the backend
  /// @return empty where none is asked for by name, there is none of that name, or it is broken
  public static Optional<RankKind> rankKind(CommConfig config) {
    return Discovery.find(config).stream()
        .filter(each -> each.provider() != null && each.name().equals(config.backend()))
        .flatMap(each -> each.kind().stream())
        .findFirst();
  }

  /// Tells which backend [Communicators#open(CommConfig)] takes and why, as far as this host alone
  /// decides; the other ranks of a launch may know reasons against it.
  ///
  /// @param config what is asked for
  /// @return the choice
  /// @throws IllegalArgumentException if an option belongs to no backend that was found, or its
  ///   value is not valid
  /// @throws BackendUnavailableException if there is none, with the reason and remedy
  public static Selection select(CommConfig config) {
    List<Discovery.Found> found = Discovery.find(config);
    Discovery.checkOptions(found, config);
    return Choice.of(found, config).selection();
  }

  /// Finds the program that must start the ranks of the backend that is asked for by name, as
  /// `mpirun` those of `mpi`.
  ///
  /// @param ranks how many it is to start on this host, at least 1
  /// @param config what is asked for
  /// @return nothing where ranks are started one by one, or where no backend is asked for by name
  /// @throws IllegalArgumentException if an option belongs to no backend that was found, or its
  ///   value is not valid
  /// @throws BackendUnavailableException if the backend can't be used here, or there must be such a
  ///   program and there is none
  public static Optional<RankLauncher> launcher(int ranks, CommConfig config) {
    if (!Choice.isExplicit(config)) {
      return Optional.empty();
    }
    List<Discovery.Found> found = Discovery.find(config);
    Discovery.checkOptions(found, config);
    return Choice.provider(Choice.ready(found, config.backend())).launcher(ranks, config);
  }

  /// Removes from this host what ranks of this user have left that were killed, such as files in
  /// shared memory; nothing of a process that lives. For programs that start ranks, before they do,
  /// and when some have failed and all have ended. What can't be removed is logged as a warning.
  ///
  /// @param config of the process that has started them
  public static void removeRemains(CommConfig config) {
    for (Discovery.Found each : Discovery.find(config)) {
      if (each.provider() != null) {
        try {
          each.provider().removeRemains(config);
        } catch (RuntimeException | Error e) { // the others still do theirs
          LOG.log(
              System.Logger.Level.WARNING,
              "backend '%s' could not remove what dead ranks have left".formatted(each.name()),
              e);
        }
      }
    }
  }

  /// Says which way a collective goes on a backend that does not run core's plans. The backend need
  /// not be ready here.
  ///
  /// @param operation its label, for example `allReduce`
  /// @param type of the elements
  /// @param op null where nothing is reduced
  /// @param bytes of a rank's buffer
  /// @param ranks how many
  /// @param config names the backend
  /// @return a sentence without a full stop; empty where core's plans are what happens, or where no
  ///   backend is asked for by name
  /// @throws IllegalArgumentException if an option of the backend has an invalid value, or the
  ///   tuning file can't be read or a line there of the backend is wrong
  /// @throws BackendUnavailableException if there is no such backend, or it is broken
  public static Optional<String> explain(
      String operation,
      DataType type,
      @Nullable ReduceOp op,
      long bytes,
      int ranks,
      CommConfig config) {
    if (!Choice.isExplicit(config)) {
      return Optional.empty();
    }
    Discovery.Found backend = Choice.working(Discovery.find(config), config.backend());
    return Choice.provider(backend).explain(operation, type, op, bytes, ranks, config);
  }

  /// Which backend is used and why.
  ///
  /// @param backend its name
  /// @param why a sentence without a full stop
  public record Selection(String backend, String why) {}
}
