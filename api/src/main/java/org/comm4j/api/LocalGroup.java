package org.comm4j.api;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.comm4j.api.Discovery.Found;
import org.comm4j.api.spi.RankGroup;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.ThreadRanks;
import org.jspecify.annotations.Nullable;

/// A group whose ranks are threads of this JVM.
///
/// [#run] and [#call] start the threads, one per rank, and wait for them. [#open] hands out the
/// communicators for threads that a program has already; whoever opened the group closes it.
///
/// The backend is the one that the configuration names, else the best whose ranks are threads. One
/// whose ranks are processes may make groups of threads too: `cuda` does, for a program that drives
/// several GPUs. Without a configuration the environment is read, but in a launch of several
/// processes `COMM_BACKEND` is about that launch, not about a group inside one of them, and so it
/// is wherever the backend can't have threads as ranks.
public final class LocalGroup implements AutoCloseable {
  private final RankGroup group;
  private final List<CheckedCommunicator> communicators;

  /// @param config null where a backend has made the group
  private LocalGroup(RankGroup group, @Nullable CommConfig config) {
    this.group = group;
    var whole = new LaunchScope(group::close);
    var listeners = CallListeners.installed();
    this.communicators =
        IntStream.range(0, group.size())
            .mapToObj(rank ->
                new CheckedCommunicator(
                    group.communicator(rank), scope(group, rank, whole), listeners, config))
            .toList();
  }

  /// What one rank holds. With its last communicator it leaves the others, as a process does. It
  /// must not know the communicators, which else were never collected.
  private static LaunchScope scope(RankGroup group, int rank, LaunchScope whole) {
    whole.retain();
    return new LaunchScope(() -> {
      try {
        group.leave(rank);
      } finally {
        whole.release();
      }
    });
  }

  /// What one rank does.
  ///
  /// @param <X> the checked exception that it throws, if any
  @FunctionalInterface
  public interface Body<X extends Exception> {
    /// Runs one rank, on a thread of its own.
    ///
    /// @param communicator this rank's; closed afterwards if it is still open. What was made from
    ///   it is for the rank to close, but the others need not wait for that: the rank has left
    /// @throws X if the rank fails: the others get a [PeerFailedException]
    void run(Communicator communicator) throws X;
  }

  /// What one rank does, with a result.
  ///
  /// @param <T> the result
  /// @param <X> the checked exception that it throws, if any
  @FunctionalInterface
  public interface Task<T extends @Nullable Object, X extends Exception> {
    /// Runs one rank, on a thread of its own.
    ///
    /// @param communicator this rank's; closed afterwards if it is still open. What was made from
    ///   it is for the rank to close, but the others need not wait for that: the rank has left
    /// @return the result
    /// @throws X if the rank fails: the others get a [PeerFailedException]
    T call(Communicator communicator) throws X;
  }

  /// Runs a group to its end. Rank `r` runs on a platform thread named `comm4j-rank-r`, on which
  /// [Communicators#open()] gives its communicator.
  ///
  /// When a rank throws, the others get a [PeerFailedException] that names it. An interrupt is
  /// passed on to the ranks; the call returns when they have ended.
  ///
  /// @param size how many ranks, at least 1
  /// @param body what each rank does
  /// @param <X> the checked exception that it throws, if any
  /// @throws X what the first rank that failed threw. Failures of other ranks are suppressed ones
  public static <X extends Exception> void run(int size, Body<X> body) throws X {
    runAndClose(open(size), body);
  }

  /// Runs a group to its end, as [#run(int, Body)].
  ///
  /// @param size how many ranks, at least 1
  /// @param config in place of the environment
  /// @param body what each rank does
  /// @param <X> the checked exception that it throws, if any
  /// @throws X what the first rank that failed threw. Failures of other ranks are suppressed ones
  public static <X extends Exception> void run(int size, CommConfig config, Body<X> body) throws X {
    runAndClose(open(size, config), body);
  }

  private static <X extends Exception> void runAndClose(LocalGroup group, Body<X> body) throws X {
    Task<@Nullable Void, X> task =
        communicator -> {
          body.run(communicator);
          return null;
        };
    callAndClose(group, task);
  }

  /// Runs a group to its end, as [#run(int, Body)], with a result of every rank.
  ///
  /// @param size how many ranks, at least 1
  /// @param task what each rank does
  /// @param <T> the result
  /// @param <X> the checked exception that it throws, if any
  /// @return the results, rank 0's first
  /// @throws X what the first rank that failed threw. Failures of other ranks are suppressed ones
  public static <T extends @Nullable Object, X extends Exception> List<T> call(
      int size, Task<T, X> task) throws X {
    return callAndClose(open(size), task);
  }

  /// Runs a group to its end, as [#run(int, Body)], with a result of every rank.
  ///
  /// @param size how many ranks, at least 1
  /// @param config in place of the environment
  /// @param task what each rank does
  /// @param <T> the result
  /// @param <X> the checked exception that it throws, if any
  /// @return the results, rank 0's first
  /// @throws X what the first rank that failed threw. Failures of other ranks are suppressed ones
  public static <T extends @Nullable Object, X extends Exception> List<T> call(
      int size, CommConfig config, Task<T, X> task) throws X {
    return callAndClose(open(size, config), task);
  }

  private static <T extends @Nullable Object, X extends Exception> List<T> callAndClose(
      LocalGroup opened, Task<T, X> task) throws X {
    try (LocalGroup group = opened;
        ThreadRanks.Launch launch = ThreadRanks.begin(group.communicators())) {
      return new RankThreads<>(group, launch, task).call();
    }
  }

  /// Opens a group.
  ///
  /// @param size how many ranks, at least 1
  /// @return the group; the caller closes it
  /// @throws IllegalArgumentException if the environment contradicts itself; names the variables
  /// @throws BackendUnavailableException if no backend has threads as ranks
  public static LocalGroup open(int size) {
    CommConfig config = CommConfig.fromEnvironment(System.getenv());
    List<Found> found = found(config);
    boolean ofProcesses =
        found.stream()
            .filter(each -> each.name().equals(config.backend()))
            .filter(each -> each.hasKind(RankKind.PROCESSES))
            .anyMatch(each -> Choice.isProcessLaunch(config) || !each.launchesThreads());
    return open(
        size,
        config,
        Choice.isExplicit(config) && !ofProcesses
            ? Choice.ready(found, config.backend())
            : Choice.bestOfThreads(found));
  }

  /// Opens a group.
  ///
  /// @param size how many ranks, at least 1
  /// @param config in place of the environment
  /// @return the group; the caller closes it
  /// @throws IllegalArgumentException if an option belongs to no backend that was found, or its
  ///   value is not valid
  /// @throws BackendUnavailableException if the backend that the configuration names can't be used,
  ///   or if its ranks are processes
  public static LocalGroup open(int size, CommConfig config) {
    List<Found> found = found(config);
    return open(
        size,
        config,
        Choice.isExplicit(config)
            ? Choice.ready(found, config.backend())
            : Choice.bestOfThreads(found));
  }

  /// Drives a group that a backend has made already: for tests of a backend, which need not be
  /// found then.
  ///
  /// @param group closed with what is made here
  /// @return the group; the caller closes it
  public static LocalGroup of(RankGroup group) {
    return new LocalGroup(group, null);
  }

  private static List<Found> found(CommConfig config) {
    List<Found> found = Discovery.find(config);
    Discovery.checkOptions(found, config);
    return found;
  }

  private static LocalGroup open(int size, CommConfig config, Found backend) {
    if (size < 1) {
      throw new IllegalArgumentException("size: %d (expected: at least 1)".formatted(size));
    }
    if (!backend.launchesThreads()) {
      throw new BackendUnavailableException(
          backend.name(),
          "its ranks are processes, and those of a LocalGroup are threads",
          "start the processes with comm-cli run, or ask for no backend by name");
    }
    return new LocalGroup(Opening.launch(backend, size, config), config);
  }

  /// {@return how many ranks}
  public int size() {
    return communicators.size();
  }

  /// A rank's communicator.
  ///
  /// @param rank in `0..size()-1`
  /// @return the same one at every call
  /// @throws IllegalArgumentException if there is no such rank
  public Communicator communicator(int rank) {
    Checks.checkRank(rank, size());
    return communicators.get(rank);
  }

  /// {@return every rank's communicator, rank 0's first}
  public List<Communicator> communicators() {
    return Collections.unmodifiableList(communicators);
  }

  /// Starts an operation on every rank from the calling thread: a program needs no thread for each
  /// rank, or starts the work of several devices from the one that drives them.
  ///
  ///     Request.waitAll(group.start(rank -> new AllReduce(inputs[rank], outputs[rank], SUM)));
  ///
  /// [Request#waitAll] moves all ranks along. A single request awaited on that thread, or a call
  /// that is not started but run, would wait until its deadline for ranks that nobody moves along.
  /// Meanwhile no other thread may be in a call on one of the communicators. Memory belongs to the
  /// operations until they have ended, as with [Communicator#start].
  ///
  /// @param operation what a rank does, given the rank; called once for each before any is started
  /// @return what to await, rank 0's first
  /// @throws IllegalArgumentException if an operation does not fit its rank, and then none is
  ///   started
  /// @throws CommException why a rank's communicator is broken. Operations of lower ranks have been
  ///   started, and fail too; their memory is in use until the group is closed
  public List<Request> start(IntFunction<? extends Operation> operation) {
    List<Operation> operations =
        IntStream.range(0, size())
            .<Operation>mapToObj(rank ->
                Objects.requireNonNull(
                    operation.apply(rank), () -> "operation of rank " + rank + ": null"))
            .toList();
    for (CheckedCommunicator each : communicators) {
      each.check(operations.get(each.rank()));
    }
    return communicators.stream().map(each -> each.start(operations.get(each.rank()))).toList();
  }

  /// Tells the others that a rank has ended by a failure: they get a [PeerFailedException] that
  /// names it. Does nothing for a rank that has left, which is what closing its last communicator
  /// means. For programs that run the ranks on threads of their own.
  ///
  /// @param rank who has ended, `0..size - 1`; any thread may tell
  /// @param cause why
  /// @throws IllegalArgumentException if there is no such rank
  public void fail(int rank, Throwable cause) {
    Checks.checkRank(rank, size());
    group.fail(rank, Objects.requireNonNull(cause, "cause"));
  }

  /// Tells the others that a rank has ended in order, whatever it has not closed: who still needs
  /// it gets a [PeerFailedException] that says it left, and what it has sent still arrives. Does
  /// nothing for a rank that has left or failed. For programs that run the ranks on threads of
  /// their own.
  ///
  /// @param rank who has ended, `0..size - 1`; any thread may tell
  /// @throws IllegalArgumentException if there is no such rank
  public void leave(int rank) {
    Checks.checkRank(rank, size());
    group.leave(rank);
  }

  /// Closes every rank's communicator. What the group holds is freed when those that were made from
  /// them are closed too. Closing twice does nothing.
  @Override
  public void close() {
    communicators.forEach(Communicator::close);
  }

  /// The threads of one [#run].
  private static final class RankThreads<T extends @Nullable Object, X extends Exception> {
    private record Failure(int rank, Throwable cause) {}

    private final LocalGroup group;
    private final ThreadRanks.Launch launch;
    private final Task<T, X> task;
    private final List<@Nullable T> results;
    private final List<Failure> failures = Collections.synchronizedList(new ArrayList<>());

    RankThreads(LocalGroup group, ThreadRanks.Launch launch, Task<T, X> task) {
      this.group = group;
      this.launch = launch;
      this.task = task;
      this.results =
          Collections.synchronizedList(
              new ArrayList<>(Collections.nCopies(group.size(), (T) null)));
    }

    @SuppressWarnings("unchecked") // a task throws nothing else that is checked
    List<T> call() throws X {
      List<Thread> threads = IntStream.range(0, group.size()).mapToObj(this::start).toList();
      join(threads);
      if (failures.isEmpty()) {
        return Collections.unmodifiableList(results);
      }
      switch (firstCausal()) {
        case RuntimeException e -> throw e;
        case Error e -> throw e;
        case Throwable e -> throw (X) e;
      }
    }

    private Thread start(int rank) {
      Thread thread = Thread.ofPlatform().name("comm4j-rank-" + rank).unstarted(() -> run(rank));
      try {
        thread.start();
      } catch (OutOfMemoryError e) { // no more threads
        failed(rank, e);
      }
      return thread;
    }

    private void run(int rank) {
      Communicator communicator = group.communicator(rank);
      try {
        results.set(rank, launch.call(rank, () -> task.call(communicator)));
        communicator.close();
        group.leave(rank); // in what it has not closed, too
      } catch (Throwable e) {
        failed(rank, e);
      }
    }

    private void failed(int rank, Throwable cause) {
      failures.add(new Failure(rank, cause));
      group.fail(rank, cause);
      group.communicator(rank).close();
    }

    private static void join(List<Thread> threads) {
      boolean interrupted = false;
      for (Thread thread : threads) {
        while (true) {
          try {
            thread.join();
            break;
          } catch (InterruptedException _) {
            interrupted = true;
            threads.forEach(Thread::interrupt);
          }
        }
      }
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }

    /// The failure that the others follow from; those are added as suppressed ones.
    private Throwable firstCausal() {
      Failure first =
          failures.stream()
              .filter(failure -> !isConsequence(failure))
              .findFirst()
              .orElseGet(failures::getFirst);
      failures.stream()
          .map(Failure::cause)
          .filter(cause -> cause != first.cause()) // no exception is suppressed by itself
          .distinct()
          .forEach(first.cause()::addSuppressed);
      return first.cause();
    }

    private static boolean isConsequence(Failure failure) {
      for (Throwable e = failure.cause(); e != null; e = e.getCause()) {
        if (e instanceof PeerFailedException
            || (e instanceof AbortedException aborted && aborted.rank() != failure.rank())) {
          return true;
        }
      }
      return false;
    }
  }
}
