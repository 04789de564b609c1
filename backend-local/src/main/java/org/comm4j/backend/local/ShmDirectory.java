package org.comm4j.backend.local;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.core.session.LocalHost;

/// The names of a session's files, for the moment until every rank has mapped them:
///
///     /dev/shm/comm4j-<uid>/<session>/rank-3                  the memory
///     /dev/shm/comm4j-<uid>/<session>/rank-3-<process>.lock   locked by its process while it lives
///     /dev/shm/comm4j-<uid>/<session>/rank-3-<process>.new    the same, not locked yet
///
/// Both directories are ours alone (0700, checked after they are there, never changed), so nobody
/// else can put anything into them. A process that is killed in that moment leaves names behind. The
/// next one to start removes them: a session is dead when all its locks are free.
///
/// A POSIX lock belongs to a process and is gone when the process closes *any* channel of the file.
/// So no process ever probes a lock of its own: names tell whose they are. And who probes one of
/// another process holds it for that moment, so a lock gets its name when its process has it.
final class ShmDirectory implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger(ShmDirectory.class.getName());
  private static final String LOCK = ".lock";
  private static final String NEW = ".new";
  private static final String SESSION = "[0-9a-f]{16,32}";
  private static final int TYPE_MASK = 0xF000;
  private static final int DIRECTORY = 0x4000;
  private static final int PERMISSIONS_MASK = 0x1FF;
  private static final int OWNER_ONLY = 0x1C0;
  private static final int ATTEMPTS = 100;

  /// How long a start may be delayed by what others have left.
  private static final long REAP_NANOS = 100_000_000;

  /// How long a process may take from making its session's directory to having a lock there.
  private static final long STARTING_MILLIS = 10_000;

  private static final Set<OpenOption> CREATE =
      Set.of(StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW, LinkOption.NOFOLLOW_LINKS);

  private final Path base;
  private final Path directory;
  private final int rank;
  private final Path lockFile;
  private final FileChannel lock;

  private ShmDirectory(Path base, Path directory, int rank, Path lockFile, FileChannel lock) {
    this.base = base;
    this.directory = directory;
    this.rank = rank;
    this.lockFile = lockFile;
    this.lock = lock;
  }

  /// Makes the directories where they are not there yet, and takes this rank's lock.
  ///
  /// @param root where, `/dev/shm` but for tests
  /// @throws BackendUnavailableException if there is no such place, or a directory is there that is
  ///   not ours alone
  static ShmDirectory enter(Path root, String session, int rank) throws IOException {
    if (!Files.isDirectory(root)) {
      throw new BackendUnavailableException("shm", root + " is not there", remedyWithout(root));
    }
    Path base = base(root);
    if (rank == 0) {
      reap(base, REAP_NANOS);
    }
    Path directory = base.resolve(session);
    String name = "rank-" + rank + "-" + thisProcess();
    Path lockFile = directory.resolve(name + LOCK);
    NoSuchFileException last = null;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        makeOwn(base);
        makeOwn(directory);
        FileChannel lock = lock(directory.resolve(name + NEW), lockFile);
        return new ShmDirectory(base, directory, rank, lockFile, lock);
      } catch (NoSuchFileException e) {
        last = e; // somebody removed a directory that had no lock yet
      } catch (IOException e) {
        deleteIfEmpty(directory);
        deleteIfEmpty(base);
        throw e;
      }
    }
    throw new IOException("%s vanished again and again".formatted(directory), last);
  }

  /// What to do where there is no such place.
  static String remedyWithout(Path root) {
    return "as root: mount -m -t tmpfs tmpfs " + root;
  }

  /// Where this user's sessions are.
  static Path base(Path root) throws IOException {
    return root.resolve("comm4j-" + LocalHost.uid());
  }

  /// Where a rank's memory is.
  Path file(int peer) {
    return directory.resolve("rank-" + peer);
  }

  /// Removes what this rank has made, and the directories after the last one has. Idempotent.
  @Override
  public void close() throws IOException {
    Files.deleteIfExists(file(rank));
    Files.deleteIfExists(lockFile);
    lock.close();
    deleteIfEmpty(directory);
    deleteIfEmpty(base);
  }

  /// Removes what ranks of this session that have died have left.
  void reapRemains() throws IOException {
    reapSession(directory, thisProcess());
    deleteIfEmpty(base);
  }

  /// Removes what dead sessions have left.
  ///
  /// @param nanos when to leave the rest to the next one; one is always removed
  /// @return how many there were
  static int reap(Path base, long nanos) throws IOException {
    List<Path> sessions;
    try {
      checkOwn(base);
      sessions = list(base);
    } catch (NoSuchFileException e) {
      return 0; // not there yet, or not any more
    }
    String self = thisProcess();
    long start = System.nanoTime();
    int reaped = 0;
    for (Path session : sessions) {
      if (reaped > 0 && System.nanoTime() - start > nanos) {
        break;
      }
      if (session.getFileName().toString().matches(SESSION) && tryReap(session, self)) {
        LOG.log(System.Logger.Level.DEBUG, "removed {0}, left by processes that died", session);
        reaped++;
      }
    }
    return reaped;
  }

  /// What can't be removed is no reason for the sessions of today to fail.
  private static boolean tryReap(Path session, String self) {
    try {
      return reapSession(session, self);
    } catch (IOException | DirectoryIteratorException e) {
      LOG.log(
          System.Logger.Level.WARNING,
          "{0}, left by processes that died, can''t be removed ({1}); remove it",
          session,
          e);
      return false;
    }
  }

  /// Others may look at the same locks meanwhile, and remove the same.
  private static boolean reapSession(Path session, String self) throws IOException {
    var locks = new ArrayList<FileChannel>();
    try {
      List<Path> files = list(session);
      for (Path file : files) {
        if (file.toString().endsWith(LOCK) && !isDead(file, self, locks)) {
          return false;
        }
      }
      if (locks.isEmpty() && isStarting(session)) {
        return false;
      }
      for (Path file : files) {
        Files.deleteIfExists(file);
      }
      return deleteIfEmpty(session);
    } catch (NoSuchFileException e) {
      return false; // another process was faster
    } finally {
      for (FileChannel each : locks) {
        each.close();
      }
    }
  }

  private static boolean isDead(Path lockFile, String self, List<FileChannel> locks)
      throws IOException {
    if (lockFile.toString().endsWith(self + LOCK)) {
      return false;
    }
    var channel = FileChannel.open(lockFile, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS);
    locks.add(channel);
    try {
      return channel.tryLock(0, Long.MAX_VALUE, true) != null;
    } catch (OverlappingFileLockException e) {
      return false; // another thread of this process looks at it too
    }
  }

  private static boolean isStarting(Path session) throws IOException {
    long modified = Files.getLastModifiedTime(session, LinkOption.NOFOLLOW_LINKS).toMillis();
    return System.currentTimeMillis() - modified < STARTING_MILLIS;
  }

  private static FileChannel lock(Path newFile, Path lockFile) throws IOException {
    var ownerOnly =
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    FileChannel channel = FileChannel.open(newFile, CREATE, ownerOnly);
    try {
      if (channel.tryLock() == null) {
        throw new IOException("%s could not be locked".formatted(newFile));
      }
      Files.move(newFile, lockFile, StandardCopyOption.ATOMIC_MOVE);
      return channel;
    } catch (IOException e) {
      Files.deleteIfExists(newFile);
      channel.close();
      throw e;
    }
  }

  private static void makeOwn(Path directory) throws IOException {
    try {
      Files.createDirectory(
          directory,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (FileAlreadyExistsException e) {
      // as usual: another rank was faster
    }
    checkOwn(directory);
  }

  private static void checkOwn(Path directory) throws IOException {
    Map<String, Object> found =
        Files.readAttributes(directory, "unix:uid,mode", LinkOption.NOFOLLOW_LINKS);
    int uid = (Integer) requireNonNull(found.get("uid"));
    int mode = (Integer) requireNonNull(found.get("mode"));
    if (uid != LocalHost.uid()
        || (mode & TYPE_MASK) != DIRECTORY
        || (mode & PERMISSIONS_MASK) != OWNER_ONLY) {
      throw new BackendUnavailableException(
          "shm",
          "%s belongs to user %d and has mode %o (expected: a directory of user %d alone, mode 40700)"
              .formatted(directory, uid, mode, LocalHost.uid()),
          "find out who made it, and remove it");
    }
  }

  private static List<Path> list(Path directory) throws IOException {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory)) {
      var all = new ArrayList<Path>();
      files.forEach(all::add);
      return all;
    }
  }

  private static boolean deleteIfEmpty(Path directory) throws IOException {
    try {
      return Files.deleteIfExists(directory);
    } catch (DirectoryNotEmptyException e) {
      return false;
    }
  }

  /// The number and the start of this process, since numbers come again.
  private static String thisProcess() {
    ProcessHandle self = ProcessHandle.current();
    long start = self.info().startInstant().map(Instant::toEpochMilli).orElse(0L);
    return self.pid() + "-" + start;
  }
}
