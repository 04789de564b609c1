package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
class OwnFolderTest {
  private static final String PREFIX = "of-a-test-";

  @TempDir Path root;

  @Test
  void create_isForThisUserAlone_andCloseRemovesIt() throws Exception {
    Path path;
    try (OwnFolder folder = OwnFolder.create(root, PREFIX)) {
      path = folder.path();
      assertThat(path).hasParent(root);
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
          .isEqualTo("rwx------");
      Files.createDirectories(path.resolve("inner"));
      Files.writeString(path.resolve("inner/file"), "something");
    }
    assertThat(path).doesNotExist();
  }

  @Test
  void sweep_whatAKilledProcessLeft_isRemoved() throws Exception {
    Path left = ownFolder(PREFIX + 123);
    Files.createFile(left.resolve("lock")); // nobody holds it
    Files.createDirectories(left.resolve("inner"));
    Files.writeString(left.resolve("inner/file"), "left");
    Path other = ownFolder("of-somebody-else");
    Files.createFile(other.resolve("lock"));
    OwnFolder.sweep(root, PREFIX);
    assertThat(left).doesNotExist();
    assertThat(other).exists();
  }

  /// Who comes in between would take one without a lock for one that is being made.
  @Test
  void sweep_lockGoesLast() throws Exception {
    Path left = leftFolder();
    List<String> removed = new ArrayList<>();
    try (WatchService watch = root.getFileSystem().newWatchService()) {
      WatchKey removals = left.register(watch, StandardWatchEventKinds.ENTRY_DELETE);
      OwnFolder.sweep(root, PREFIX);
      long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
      while (removed.size() < 2 && System.nanoTime() - endNs < 0) {
        removals.pollEvents().forEach(each -> removed.add(String.valueOf(each.context())));
        Thread.yield();
      }
    }
    assertThat(removed).containsExactly("inner", "lock");
  }

  /// What a killed process may leave, not too little.
  private Path leftFolder() throws IOException {
    Path left = ownFolder(PREFIX + 321);
    Path inner = Files.createDirectory(left.resolve("inner"));
    for (int i = 0; i < 100; i++) {
      Files.createFile(inner.resolve("file-" + i));
    }
    Files.createFile(left.resolve("lock"));
    return left;
  }

  /// A process that was killed before it had the lock leaves a folder without one.
  @Test
  void sweep_withoutLock_removesItOnceItIsOld() throws Exception {
    Path beginning = ownFolder(PREFIX + 456);
    OwnFolder.sweep(root, PREFIX);
    assertThat(beginning).exists();
    Instant old = Instant.now().minus(Duration.ofHours(1));
    Files.setLastModifiedTime(beginning, FileTime.from(old));
    OwnFolder.sweep(root, PREFIX);
    assertThat(beginning).doesNotExist();
  }

  @Test
  void sweep_whatIsInUse_stays() throws Exception {
    try (OwnFolder first = OwnFolder.create(root, PREFIX);
        OwnFolder second = OwnFolder.create(root, PREFIX)) {
      OwnFolder.sweep(root, PREFIX);
      assertThat(first.path()).exists();
      assertThat(second.path()).exists();
    }
  }

  private Path ownFolder(String name) throws IOException {
    return Files.createDirectory(
        root.resolve(name),
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
  }

  /// Somebody else's file of that name could make us wait or remove what is not ours.
  @Test
  void sweep_foldersThatOthersMayEnter_areLeftAlone() throws Exception {
    Path open = ownFolder(PREFIX + "open");
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    assertThat(new ProcessBuilder("mkfifo", open.resolve("lock").toString()).start().waitFor())
        .isZero();
    Path target = ownFolder("target");
    Files.createFile(target.resolve("lock"));
    Path link = Files.createSymbolicLink(root.resolve(PREFIX + "link"), target);
    OwnFolder.sweep(root, PREFIX);
    assertThat(open.resolve("lock")).exists();
    assertThat(target.resolve("lock")).exists();
    assertThat(link).isSymbolicLink();
  }

  // --- with other processes ---

  private List<String> java(Class<?> main) {
    String classPath =
        Stream.of(OwnFolderTest.class, OwnFolder.class)
            .map(OwnFolderTest::placeOf)
            .collect(Collectors.joining(File.pathSeparator));
    return List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-cp",
        classPath,
        main.getName(),
        root.toString());
  }

  /// Where a class was loaded from, a folder.
  private static String placeOf(Class<?> type) {
    String name = type.getName().replace('.', '/') + ".class";
    String url = String.valueOf(type.getResource("/" + name));
    return Path.of(URI.create(url.substring(0, url.length() - name.length()))).toString();
  }

  /// What [#signal_endsTheProcess_foldersAreRemoved] ends.
  static final class Holder {
    public static void main(String[] root) throws Exception {
      IO.println(OwnFolder.create(Path.of(root[0]), PREFIX).path());
      new CountDownLatch(1).await();
    }
  }

  /// Its own, and that of a process of the same launch which was killed while it lived.
  @Test
  void signal_endsTheProcess_foldersAreRemoved() throws Exception {
    Process holder =
        new ProcessBuilder(java(Holder.class))
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    try (var out = holder.inputReader()) {
      Path folder = Path.of(String.valueOf(out.readLine()));
      assertThat(folder).exists();
      OwnFolder.sweep(root, PREFIX);
      assertThat(folder).exists();
      Path left = ownFolder(PREFIX + 789);
      Files.createFile(left.resolve("lock"));
      holder.destroy();
      assertThat(holder.waitFor(20, TimeUnit.SECONDS)).isTrue();
      assertThat(folder).doesNotExist();
      assertThat(left).doesNotExist();
    } finally {
      holder.destroyForcibly();
    }
  }

  /// What [#keepUntilTheEnd_shutdownHookUsesIt_isRemovedAfterwards] runs.
  static final class HookUser {
    public static void main(String[] root) throws Exception {
      Path usual = OwnFolder.create(Path.of(root[0]), PREFIX).path();
      Path kept;
      try (OwnFolder folder = OwnFolder.create(Path.of(root[0]), PREFIX)) {
        kept = folder.path();
        Files.createDirectories(kept.resolve("inner"));
        Files.writeString(kept.resolve("inner/file"), "of a hook");
        folder.keepUntilTheEnd();
      }
      Runtime.getRuntime()
          .addShutdownHook(
              new Thread(() -> {
                while (Files.exists(usual)) {
                  Thread.onSpinWait();
                }
                try {
                  IO.println(Files.readString(kept.resolve("inner/file")));
                } catch (IOException e) {
                  IO.println(e);
                }
              }));
    }
  }

  @Test
  void keepUntilTheEnd_shutdownHookUsesIt_isRemovedAfterwards() throws Exception {
    Process user =
        new ProcessBuilder(java(HookUser.class))
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    try (var out = user.inputReader()) {
      assertThat(out.readLine()).isEqualTo("of a hook");
      assertThat(user.waitFor(20, TimeUnit.SECONDS)).isTrue();
      assertThat(root).isEmptyDirectory();
    } finally {
      user.destroyForcibly();
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
          coming.add(
              threads.submit(() -> {
                comeAndGo(Path.of(root[0]));
                return null;
              }));
        }
        for (Future<?> each : coming) {
          each.get();
        }
      }
    }

    private static void comeAndGo(Path root) throws IOException {
      for (int i = 0; i < FOLDERS; i++) {
        OwnFolder.sweep(root, PREFIX);
        try (OwnFolder folder = OwnFolder.create(root, PREFIX);
            OwnFolder _ = OwnFolder.create(root, PREFIX)) {
          Path lock = folder.path().resolve("lock");
          if (!Files.exists(lock)) {
            throw new IllegalStateException(lock + " is in use, and somebody has removed it");
          }
        }
      }
    }
  }

  /// Sweeps once for each byte that it reads.
  static final class Sweeper {
    public static void main(String[] root) throws Exception {
      while (System.in.read() >= 0) {
        OwnFolder.sweep(Path.of(root[0]), PREFIX);
        IO.print('.');
        System.out.flush();
      }
    }
  }

  /// None hides what was left from the other one, nor keeps it from removing it.
  @Test
  void sweep_whileAnotherSweeps_leavesNothing() throws Exception {
    Process other =
        new ProcessBuilder(java(Sweeper.class))
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    try (var go = other.getOutputStream();
        var done = other.getInputStream()) {
      for (int i = 0; i < 40; i++) {
        Path left = leftFolder();
        go.write('\n');
        go.flush();
        OwnFolder.sweep(root, PREFIX);
        // the other one may be just about to remove the folder itself
        assertThat(left.resolve("inner")).as("in round %d", i).doesNotExist();
        assertThat(left.resolve("lock")).as("in round %d", i).doesNotExist();
        assertThat(done.read()).isEqualTo('.');
        assertThat(root).isEmptyDirectory();
      }
    } finally {
      other.destroyForcibly();
    }
  }

  /// Whoever cleans up looks at every folder, at one too that is just being made.
  @Test
  void sweep_whileAnotherProcessComesAndGoes_nobodyLosesWhatItHas() throws Exception {
    Process comer = new ProcessBuilder(java(Comer.class)).inheritIO().start();
    try {
      long endNs = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
      while (comer.isAlive() && System.nanoTime() - endNs < 0) {
        OwnFolder.sweep(root, PREFIX);
      }
      assertThat(comer.isAlive()).isFalse();
      assertThat(comer.exitValue()).isZero();
    } finally {
      comer.destroyForcibly();
    }
    assertThat(root).isEmptyDirectory();
  }
}
