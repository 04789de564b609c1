package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DriverFolderTest {
  @TempDir Path root;

  @Test
  void create_isForThisUserAlone_andCloseRemovesIt() throws Exception {
    Path path;
    try (DriverFolder folder = DriverFolder.create(root)) {
      path = folder.driver().getParent();
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
          .isEqualTo("rwx------");
      Files.createDirectories(folder.driver().resolve("publications"));
      Files.writeString(folder.driver().resolve("publications/1.logbuffer"), "log");
    }
    assertThat(path).doesNotExist();
  }

  @Test
  void create_whatAKilledProcessLeft_isRemoved() throws Exception {
    Path left = Files.createDirectories(ownFolder("comm4j-aeron-123").resolve("driver"));
    Files.writeString(left.resolve("cnc.dat"), "left");
    Files.createFile(root.resolve("comm4j-aeron-123/lock")); // nobody holds it
    Path others = Files.createDirectory(root.resolve("of-somebody-else"));
    try (DriverFolder _ = DriverFolder.create(root)) {
      assertThat(root.resolve("comm4j-aeron-123")).doesNotExist();
      assertThat(others).exists();
    }
  }

  @Test
  void close_whatAKilledPeerLeft_isRemoved() throws Exception {
    Path left;
    try (DriverFolder _ = DriverFolder.create(root)) {
      left = ownFolder("comm4j-aeron-789");
      Files.createFile(left.resolve("lock"));
    }
    assertThat(left).doesNotExist();
  }

  private Path ownFolder(String name) throws Exception {
    return Files.createDirectory(
        root.resolve(name),
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
  }

  /// Somebody else's file of that name could make us wait or remove what is not ours.
  @Test
  void create_foldersThatOthersMayEnter_areLeftAlone() throws Exception {
    Path open = ownFolder("comm4j-aeron-open");
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    assertThat(new ProcessBuilder("mkfifo", open.resolve("lock").toString()).start().waitFor())
        .isZero();
    Path target = ownFolder("target");
    Files.createFile(target.resolve("lock"));
    Path link = Files.createSymbolicLink(root.resolve("comm4j-aeron-link"), target);
    try (DriverFolder _ = DriverFolder.create(root)) {
      assertThat(open.resolve("lock")).exists();
      assertThat(target.resolve("lock")).exists();
      assertThat(link).isSymbolicLink();
    }
  }

  /// What [#signal_endsTheProcess_foldersAreRemoved] ends.
  static final class Holder {
    public static void main(String[] root) throws Exception {
      IO.println(DriverFolder.create(Path.of(root[0])).driver().getParent());
      new CountDownLatch(1).await();
    }
  }

  /// Its own, and that of a peer which was killed while it lived.
  @Test
  void signal_endsTheProcess_foldersAreRemoved() throws Exception {
    List<String> command = new ArrayList<>(ChildJvm.command(List.of(), Holder.class));
    command.add(root.toString());
    Process holder =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    try (var out = holder.inputReader()) {
      Path folder = Path.of(String.valueOf(out.readLine()));
      assertThat(folder).exists();
      Path left = ownFolder("comm4j-aeron-789");
      Files.createFile(left.resolve("lock"));
      holder.destroy();
      assertThat(holder.waitFor(20, TimeUnit.SECONDS)).isTrue();
      assertThat(folder).doesNotExist();
      assertThat(left).doesNotExist();
    } finally {
      holder.destroyForcibly();
    }
  }

  /// Makes and removes folders, by several threads, and fails if one is gone while it is in use.
  static final class Comer {
    private static final int THREADS = 4;
    private static final int FOLDERS = 500;

    public static void main(String[] root) throws Exception {
      try (var threads = Executors.newFixedThreadPool(THREADS)) {
        var coming = new ArrayList<Future<?>>();
        for (int i = 0; i < THREADS; i++) {
          coming.add(threads.submit(() -> comeAndGo(Path.of(root[0]))));
        }
        for (Future<?> each : coming) {
          each.get();
        }
      }
    }

    private static void comeAndGo(Path root) {
      for (int i = 0; i < FOLDERS; i++) {
        try (DriverFolder folder = DriverFolder.create(root);
            DriverFolder _ = DriverFolder.create(root)) {
          Path lock = folder.driver().resolveSibling("lock");
          if (!Files.exists(lock)) {
            throw new IllegalStateException(lock + " is in use, and somebody has removed it");
          }
        }
      }
    }
  }

  /// Whoever cleans up looks at every folder, at one too that is just being made.
  @Test
  void create_whileAnotherProcessCleansUp_nobodyLosesWhatItHas() throws Exception {
    List<String> command = new ArrayList<>(ChildJvm.command(List.of(), Comer.class));
    command.add(root.toString());
    Process comer = new ProcessBuilder(command).inheritIO().start();
    try {
      long endNs = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
      while (comer.isAlive() && System.nanoTime() - endNs < 0) {
        DriverFolder.sweep(root);
      }
      assertThat(comer.isAlive()).isFalse();
      assertThat(comer.exitValue()).isZero();
    } finally {
      comer.destroyForcibly();
    }
    assertThat(root).isEmptyDirectory();
  }

  @Test
  void create_whatIsInUseOrBeginning_stays() throws Exception {
    Path beginning = ownFolder("comm4j-aeron-456");
    try (DriverFolder first = DriverFolder.create(root);
        DriverFolder _ = DriverFolder.create(root)) {
      assertThat(first.driver().getParent()).exists();
      assertThat(beginning).exists();
    }
  }
}
