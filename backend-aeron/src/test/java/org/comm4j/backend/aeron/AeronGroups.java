package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import io.aeron.Aeron;
import io.aeron.driver.MediaDriver;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.function.LongSupplier;
import java.util.function.UnaryOperator;
import org.agrona.DirectBuffer;
import org.assertj.core.api.Assertions;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.tck.ChildJvm;
import org.comm4j.tck.ThreadGroups;

/// Ranks in this JVM, each with a driver of its own, whose settings a test may change.
///
/// @param configs of each rank
/// @param changes of each rank's driver
/// @param linger of each transport
record AeronGroups(
    IntFunction<CommConfig> configs,
    IntFunction<UnaryOperator<MediaDriver.Context>> changes,
    Linger linger) {
  /// Other processes of this backend's tests.
  static final ChildJvm JVM =
      new ChildJvm(
          AeronProvider.class,
          Aeron.class,
          MediaDriver.class,
          DirectBuffer.class,
          Assertions.class);

  /// What Agrona needs there.
  static final String OPENED = "--add-exports java.base/jdk.internal.misc=ALL-UNNAMED";

  private static final Queue<Path> FOLDERS = new ConcurrentLinkedQueue<>();

  AeronGroups(CommConfig config) {
    this(config, _ -> UnaryOperator.identity());
  }

  AeronGroups(CommConfig config, IntFunction<UnaryOperator<MediaDriver.Context>> changes) {
    this(_ -> config, changes);
  }

  AeronGroups(
      IntFunction<CommConfig> configs, IntFunction<UnaryOperator<MediaDriver.Context>> changes) {
    this(configs, changes, Linger.USUAL);
  }

  /// Whose transports wait so long at the end that peers on a busy machine have all that was taken.
  AeronGroups patient() {
    var patience = new Linger(TimeUnit.SECONDS.toNanos(20), TimeUnit.SECONDS.toNanos(2));
    return new AeronGroups(configs, changes, patience);
  }

  List<AeronTransport> transports(int size) throws Exception {
    return transports(InMemorySessions.group(size));
  }

  List<AeronTransport> transports(InMemorySessions group) throws Exception {
    int size = group.sessions().size();
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      var opening = new ArrayList<Future<AeronTransport>>();
      for (int rank = 0; rank < size; rank++) {
        opening.add(threads.submit(rendezvous(group.session(rank))::open));
      }
      var transports = new ArrayList<AeronTransport>();
      for (Future<AeronTransport> each : opening) {
        transports.add(each.get());
      }
      return transports;
    }
  }

  /// What each rank that can't be opened says.
  List<String> failures(int size) throws Exception {
    try (var group = InMemorySessions.group(size);
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<AeronTransport>> opening =
          group.sessions().stream()
              .map(session -> threads.submit(() -> rendezvous(session).open()))
              .toList();
      var failures = new ArrayList<String>();
      for (Future<AeronTransport> each : opening) {
        try {
          each.get().close();
        } catch (ExecutionException e) {
          failures.add(String.valueOf(e.getCause()));
        }
      }
      return failures;
    }
  }

  LocalGroup communicators(int size) {
    return ThreadGroups.open(
        size,
        session ->
            EngineCommunicator.open(
                "aeron", session, rendezvous(session).open(), null, configs.apply(session.rank())));
  }

  private Rendezvous rendezvous(Session session) {
    return rendezvous(session, System::nanoTime);
  }

  /// @param nanoTime the rank's clock
  Rendezvous rendezvous(Session session, LongSupplier nanoTime) {
    UnaryOperator<MediaDriver.Context> change = changes.apply(session.rank());
    return new Rendezvous(
        session,
        configs.apply(session.rank()),
        context -> {
          FOLDERS.add(Path.of(context.aeronDirectoryName()).getParent());
          return change.apply(context);
        },
        nanoTime,
        linger);
  }

  /// Returns when no driver of a host runs any more.
  static void checkHostDriversEnd() throws InterruptedException {
    for (Thread each : Thread.getAllStackTraces().keySet()) {
      if (each.getName().startsWith("comm4j-aeron-driver-")) {
        assertThat(each.join(Duration.ofSeconds(20))).as("%s ends", each).isTrue();
      }
    }
  }

  /// Fails if a folder of a driver is still there, once all groups are closed.
  static void checkNothingIsLeft() {
    assertThat(FOLDERS).isNotEmpty().noneMatch(Files::exists);
  }
}
