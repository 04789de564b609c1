package org.comm4j.backend.aeron;

import static io.aeron.driver.status.SystemCounterDescriptor.NAK_MESSAGES_RECEIVED;

import io.aeron.Aeron;
import io.aeron.driver.MediaDriver;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.agrona.CloseHelper;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentInvoker;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.SystemEpochClock;
import org.comm4j.api.InterruptedCallException;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.OwnFolder;
import org.jspecify.annotations.Nullable;

/// A rank's way into a media driver: its own, or one that serves others too. It has no thread:
/// whoever holds the transport's lock moves it along with [#work], and a driver of its own with it.
/// That may be moved alone too ([#workAlone]), by whoever does not get the lock.
final class Driver implements AutoCloseable {
  /// The client hears of new peers, which is no matter of microseconds.
  private static final long CLIENT_NS = TimeUnit.MICROSECONDS.toNanos(100);

  /// After so long without a turn a client should get one, where the driver is not moved along with
  /// it: that waits for some seconds. Aeron's clients give two signs of life a second.
  static final long LONG_NS = TimeUnit.MILLISECONDS.toNanos(250);

  /// A driver with Aeron's own settings gives a sign of life each second.
  private static final long LEAST_SILENCE_NS = TimeUnit.SECONDS.toNanos(3);

  /// How often it works while ranks open.
  private static final long OPENING_NS = TimeUnit.MILLISECONDS.toNanos(10);

  private static final long SHORTEST_NAP_NS = TimeUnit.MICROSECONDS.toNanos(1);
  private static final long LONGEST_NAP_NS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final int YIELDS = 100;

  private final String name;
  private final Path directory;
  private final boolean isOurs;
  private final ReentrantLock turn = new ReentrantLock(); // who works
  private final Faults faults;
  private final Aeron aeron;
  private final @Nullable Agent driverAgent; // null where the driver has a thread elsewhere
  private final Agent clientAgent;
  private final Runnable whenClosed;
  private long clientNs;

  /// @param name for messages
  /// @param isOurs whether it has our settings
  /// @param invoker of the driver, where whoever calls [#work] moves that along
  /// @param silenceNs after which a driver counts as gone
  /// @param whenClosed is run once the client is closed, or could not be made
  private Driver(
      String name,
      Path directory,
      boolean isOurs,
      Faults faults,
      @Nullable AgentInvoker invoker,
      long silenceNs,
      Runnable whenClosed) {
    this.name = name;
    this.directory = directory;
    this.isOurs = isOurs;
    this.faults = faults;
    this.driverAgent = invoker == null ? null : invoker.agent();
    this.whenClosed = whenClosed;
    try {
      Aeron.Context context =
          new Aeron.Context()
              .aeronDirectoryName(directory.toString())
              .useConductorAgentInvoker(true)
              .epochClock(isOurs ? SteadyClock.EPOCH : SystemEpochClock.INSTANCE) // the driver's
              .driverTimeoutMs(TimeUnit.NANOSECONDS.toMillis(silenceNs))
              .awaitingIdleStrategy(
                  new BackoffIdleStrategy(0, YIELDS, SHORTEST_NAP_NS, LONGEST_NAP_NS))
              .resourceLingerDurationNs(0)
              .errorHandler(faults)
              .subscriberErrorHandler(faults);
      if (invoker != null) {
        context.driverAgentInvoker(invoker);
      }
      this.aeron = Aeron.connect(context);
      this.clientAgent = aeron.conductorAgentInvoker().agent();
    } catch (Throwable e) { // Agrona throws checked ones too
      whenClosed.run();
      throw Faults.failed("can't connect to " + name, e, directory);
    }
  }

  /// Starts a media driver for this rank alone.
  ///
  /// @param root where its folder goes
  /// @param ranks of the launch
  /// @param liveness how long a rank may be silent for the session
  /// @param changes to the driver's settings; tests lose datagrams with them
  static Driver embedded(
      Path root,
      Dimensions dimensions,
      int ranks,
      Duration liveness,
      UnaryOperator<MediaDriver.Context> changes) {
    DriverFolder folder = DriverFolder.create(root);
    Faults faults = new Faults();
    MediaDriver driver;
    try {
      driver =
          DriverSettings.launch(
              changes.apply(
                  DriverSettings.of(
                      folder.driver(),
                      dimensions,
                      2 * ranks,
                      DriverSettings.peersNs(liveness),
                      DriverSettings.PATIENCE_NS,
                      faults)),
              2 * ranks);
    } catch (Throwable e) { // Agrona throws checked ones too
      folder.close();
      throw Faults.failed("the media driver does not start", e, root);
    }
    return new Driver(
        "the media driver of this rank",
        folder.driver(),
        true,
        faults,
        driver.sharedAgentInvoker(),
        DriverSettings.PATIENCE_NS,
        () -> {
          CloseHelper.close(driver);
          folder.close();
        });
  }

  /// Starts a media driver for all ranks of this host.
  ///
  /// @param rank that starts it, for messages
  /// @param ranks of the launch
  /// @param here how many of them are on this host
  /// @param liveness how long a rank may be silent for the session
  /// @param othersAreGone whether the others of this host have ended
  static Driver leading(
      int rank,
      Dimensions dimensions,
      int ranks,
      int here,
      Duration liveness,
      BooleanSupplier othersAreGone,
      UnaryOperator<MediaDriver.Context> changes) {
    Faults faults = new Faults();
    HostDriver driver =
        HostDriver.start(
            rank,
            dimensions,
            2 * here * ranks,
            DriverSettings.peersNs(liveness),
            2 * silenceNs(liveness),
            faults,
            othersAreGone,
            changes);
    return new Driver(
        nameOf(rank), driver.directory(), true, faults, null, silenceNs(liveness), driver::leave);
  }

  /// Uses the media driver that another rank of this host has started.
  ///
  /// @param said where that is, by the session's word
  static Driver following(int leader, Path said, Duration liveness) {
    return new Driver(
        nameOf(leader),
        DriverFolder.check(OwnFolder.root(), said, nameOf(leader)),
        true,
        new Faults(),
        null,
        silenceNs(liveness),
        () -> DriverFolder.sweep(OwnFolder.root())); // the leader may have been killed
  }

  private static String nameOf(int leader) {
    return "the media driver that rank %d runs for this host".formatted(leader);
  }

  /// Uses a media driver that runs already.
  static Driver external(Path directory, Duration liveness) {
    DriverDirectory.check(directory, silenceNs(liveness));
    return new Driver(
        "the media driver in " + directory,
        directory,
        false,
        new Faults(),
        null,
        silenceNs(liveness),
        () -> {});
  }

  /// How long a driver may be silent before it counts as gone.
  static long silenceNs(Duration liveness) {
    return Math.max(liveness.toNanos(), LEAST_SILENCE_NS);
  }

  Aeron aeron() {
    return aeron;
  }

  /// Where the driver's files are.
  Path directory() {
    return directory;
  }

  /// Opens something that has files, which an interrupt of the calling thread would close. One that
  /// has come before is for the next wait; one that comes meanwhile ends it.
  ///
  /// @throws InterruptedCallException if it fails and the thread was interrupted meanwhile
  static <T> T uninterrupted(Supplier<T> opening) {
    boolean interrupted = Thread.interrupted();
    try {
      return opening.get();
    } catch (RuntimeException | InternalError e) {
      if (!Thread.currentThread().isInterrupted()) {
        throw e;
      }
      var meanwhile = new InterruptedCallException("opening aeron was interrupted");
      meanwhile.initCause(e);
      throw meanwhile;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /// Does what there is to do: sends, receives, answers.
  ///
  /// @return how much it was
  int work() {
    boolean interrupted = Thread.interrupted();
    turn.lock();
    try {
      int done = driverAgent == null ? 0 : faults.work(driverAgent);
      long nowNs = System.nanoTime();
      if (nowNs - clientNs > CLIENT_NS) {
        clientNs = nowNs;
        done += faults.work(clientAgent);
      }
      return done;
    } finally {
      turn.unlock();
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /// Works while the calling thread waits for others, who may come late: a client that nobody moves
  /// along ends itself, and a driver that is not this rank's own gives it up.
  <T> T during(Supplier<T> wait) {
    if (isInvoked()) {
      return wait.get(); // it has the patience of a day
    }
    var isOver = new AtomicBoolean();
    Thread worker =
        Thread.ofPlatform().daemon().name("comm4j-aeron-opening").start(() -> workUntil(isOver));
    try {
      return wait.get();
    } finally {
      end(isOver);
      LockSupport.unpark(worker);
    }
  }

  /// When this returns the other thread does nothing more.
  private void end(AtomicBoolean isOver) {
    turn.lock();
    try {
      isOver.set(true);
    } finally {
      turn.unlock();
    }
  }

  private void workUntil(AtomicBoolean isOver) {
    while (!isOver.get()) {
      turn.lock();
      try {
        if (!isOver.get()) {
          var _ = work();
        }
      } finally {
        turn.unlock();
      }
      LockSupport.parkNanos(this, OPENING_NS);
    }
  }

  /// Moves a driver of this rank's own along, and not the client: that could unmap what is being
  /// read. For a thread that does not hold the transport's lock, while somebody else does who is
  /// busy with what has arrived.
  ///
  /// @return how much there was to do
  int workAlone() {
    if (driverAgent == null || !turn.tryLock()) {
      return 0;
    }
    try {
      return faults.work(driverAgent);
    } finally {
      turn.unlock();
    }
  }

  /// Whether it has our settings: what it gives up has been silent for so long that it is gone.
  boolean isOurs() {
    return isOurs;
  }

  /// Whether it works only where [#work] is called, and ends with this rank.
  boolean isInvoked() {
    return driverAgent != null;
  }

  /// How many requests to send something again have come, of any peer; where the driver serves
  /// other ranks too, also theirs.
  long requests() {
    return aeron.countersReader().getCounterValue(NAK_MESSAGES_RECEIVED.id());
  }

  /// Whether there is no driver any more.
  boolean hasFailed() {
    return faults.fatal() != null || aeron.isClosed();
  }

  /// @throws TransportFailedException if there is no driver any more
  void check() {
    if (hasFailed()) {
      Throwable cause = faults.fatal();
      throw new TransportFailedException(
          name + " has failed" + (cause == null ? "" : ": " + Faults.reason(cause, directory)),
          cause);
    }
  }

  @Override
  public void close() {
    boolean interrupted = Thread.interrupted();
    try {
      CloseHelper.close(aeron);
    } finally {
      whenClosed.run();
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
