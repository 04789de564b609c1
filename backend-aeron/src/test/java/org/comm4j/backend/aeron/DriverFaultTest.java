package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import io.aeron.driver.MediaDriver;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.TransportFailedException;
import org.comm4j.tck.Promise;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

/// When the driver of rank 0 fails, that rank's call says why and the others' say who, at once.
class DriverFaultTest {
  private static final int RANKS = 3;
  private static final CommConfig CONFIG =
      CommConfig.builder().timeout(Duration.ofSeconds(60)).build();

  private final AtomicReference<@Nullable RuntimeException> fault = new AtomicReference<>();
  private final AtomicReference<Path> folder = new AtomicReference<>();

  @AfterAll
  static void nothingIsLeft() {
    AeronGroups.checkNothingIsLeft();
  }

  @Test
  void agentThrowsEveryTime_ownCallSaysWhyAndOthersWho() throws Exception {
    try (LocalGroup group = group()) {
      assertThat(sums(group)).containsOnly("3");
      fault.set(new IllegalStateException("the clock has stopped"));
      expectFailure(group, "the clock has stopped");
      expectFailure(group, "the clock has stopped");
    }
  }

  @Test
  void folderIsRemovedBeforeItIsUsed_ownCallSaysWhyAndOthersWho() throws Exception {
    try (LocalGroup group = group()) {
      remove(folder.get());
      expectFailure(group, folder.get().toString());
    }
  }

  /// What rank 1 sends finds no place on rank 0, who would never hear of it.
  @Test
  void noPlaceForWhatPeersSend_ownCallSaysWhyAndOthersWho() throws Exception {
    try (LocalGroup group = group()) {
      remove(folder.get().resolve("images"));
      expectFailure(group, folder.get().toString());
    }
  }

  @Test
  void folderIsRemovedLater_goesOn() throws Exception {
    try (LocalGroup group = group()) {
      assertThat(sums(group)).containsOnly("3");
      remove(folder.get());
      assertThat(sums(group)).containsOnly("3");
    }
  }

  /// As behind a firewall: the session's TCP gets through.
  @Test
  void udpDoesNotGetThrough_saysWhichPortAndWhatToDo() throws Exception {
    CommConfig config = CONFIG.toBuilder().liveness(Duration.ofSeconds(2)).build();
    var wall = new Loss(1, 1);
    try (LocalGroup group = new AeronGroups(config, _ -> wall.changes()).communicators(2)) {
      assertThat(sums(group))
          .anyMatch(each ->
              each.startsWith(TransportFailedException.class.getName())
                  && each.contains("has not answered at UDP 127.0.0.1:")
                  && each.contains("COMM_AERON_PORTS"));
    }
  }

  private LocalGroup group() {
    UnaryOperator<MediaDriver.Context> faulty =
        context -> {
          folder.set(Path.of(context.aeronDirectoryName()));
          return context.nanoClock(() -> {
            RuntimeException thrown = fault.get();
            if (thrown != null) {
              throw thrown;
            }
            return System.nanoTime();
          });
        };
    return new AeronGroups(CONFIG, rank -> rank == 0 ? faulty : UnaryOperator.identity())
        .communicators(RANKS);
  }

  private static void expectFailure(LocalGroup group, String cause) throws Exception {
    long start = System.nanoTime();
    List<String> outcomes = sums(group);
    Promise.AT_ONCE.keep("a driver that fails", "a call", start);
    assertThat(outcomes.getFirst())
        .startsWith(TransportFailedException.class.getName())
        .contains(cause);
    assertThat(outcomes.subList(1, RANKS))
        .allMatch(each -> each.startsWith(AbortedException.class.getName() + ": rank 0"));
  }

  /// What each rank's all-reduce gives, or throws.
  static List<String> sums(LocalGroup group) throws Exception {
    return sums(group.communicators());
  }

  /// What each rank's all-reduce gives, or throws.
  static List<String> sums(List<Communicator> group) throws Exception {
    return onEach(
        group,
        comm -> {
          int[] data = new int[100_000];
          data[0] = 1;
          try {
            comm.allReduce(data, ReduceOp.SUM);
            return String.valueOf(data[0]);
          } catch (RuntimeException e) {
            return e.toString();
          }
        });
  }

  /// What sums give once they fail on all ranks; those before may pass through memory, though there
  /// is no driver any more, and the first that fails on one rank may do so on others.
  static List<String> sumsUntilFailure(LocalGroup group) throws Exception {
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    List<String> sums = sums(group);
    while (sums.contains(String.valueOf(group.size())) && System.nanoTime() - endNs < 0) {
      sums = sums(group);
    }
    return sums;
  }

  /// What each rank's call gives, on a thread of its own.
  static <T> List<T> onEach(List<Communicator> group, Function<Communicator, T> call)
      throws Exception {
    try (var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      List<Callable<T>> bodies = new ArrayList<>();
      for (Communicator comm : group) {
        bodies.add(() -> call.apply(comm));
      }
      List<T> results = new ArrayList<>();
      for (Future<T> each : threads.invokeAll(bodies)) {
        results.add(each.get());
      }
      return results;
    }
  }

  static void remove(Path folder) throws Exception {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path each : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(each);
      }
    }
  }
}
