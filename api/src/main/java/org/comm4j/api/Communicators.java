package org.comm4j.api;

import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.comm4j.api.spi.SessionFactory;
import org.comm4j.api.spi.ThreadRanks;

/// Where a program gets the communicator of its launch, whatever launched it.
///
/// - On a thread that is a rank (of `comm-cli run` with thread ranks, or of [LocalGroup#run]): that
///   rank's communicator, the same one at every call: whoever closes it closes it for all who have
///   it, and it is not opened again.
/// - In a process that is a rank of a launch (its environment tells rank and number of ranks): it
///   joins the others, agrees with them on a backend, and opens it.
/// - In a program that was just started: a group of one.
///
/// The backend is the one that the configuration names (`COMM_BACKEND`), and if that one can't be
/// used it is an exception, never another backend. `auto` takes the best one that all ranks can
/// use; [Backends#select] tells which and why, and so does a line of the logger `org.comm4j.api` at
/// level DEBUG.
public final class Communicators {
  private static final AtomicBoolean IS_OPEN = new AtomicBoolean();

  private Communicators() {}

  /// Opens the communicator of the launch that the environment describes.
  ///
  /// @return the communicator of all ranks; the caller closes it. What it stands on ends when it
  ///   and all communicators that were made from it are closed
  /// @throws IllegalArgumentException if the environment contradicts itself, or has an option that
  ///   belongs to no backend that was found; names the variables
  /// @throws IllegalStateException if this process has it open already, or if its ranks are threads
  ///   and the calling thread is none of them; [ClosedException] if it is one that has closed it
  /// @throws BackendUnavailableException if the backend that is asked for, or every one, can't be
  ///   used on this rank
  /// @throws JoinException if the ranks do not come together or have no backend in common; says who
  ///   asked for what
  public static Communicator open() {
    Optional<Communicator> rank = ofThread();
    return rank.isPresent() ? rank.get() : openProcess(CommConfig.fromEnvironment(System.getenv()));
  }

  /// Opens the communicator of the launch that a configuration describes.
  ///
  /// On a thread that is a rank the launch is already open, with its own settings. A configuration
  /// that asks for another `backend`, `timeout`, `reduction`, `check`, `synchronousSend`, `tuning`
  /// or option of a backend is refused there. Only an ordered reduction may be asked for, where the
  /// backend can, before the rank's first operation and before it makes another communicator. All
  /// other settings, such as `rank`, `secret`, `pluginPath` and `liveness`, say how processes find
  /// each other and notice that one is gone: threads need none of them, and they are ignored.
  ///
  /// @param config in place of the environment
  /// @return the communicator of all ranks; the caller closes it. What it stands on ends when it
  ///   and all communicators that were made from it are closed
  /// @throws IllegalArgumentException if an option belongs to no backend that was found, or if the
  ///   calling thread is a rank and a setting that counts is neither the default nor what its
  ///   launch has
  /// @throws IllegalStateException if this process has it open already, or if its ranks are threads
  ///   and the calling thread is none of them; [ClosedException] if it is one that has closed it
  /// @throws ConcurrentUseException if an order is asked for while another thread is in a call
  /// @throws BackendUnavailableException if the backend that is asked for, or every one, can't be
  ///   used on this rank
  /// @throws JoinException if the ranks do not come together or have no backend in common; says who
  ///   asked for what
  public static Communicator open(CommConfig config) {
    Optional<Communicator> rank = ofThread();
    if (rank.isEmpty()) {
      return openProcess(config);
    }
    Communicator communicator = rank.get();
    if (Choice.isExplicit(config) && !config.backend().equals(communicator.backend())) {
      throw new BackendUnavailableException(
          config.backend(),
          "the calling thread is rank %d of a launch on '%s'"
              .formatted(communicator.rank(), communicator.backend()),
          "start the launch with that backend, or ask for no backend by name");
    }
    if (communicator instanceof CheckedCommunicator checked) {
      checked.checkAgrees(config);
    }
    return communicator;
  }

  /// The communicator of the rank that the calling thread is, if it is one.
  private static Optional<Communicator> ofThread() {
    Optional<Communicator> rank = ThreadRanks.current();
    rank.filter(Communicator::isClosed)
        .ifPresent(closed -> {
          throw new ClosedException(
              "open: rank %d of the launch of threads on '%s' has closed its communicator, which can't be opened again; close it when the rank needs it no more, or start another launch"
                  .formatted(closed.rank(), closed.backend()));
        });
    return rank;
  }

  private static Communicator openProcess(CommConfig config) {
    if (ThreadRanks.isHosting()) {
      throw new IllegalStateException(
          "Communicators.open() on thread '%s', which is none of the ranks: this JVM runs ranks as"
                  .formatted(Thread.currentThread().getName())
              + " threads; open on a rank's own thread and hand the communicator on");
    }
    if (!IS_OPEN.compareAndSet(false, true)) {
      throw new IllegalStateException(
          "the communicator of the launch is open already, or one that was made from it is; use"
              + " duplicate() for another one, or close them first");
    }
    boolean opened = false;
    try {
      var opening =
          new Opening(
              config,
              Discovery.find(config),
              Services.usable(SessionFactory.class, Services.loader()),
              CallListeners.installed());
      Communicator communicator = opening.open(() -> IS_OPEN.set(false));
      opened = true;
      return communicator;
    } finally {
      if (!opened) {
        IS_OPEN.set(false);
      }
    }
  }
}
