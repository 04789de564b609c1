package org.comm4j.backend.local;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.comm4j.tck.ChildJvm;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Ranks that are processes: what they send arrives, and whatever happens to them, no file stays.
class ShmProcessTest {
  static final ChildJvm JVM = new ChildJvm(SharedMemoryTransport.class);

  private static final int BOUND_SECONDS = 120;
  private static final String SESSION = "0123456789abcdef";

  @TempDir Path meeting;
  private Path root;
  private final List<Process> children = new ArrayList<>();
  private final long seed = Long.getLong("comm4j.seed", System.nanoTime());

  @BeforeEach
  void makeRoot() throws IOException {
    root = Files.createTempDirectory(Path.of("/dev/shm"), "comm4j-test-");
  }

  @AfterEach
  void nothingIsLeft() throws IOException {
    children.forEach(Process::destroyForcibly);
    try (var left = Files.list(root)) {
      assertThat(left).isEmpty();
    }
    Files.delete(root);
  }

  @Test
  void processes_talk_everythingArrives() throws Exception {
    assertThat(outcomes("talk", SESSION, 3)).as("seed %d", seed).containsOnly("0: ");
  }

  @Test
  void processes_killedWhileFilesHaveNames_nextOnesRemoveThem() throws Exception {
    var stalling = start("stall", SESSION, 2);
    for (Process child : stalling) {
      assertThat(child.inputReader().readLine()).isEqualTo("stalling");
    }
    Path base = ShmDirectory.base(root);
    assertThat(ShmDirectory.reap(base, Long.MAX_VALUE)).as("reaped while alive").isZero();
    assertThat(base.resolve(SESSION).resolve("rank-1")).exists();
    for (Process child : stalling) {
      child.destroyForcibly();
      assertThat(child.waitFor(BOUND_SECONDS, SECONDS)).isTrue();
    }
    assertThat(base.resolve(SESSION).resolve("rank-1")).exists();
    assertThat(outcomes("talk", "fedcba9876543210", 2)).containsOnly("0: ");
  }

  /// Whoever cleans up looks at every lock, at one too that is just being taken.
  @Test
  void processes_comeAndGoWhileAnotherCleansUp_allGetTheirLock() throws Exception {
    List<Process> coming = start("enter", SESSION, 2);
    Path base = ShmDirectory.base(root);
    long endNs = System.nanoTime() + SECONDS.toNanos(BOUND_SECONDS);
    while (coming.stream().anyMatch(Process::isAlive) && System.nanoTime() - endNs < 0) {
      ShmDirectory.reap(base, Long.MAX_VALUE);
    }
    for (Process child : coming) {
      assertThat(outcome(child)).isEqualTo("0: ");
    }
  }

  private List<Process> start(String what, String session, int size) throws IOException {
    Path place = Files.createDirectory(meeting.resolve(session));
    var started = new ArrayList<Process>();
    for (int rank = 0; rank < size; rank++) {
      started.add(
          new ProcessBuilder(
                  JVM.command(
                      List.of(),
                      ShmPeer.class,
                      what,
                      root.toString(),
                      place.toString(),
                      session,
                      String.valueOf(rank),
                      String.valueOf(size),
                      String.valueOf(seed)))
              .redirectErrorStream(true)
              .start());
    }
    children.addAll(started);
    return started;
  }

  /// Each process's exit code and output.
  private List<String> outcomes(String what, String session, int size) throws Exception {
    var outcomes = new ArrayList<String>();
    for (Process child : start(what, session, size)) {
      outcomes.add(outcome(child));
    }
    return outcomes;
  }

  private static String outcome(Process child) throws Exception {
    String output;
    try (BufferedReader reader = child.inputReader()) {
      output = String.join("\n", reader.lines().toList());
    }
    assertThat(child.waitFor(BOUND_SECONDS, SECONDS)).isTrue();
    return child.exitValue() + ": " + output;
  }
}
