package org.comm4j.backend.aeron;

import io.aeron.AeronCounters;
import io.aeron.driver.MediaDriver;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;
import org.agrona.CloseHelper;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.status.CountersReader;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.Endings;
import org.comm4j.core.session.OwnFolder;

/// The media driver of all ranks of a host, on a thread in the process of the first of them.
///
/// Once that rank has left ([#leave]) it goes on until the last one has, and the process with it,
/// unless that exits by itself; then the others are told by Aeron that there is no driver. Who was
/// killed while it had its session has left too: that the session knows long before the driver.
final class HostDriver {
  private static final long LOOK_NS = TimeUnit.MILLISECONDS.toNanos(1);

  /// Yields for some 100 µs, then sleeps: ranks need the processors.
  private static final int YIELDS = 200;

  private static final long SHORTEST_NAP_NS = TimeUnit.MICROSECONDS.toNanos(50);
  private static final long LONGEST_NAP_NS = TimeUnit.MICROSECONDS.toNanos(250);

  private final DriverFolder folder;
  private final Faults faults = new Faults();
  private final Faults ofRank;
  private final BooleanSupplier othersAreGone;
  private final MediaDriver driver;
  private final Agent agent;
  private final Thread thread;
  private volatile boolean left;
  private long lookedNs;

  private HostDriver(
      int rank,
      Dimensions dimensions,
      int pairs,
      long peersNs,
      long clientsNs,
      Faults ofRank,
      BooleanSupplier othersAreGone,
      UnaryOperator<MediaDriver.Context> changes,
      DriverFolder folder) {
    this.folder = folder;
    this.ofRank = ofRank;
    this.othersAreGone = othersAreGone;
    this.driver =
        DriverSettings.launch(
            changes.apply(
                DriverSettings.of(folder.driver(), dimensions, pairs, peersNs, clientsNs, faults)),
            pairs);
    this.agent = driver.sharedAgentInvoker().agent();
    this.thread =
        Thread.ofPlatform().daemon().name("comm4j-aeron-driver-" + rank).unstarted(this::run);
  }

  /// @param rank that runs it
  /// @param pairs how many ordered pairs of ranks have one end on this host
  /// @param peersNs how long a rank of another host may be silent
  /// @param clientsNs how long one of this host may be
  /// @param ofRank learns why the driver can't go on
  /// @param othersAreGone whether the session has given up the other ranks of this host, or they
  ///   have left
  /// @param changes to the driver's settings
  /// @throws TransportFailedException if it does not start
  static HostDriver start(
      int rank,
      Dimensions dimensions,
      int pairs,
      long peersNs,
      long clientsNs,
      Faults ofRank,
      BooleanSupplier othersAreGone,
      UnaryOperator<MediaDriver.Context> changes) {
    DriverFolder folder = DriverFolder.create(OwnFolder.root());
    HostDriver made = null;
    try {
      made =
          new HostDriver(
              rank, dimensions, pairs, peersNs, clientsNs, ofRank, othersAreGone, changes, folder);
      made.thread.start();
      return made;
    } catch (Throwable e) { // Agrona throws checked ones too
      if (made != null) {
        CloseHelper.quietClose(made.driver);
      }
      folder.close();
      throw Faults.failed("the media driver does not start", e, OwnFolder.root());
    }
  }

  Path directory() {
    return folder.driver();
  }

  /// The rank that has started it needs it no more, and its client is closed. Others may: the
  /// process should not end before they have left.
  void leave() {
    left = true;
    Endings.keepProcessUntil(thread);
  }

  private void run() {
    IdleStrategy idle = new BackoffIdleStrategy(0, YIELDS, SHORTEST_NAP_NS, LONGEST_NAP_NS);
    try (folder;
        driver) {
      boolean isOver = false;
      int done;
      do { // what was taken before is sent
        isOver |= isOver();
        done = faults.work(agent);
        idle.idle(done);
      } while (faults.fatal() == null && !(isOver && done == 0));
      Throwable fatal = faults.fatal();
      if (fatal != null) {
        ofRank.fail(fatal);
      }
    }
  }

  private boolean isOver() {
    long nowNs = System.nanoTime();
    if (!left || nowNs - lookedNs < LOOK_NS) {
      return false;
    }
    lookedNs = nowNs;
    return othersAreGone.getAsBoolean() || !hasClients();
  }

  private boolean hasClients() {
    int[] clients = new int[1];
    driver
        .context()
        .countersManager()
        .forEach(
            (CountersReader.MetaData)
                (_, type, _, _) -> {
                  if (type == AeronCounters.DRIVER_HEARTBEAT_TYPE_ID) {
                    clients[0]++;
                  }
                });
    return clients[0] > 0;
  }
}
