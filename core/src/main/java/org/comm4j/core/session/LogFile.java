package org.comm4j.core.session;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// A file that processes of one user append to in turns, and whose locks tell who is alive.
///
/// Locks are bytes far behind the data: one for the turn, one for each rank, held as long as the
/// rank lives. The kernel gives them up when a process dies, however it dies. These locks (POSIX)
/// belong to the process, and all of them are lost when the process closes any descriptor of the
/// file. So a process opens a file once, whoever of its threads uses it: there is one object for
/// each file. Only threads that are never interrupted may use it, since an interrupt would close
/// the channel.
final class LogFile {
  private static final Set<PosixFilePermission> OWNER_ONLY_FILE =
      PosixFilePermissions.fromString("rw-------");
  private static final Set<PosixFilePermission> OWNER_ONLY_DIRECTORY =
      PosixFilePermissions.fromString("rwx------");

  /// Where the locks are; no data comes so far.
  private static final long LOCKS = 1L << 40;

  /// The files that this process has open. Guarded by itself.
  private static final Map<Object, LogFile> OPEN = new HashMap<>();

  private final Path path;
  private final Object key;
  private final FileChannel channel;
  private final ReentrantLock turn = new ReentrantLock();
  private final Map<Integer, FileLock> rankLocks = new HashMap<>();
  private int users;
  private @Nullable FileLock turnLock;

  private LogFile(Path path, Object key, FileChannel channel) {
    this.path = path;
    this.key = key;
    this.channel = channel;
  }

  /// Makes a directory that is this user's alone, or sees that it is.
  ///
  /// @return whether it was made
  /// @throws IOException if it is someone else's, or open to others
  static boolean requireDirectory(Path directory) throws IOException {
    boolean isNew = false;
    try {
      Files.createDirectory(directory, permissions(OWNER_ONLY_DIRECTORY));
      isNew = true;
    } catch (FileAlreadyExistsException e) {
      // Then it is checked.
    }
    checkDirectory(directory);
    return isNew;
  }

  /// Sees that a directory is this user's alone.
  ///
  /// @throws IOException if it is not there, someone else's, or open to others
  static void checkDirectory(Path directory) throws IOException {
    BasicFileAttributes attributes =
        Files.readAttributes(directory, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    if (!attributes.isDirectory()) {
      throw new IOException(directory + " is no directory");
    }
    requireOwn(directory, OWNER_ONLY_DIRECTORY);
  }

  private static void requireOwn(Path path, Set<PosixFilePermission> permissions)
      throws IOException {
    int owner = (Integer) Files.getAttribute(path, "unix:uid", LinkOption.NOFOLLOW_LINKS);
    if (owner != LocalHost.uid()) {
      throw new IOException(
          "%s belongs to user %d (expected: user %d)".formatted(path, owner, LocalHost.uid()));
    }
    Set<PosixFilePermission> actual =
        Files.getPosixFilePermissions(path, LinkOption.NOFOLLOW_LINKS);
    if (!permissions.containsAll(actual)) {
      throw new IOException(
          "%s is open to others: %s (expected: %s)"
              .formatted(
                  path,
                  PosixFilePermissions.toString(actual),
                  PosixFilePermissions.toString(permissions)));
    }
  }

  /// Opens a file, which is made if it is not there.
  ///
  /// @return null if it changed meanwhile: try again
  static @Nullable LogFile open(Path path) throws IOException {
    synchronized (OPEN) {
      Object key = key(path);
      if (key == null) {
        create(path);
        key = key(path);
      }
      LogFile open = key == null ? null : OPEN.get(key);
      if (open == null && key != null) {
        open = openExisting(path, key);
      }
      if (open != null) {
        open.users++;
      }
      return open;
    }
  }

  /// Makes an empty file, and does not keep it open: until somebody has a lock on it another
  /// process may remove it as abandoned, and a third one make another file, whose identity would be
  /// taken for that of this one.
  private static void create(Path path) throws IOException {
    try {
      FileChannel.open(
              path,
              Set.of(
                  StandardOpenOption.CREATE_NEW,
                  StandardOpenOption.WRITE,
                  LinkOption.NOFOLLOW_LINKS),
              permissions(OWNER_ONLY_FILE))
          .close();
    } catch (FileAlreadyExistsException e) {
      // Then that one is opened.
    }
  }

  private static @Nullable LogFile openExisting(Path path, Object key) throws IOException {
    try {
      FileChannel channel =
          FileChannel.open(
              path, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
      return register(path, key, channel);
    } catch (NoSuchFileException e) {
      return null;
    }
  }

  private static @Nullable LogFile register(Path path, Object key, FileChannel channel)
      throws IOException {
    boolean keep = false;
    try {
      if (!key.equals(key(path))) {
        return null;
      }
      requireOwn(path, OWNER_ONLY_FILE);
      var file = new LogFile(path, key, channel);
      OPEN.put(key, file);
      keep = true;
      return file;
    } finally {
      if (!keep) {
        channel.close();
      }
    }
  }

  /// What tells one file from another, or null if there is none.
  private static @Nullable Object key(Path path) throws IOException {
    try {
      BasicFileAttributes attributes =
          Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
      if (!attributes.isRegularFile()) {
        throw new IOException(path + " is not a file");
      }
      return attributes.fileKey();
    } catch (NoSuchFileException e) {
      return null;
    }
  }

  private static FileAttribute<Set<PosixFilePermission>> permissions(
      Set<PosixFilePermission> permissions) {
    return PosixFilePermissions.asFileAttribute(permissions);
  }

  /// Removes files of a directory that nobody alive has locks on.
  ///
  /// @param ending of the names of such files
  static void reap(Path directory, String ending) throws IOException {
    try (DirectoryStream<Path> paths = Files.newDirectoryStream(directory, "*" + ending)) {
      for (Path path : paths) {
        reap(path);
      }
    }
  }

  /// Removes a file if nobody alive has locks on it.
  static void reap(Path path) {
    ifAbandoned(path, Files::delete);
  }

  /// Whether nobody alive has locks on a file of this user's.
  static boolean isAbandoned(Path path) {
    return ifAbandoned(path, _ -> {});
  }

  private interface Action {
    void on(Path path) throws IOException;
  }

  private static boolean ifAbandoned(Path path, Action action) {
    synchronized (OPEN) {
      try {
        Object key = key(path);
        if (key == null || OPEN.containsKey(key)) {
          return false; // ours: to open it once more would cost us our locks
        }
        try (FileChannel channel =
                FileChannel.open(
                    path,
                    StandardOpenOption.READ,
                    StandardOpenOption.WRITE,
                    LinkOption.NOFOLLOW_LINKS);
            FileLock everything = channel.tryLock()) {
          if (everything == null || !key.equals(key(path)) || !isOurs(channel)) {
            return false;
          }
          action.on(path);
          return true;
        }
      } catch (IOException | OverlappingFileLockException e) {
        return false; // Someone else's, or gone: not ours to remove.
      }
    }
  }

  /// Whether it begins as a session's file does, or is empty: made, and not yet begun.
  private static boolean isOurs(FileChannel channel) throws IOException {
    ByteBuffer start = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.nativeOrder());
    int read = channel.read(start, 0);
    return read < 0 || (read == Long.BYTES && start.getLong(0) == FileSession.MAGIC);
  }

  FileChannel channel() {
    return channel;
  }

  /// Whether others who open the path get this file.
  boolean isLinked() throws IOException {
    return key.equals(key(path));
  }

  /// Removes the file for those who come now; who has it open goes on.
  void unlink() throws IOException {
    if (isLinked()) {
      Files.delete(path);
    }
  }

  /// Takes the turn if nobody has it.
  boolean tryTurn() throws IOException {
    if (!turn.tryLock()) {
      return false;
    }
    boolean taken = false;
    try {
      turnLock = tryLock(0, false);
      taken = turnLock != null;
    } finally {
      if (!taken) {
        turn.unlock();
      }
    }
    return taken;
  }

  /// Ends the turn.
  void endTurn() throws IOException {
    try {
      FileLock lock = turnLock;
      turnLock = null;
      if (lock != null) {
        lock.release();
      }
    } finally {
      turn.unlock();
    }
  }

  /// Shows from now on that a rank is alive.
  boolean lockRank(int rank) throws IOException {
    synchronized (rankLocks) {
      if (rankLocks.containsKey(rank)) {
        return false;
      }
      FileLock lock = tryLock(1L + rank, false);
      if (lock != null) {
        rankLocks.put(rank, lock);
      }
      return lock != null;
    }
  }

  void unlockRank(int rank) throws IOException {
    synchronized (rankLocks) {
      FileLock lock = rankLocks.remove(rank);
      if (lock != null) {
        lock.release();
      }
    }
  }

  /// Whether a rank is alive, as far as its lock tells.
  boolean isAlive(int rank) throws IOException {
    synchronized (rankLocks) {
      if (rankLocks.containsKey(rank)) {
        return true;
      }
      try (FileLock free = tryLock(1L + rank, true)) {
        return free == null;
      }
    }
  }

  /// Whether any rank is alive, as far as locks tell; in the own turn, since nobody comes in it.
  boolean isAnyoneAlive() throws IOException {
    synchronized (rankLocks) {
      if (!rankLocks.isEmpty()) {
        return true;
      }
      try (FileLock free = tryLock(1, FrameCodec.MAX_RANKS, true)) {
        return free == null;
      }
    }
  }

  private @Nullable FileLock tryLock(long index, boolean shared) throws IOException {
    return tryLock(index, 1, shared);
  }

  private @Nullable FileLock tryLock(long index, long count, boolean shared) throws IOException {
    try {
      return channel.tryLock(LOCKS + index, count, shared);
    } catch (OverlappingFileLockException e) {
      return null;
    }
  }

  void read(ByteBuffer into, long position) throws IOException {
    long at = position;
    while (into.hasRemaining()) {
      int bytes = channel.read(into, at);
      if (bytes < 0) {
        throw new IOException(path + " is shorter than it says");
      }
      at += bytes;
    }
  }

  void write(ByteBuffer from, long position) throws IOException {
    long at = position;
    while (from.hasRemaining()) {
      at += channel.write(from, at);
    }
  }

  /// Gives it up; the last one who does closes it.
  void close() {
    synchronized (OPEN) {
      users--;
      if (users == 0) {
        OPEN.remove(key);
        try {
          channel.close();
        } catch (IOException e) {
          // The descriptor is freed all the same.
        }
      }
    }
  }
}
