package org.comm4j.api;

import java.util.List;
import java.util.Optional;
import org.comm4j.api.Discovery.Found;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.RankGroup;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.Session;
import org.comm4j.api.spi.SessionFactory;

/// Opens a process's communicator of its whole launch: join the session, agree on the backend, open
/// it. Without a launch, a group of one.
///
/// @param factories what can bring ranks together; one is expected
record Opening(
    CommConfig config, List<Found> found, List<SessionFactory> factories, CallListeners listeners) {
  private static final System.Logger LOG = System.getLogger("org.comm4j.api");

  /// @param end runs once everything that came out of this is closed
  Communicator open(Runnable end) {
    Discovery.checkOptions(found, config);
    return Choice.isProcessLaunch(config) ? join(config, end) : alone(end);
  }

  private Communicator alone(Runnable end) {
    Found backend = Choice.of(found, config).backend();
    if (backend.hasKind(RankKind.PROCESSES)) {
      return join(config.toBuilder().rank(0).worldSize(1).build(), end);
    }
    RankGroup group = launch(backend, 1, config);
    var scope = new LaunchScope(both(group::close, end));
    return new CheckedCommunicator(group.communicator(0), scope, listeners);
  }

  private Communicator join(CommConfig launch, Runnable end) {
    Choice mine;
    try {
      mine = Choice.of(found, config);
    } catch (BackendUnavailableException e) {
      tellOthers(launch, e);
      throw e;
    }
    CommConfig placed = withPlace(launch, mine);
    Session session = factory().join(placed, mine.names());
    boolean opened = false;
    try {
      Choice choice = mine.agree(session);
      BackendCommunicator world = open(choice.backend(), session, placed);
      log(choice, session.rank());
      var scope = new LaunchScope(both(session::close, end));
      Communicator communicator = new CheckedCommunicator(world, scope, listeners);
      opened = true;
      return communicator;
    } finally {
      if (!opened) {
        session.close();
      }
    }
  }

  /// Where the launcher names no place where all ranks can meet, a backend may know one.
  private static CommConfig withPlace(CommConfig launch, Choice mine) {
    if (hasPlace(launch)) {
      return launch;
    }
    for (BackendProvider backend : mine.providers()) {
      Optional<CommConfig> place = backend.meet(launch);
      if (place.isPresent()) {
        return place.get();
      }
    }
    return launch;
  }

  /// A name is a place where all ranks are on one host; PMI's launchers need not say how many are.
  /// An address needs a secret, which a backend that was asked for by name may have.
  private static boolean hasPlace(CommConfig launch) {
    int size = launch.worldSize().orElse(1);
    if (size == 1) {
      return true;
    }
    if (launch.masterAddress().isEmpty()) {
      int ifUnknown = launch.launcher().equals(Launchers.PMI) ? 0 : size;
      return launch.session().isPresent() && launch.localWorldSize().orElse(ifUnknown) == size;
    }
    return launch.secret().isPresent()
        || launch.secretFile().isPresent()
        || !Choice.isExplicit(launch);
  }

  /// A rank that can use no backend joins all the same, so that the others hear of it at once
  /// instead of waiting for it.
  private void tellOthers(CommConfig launch, BackendUnavailableException problem) {
    try {
      factory().join(launch, List.of()).close();
    } catch (CommException e) {
      problem.addSuppressed(e);
    }
  }

  private SessionFactory factory() {
    if (factories.size() != 1) {
      throw new JoinException(
          JoinException.Reason.CONFIGURATION,
          factories.isEmpty()
              ? "nothing on the class path can bring ranks together; add comm4j-core"
              : "several things on the class path bring ranks together (%s); keep one"
                  .formatted(factories.stream().map(each -> each.getClass().getName()).toList()));
    }
    return factories.getFirst();
  }

  private static BackendCommunicator open(Found backend, Session session, CommConfig launch) {
    try {
      return Choice.provider(backend).open(session, launch);
    } catch (RuntimeException | LinkageError e) {
      throw unavailable(backend, e);
    }
  }

  /// Makes a group of threads.
  static RankGroup launch(Found backend, int size, CommConfig config) {
    try {
      return Choice.provider(backend).launch(size, config);
    } catch (RuntimeException | LinkageError e) {
      throw unavailable(backend, e);
    }
  }

  private static RuntimeException unavailable(Found backend, Throwable failure) {
    if (failure instanceof CommException || failure instanceof IllegalArgumentException) {
      return (RuntimeException) failure;
    }
    var unavailable =
        new BackendUnavailableException(
            backend.name(),
            "it can't be opened: " + failure,
            "see comm-cli doctor, or update or remove " + backend.source());
    unavailable.initCause(failure);
    return unavailable;
  }

  private static void log(Choice choice, int rank) {
    LOG.log(
        System.Logger.Level.DEBUG, () -> "rank %d: %s".formatted(rank, choice.selection().why()));
  }

  private static Runnable both(Runnable first, Runnable second) {
    return () -> {
      try {
        first.run();
      } finally {
        second.run();
      }
    };
  }
}
