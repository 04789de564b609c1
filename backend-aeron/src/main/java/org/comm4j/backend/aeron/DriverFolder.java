package org.comm4j.backend.aeron;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.comm4j.api.TransportFailedException;
import org.jspecify.annotations.Nullable;

/// A folder of a media driver's own, which nobody else may enter, with a lock in it that says that
/// its process lives. What a killed process has left, the others remove when they end, or who
/// started them ([AeronProvider#removeRemains]), or the next one that begins.
final class DriverFolder implements AutoCloseable {
  /// Against too little space.
  static final String REMEDY =
      "free some, make it larger (with Docker --shm-size) or lower COMM_AERON_TERM";

  private static final String PREFIX = "comm4j-aeron-";
  private static final String LOCK = "lock";
  private static final String BEGINNING = "lock.new";
  private static final Set<PosixFilePermission> OWNER_ONLY =
      PosixFilePermissions.fromString("rwx------");
  private static final Duration STARTING = Duration.ofMinutes(1);

  /// Of this process: its locks would be lost if it looked at them.
  private static final Set<Path> OWN = ConcurrentHashMap.newKeySet();

  private static final AtomicBoolean WATCHED = new AtomicBoolean();
  private static final int TRIES = 10;

  private final Path root;
  private final Path path;
  private final FileChannel channel;
  private final FileLock lock;

  private DriverFolder(Path root, Path path, FileChannel channel, FileLock lock) {
    this.root = root;
    this.path = path;
    this.channel = channel;
    this.lock = lock;
  }

  /// Where such folders are: in memory, where there is such a place.
  static Path root() {
    Path shared = Path.of("/dev/shm");
    return Files.isDirectory(shared) && Files.isWritable(shared)
        ? shared
        : Path.of(System.getProperty("java.io.tmpdir"));
  }

  static DriverFolder create(Path root) {
    sweep(root);
    Path path = root.resolve(PREFIX + UUID.randomUUID());
    OWN.add(path); // before it is there, so that no thread of this process ever looks into it
    try {
      Files.createDirectory(path, PosixFilePermissions.asFileAttribute(OWNER_ONLY));
      if (WATCHED.compareAndSet(false, true)) {
        Runtime.getRuntime().addShutdownHook(new Thread(DriverFolder::removeOwn, "comm4j-aeron"));
      }
      return locked(root, path);
    } catch (IOException e) {
      remove(path);
      OWN.remove(path);
      throw new TransportFailedException(
          "no folder for the media driver in %s: %s; %s".formatted(root, e, REMEDY), e);
    }
  }

  /// The lock gets its name when it is locked: an unlocked one of that name is a dead process's.
  private static DriverFolder locked(Path root, Path path) throws IOException {
    Path beginning = path.resolve(BEGINNING);
    FileChannel channel =
        FileChannel.open(beginning, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    try {
      FileLock lock = channel.lock();
      Files.move(beginning, path.resolve(LOCK), StandardCopyOption.ATOMIC_MOVE);
      return new DriverFolder(root, path, channel, lock);
    } catch (IOException e) {
      channel.close();
      throw e;
    }
  }

  /// Where the driver's files go; does not exist yet.
  Path driver() {
    return path.resolve("driver");
  }

  @Override
  public void close() {
    remove(path);
    OWN.remove(path);
    try {
      lock.release();
      channel.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    sweep(root); // peers may have been killed
  }

  /// When the JVM is ended by a signal, or exits with communicators open.
  private static void removeOwn() {
    List<Path> roots = OWN.stream().map(Path::getParent).distinct().toList();
    for (int i = 0; i < TRIES && OWN.stream().anyMatch(Files::exists); i++) {
      OWN.forEach(DriverFolder::remove); // again, if a driver was just writing there
    }
    roots.forEach(DriverFolder::sweep); // peers may have been killed
  }

  /// Removes what killed processes have left.
  static void sweep(Path root) {
    try (DirectoryStream<Path> left = Files.newDirectoryStream(root, PREFIX + "*")) {
      for (Path each : left) {
        if (!OWN.contains(each) && isOfThisUser(each) && isAbandoned(each)) {
          remove(each);
        }
      }
    } catch (IOException e) {
      // whoever may look there will remove it
    }
  }

  /// Whether it is a folder that nobody else can have put anything into.
  private static boolean isOfThisUser(Path folder) {
    try {
      int self = (Integer) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
      int owner = (Integer) Files.getAttribute(folder, "unix:uid", LinkOption.NOFOLLOW_LINKS);
      return owner == self
          && Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)
          && Files.getPosixFilePermissions(folder, LinkOption.NOFOLLOW_LINKS).equals(OWNER_ONLY);
    } catch (IOException | UnsupportedOperationException e) {
      return false;
    }
  }

  private static boolean isAbandoned(Path folder) {
    Path file = folder.resolve(LOCK);
    try {
      if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
        Instant made = Files.getLastModifiedTime(folder).toInstant();
        return made.isBefore(Instant.now().minus(STARTING));
      }
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE);
          FileLock taken = tryLock(channel)) {
        return taken != null;
      }
    } catch (IOException e) {
      return false; // somebody removes it at the same time
    }
  }

  private static @Nullable FileLock tryLock(FileChannel channel) throws IOException {
    try {
      return channel.tryLock();
    } catch (OverlappingFileLockException e) {
      return null;
    }
  }

  private static void remove(Path folder) {
    try {
      Files.walkFileTree(
          folder,
          new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
                throws IOException {
              Files.deleteIfExists(file);
              return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path each, @Nullable IOException failure)
                throws IOException {
              Files.deleteIfExists(each);
              return FileVisitResult.CONTINUE;
            }
          });
    } catch (IOException e) {
      // another process removes it at the same time
    }
  }
}
