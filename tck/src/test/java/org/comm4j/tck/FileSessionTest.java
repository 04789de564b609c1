package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Session;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Sessions over a file.
final class FileSessionTest extends SessionContract {
  @TempDir private Path directory;
  private int groups;

  @Override
  protected Group open(int size) {
    return Joining.group(configs(size));
  }

  @Override
  protected Group openWithVictim(int size, Duration liveness) {
    return Joining.groupWithProcess(configs(size).liveness(liveness));
  }

  private CommConfig.Builder configs(int size) {
    groups++;
    return Configs.file(size, directory).session("job-" + groups);
  }

  /// Who had left before saw it alive, and let the file be.
  @Test
  void join_lastOfTheSessionBeforeWasKilled_survivorsMeetAgain() throws Exception {
    Group first = Joining.groupWithProcess(Configs.file(3, directory));
    first.sessions().forEach(Session::close);
    RankProcess last = (RankProcess) Objects.requireNonNull(first.victim());
    last.kill();
    last.awaitExit();
    List<Session> second = Joining.group(Configs.file(2, directory)).sessions();
    assertThat(second).hasSize(2);
    second.forEach(Session::close);
  }

  /// There is none for the file's data, for the file, or for the folder.
  @ParameterizedTest
  @ValueSource(strings = {"size=4k", "nr_inodes=2", "nr_inodes=1"})
  @EnabledOnOs(OS.LINUX)
  void join_noSpace_saysWhatHelpsAndLeavesNothing(String space) throws Exception {
    assumeTrue(
        ChildJvm.run(List.of("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"))
            .startsWith("0:"),
        "needs the right to mount a small /dev/shm");
    List<String> command = new ArrayList<>(List.of("unshare", "-m", "sh", "-c"));
    command.add("mount -t tmpfs -o %s tmpfs /dev/shm && exec \"$@\"".formatted(space));
    command.add("sh");
    command.addAll(new ChildJvm().command(List.of(), JoinsWithoutSpace.class));
    assertThat(ChildJvm.run(command))
        .startsWith("0: ")
        .contains("No space left on device", "--shm-size", "COMM_SESSION_DIR", "left: []")
        .doesNotContain("of this user alone");
  }

  /// A process that wants to meet another one where there is no space.
  static final class JoinsWithoutSpace {
    private JoinsWithoutSpace() {}

    public static void main(String[] args) throws Exception {
      Path shared = Path.of("/dev/shm");
      CommConfig.Builder config = Configs.file(2, shared.resolve("sessions"));
      System.out.println(Joining.join(Joining.rank(config, 0)));
      try (Stream<Path> left = Files.list(shared)) {
        System.out.println("left: " + left.toList());
      }
    }
  }

  /// The folder is that of all jobs of the user, and who looks after them removes it when it is
  /// empty.
  @Test
  void join_othersRemoveTheEmptyFolder_isNotDisturbed() throws Exception {
    var over = new AtomicBoolean();
    Path base = directory.resolve("sessions");
    Thread remover =
        Thread.ofPlatform()
            .start(() -> {
              while (!over.get()) {
                base.toFile().delete(); // does nothing where there is a file in it
                LockSupport.parkNanos(200_000);
              }
            });
    try {
      for (int round = 0; round < 200; round++) {
        Group group = Joining.group(Configs.file(2, base).session("folder-" + round));
        assertThat(group.sessions()).hasSize(2);
        group.sessions().forEach(Session::close);
      }
    } finally {
      over.set(true);
      remover.join();
      awaitThreads();
      Files.deleteIfExists(base);
    }
  }

  @AfterEach
  void noFileIsLeft() throws Exception {
    closeAll();
    awaitThreads();
    try (Stream<Path> files = Files.list(directory)) {
      assertThat(files).isEmpty();
    }
  }

  /// Returns when no session's thread runs any more: the one that removes the file may take longer
  /// for it than its session's close waits.
  private static void awaitThreads() throws InterruptedException {
    for (Thread each : Thread.getAllStackTraces().keySet()) {
      if (each.getName().startsWith("comm4j-session-")) {
        assertThat(each.join(Duration.ofSeconds(20))).as("%s ends", each).isTrue();
      }
    }
  }
}
