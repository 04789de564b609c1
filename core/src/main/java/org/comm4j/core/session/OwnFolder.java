package org.comm4j.core.session;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// A folder of this process's own for a while, which only its user may enter. It is removed when it
/// is closed, or else when this JVM ends, by a signal too; beside its shutdown hooks, or after them
/// ([#keepUntilTheEnd]). A lock in it says that its process lives: what a killed one has left,
/// others [#sweep].
///
/// A POSIX lock is gone when its process closes *any* channel of the file, so no process probes a
/// lock of its own. Whoever probes another process's lock takes it for that moment, shared, so that
/// two that probe it at once do not take each other for its owner. The file is called `lock` only
/// once its process holds it. Thread-safe.
public final class OwnFolder implements AutoCloseable {
  private static final String LOCK = "lock";
  private static final String BEGINNING = "lock.new";
  private static final Set<PosixFilePermission> OWNER_ONLY =
      PosixFilePermissions.fromString("rwx------");

  /// How long a process may take from making its folder to having the lock.
  private static final Duration STARTING = Duration.ofMinutes(1);

  private static final int TRIES = 10;

  /// Those of this JVM, which has one end for all of them; it guards what is static here.
  private static final Set<Path> OWN = new HashSet<>();

  /// Those of them that shutdown hooks may use.
  private static final Set<Path> UNTIL_THE_END = new HashSet<>();

  /// Where this JVM has ever had one.
  private static final Set<Place> PLACES = new HashSet<>();

  private static boolean isWatched;
  private static boolean isEnding;

  private record Place(Path root, String prefix) {}

  private final Path path;
  private final FileChannel lock;

  private OwnFolder(Path path, FileChannel lock) {
    this.path = path;
    this.lock = lock;
  }

  /// {@return where those are that should be in memory: there, if there is such a place}
  public static Path root() {
    Path shared = Path.of("/dev/shm");
    return Files.isWritable(shared) ? shared : temporary();
  }

  /// {@return the same, but the folder for temporary files where that alone has so much space}
  ///
  /// @param bytes that are wanted
  public static Path root(long bytes) {
    Path root = root();
    return usableBytes(root) < bytes && usableBytes(temporary()) >= bytes ? temporary() : root;
  }

  /// {@return the folder for temporary files}
  public static Path temporary() {
    return Path.of(System.getProperty("java.io.tmpdir"));
  }

  /// {@return how much space there is for this user}
  ///
  /// @param place a folder; one of which the system says nothing has none
  public static long usableBytes(Path place) {
    try {
      return Files.getFileStore(place).getUsableSpace();
    } catch (IOException e) {
      return 0;
    }
  }

  /// Makes one.
  ///
  /// @param root where
  /// @param prefix of its name, the same for all that are swept together
  /// @return the caller closes it
  /// @throws IOException if that is not possible, or the JVM is ending
  public static OwnFolder create(Path root, String prefix) throws IOException {
    synchronized (OWN) { // or a signal could come between making a folder and noting it
      watch();
      PLACES.add(new Place(root, prefix));
      Path path = Files.createTempDirectory(root, prefix);
      OWN.add(path);
      try {
        return new OwnFolder(path, lock(path));
      } catch (IOException e) {
        OWN.remove(path);
        Files.deleteIfExists(path.resolve(BEGINNING)); // a walk would open files: one too many
        Files.deleteIfExists(path);
        throw e;
      }
    }
  }

  private static void watch() throws IOException {
    try {
      if (!isWatched) {
        Runtime.getRuntime().addShutdownHook(new Thread(OwnFolder::end, "comm4j-folders"));
        isWatched = true;
      }
    } catch (IllegalStateException e) {
      isEnding = true;
    }
    if (isEnding) {
      throw new IOException("this JVM is ending, and makes no folder any more");
    }
  }

  /// What others have left is removed too: what this one is part of may have been killed before.
  private static void end() {
    synchronized (OWN) {
      isEnding = true;
      UNTIL_THE_END.forEach(OwnFolder::removeAfterHooks);
      removeAll(path -> !UNTIL_THE_END.contains(path));
      PLACES.forEach(place -> sweep(place.root, place.prefix));
    }
  }

  private static FileChannel lock(Path folder) throws IOException {
    Path beginning = folder.resolve(BEGINNING);
    FileChannel channel =
        FileChannel.open(beginning, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    try {
      var _ =
          tryLock(channel, false); // without locks in this file system nobody can probe it either
      Files.move(beginning, folder.resolve(LOCK), StandardCopyOption.ATOMIC_MOVE);
      return channel;
    } catch (IOException e) {
      channel.close();
      throw e;
    }
  }

  private static boolean tryLock(FileChannel channel, boolean shared) {
    try {
      return channel.tryLock(0, Long.MAX_VALUE, shared) != null;
    } catch (IOException | OverlappingFileLockException e) {
      return false;
    }
  }

  /// {@return the folder}
  public Path path() {
    return path;
  }

  /// Keeps it until this JVM ends, as long as shutdown hooks run: those of whoever uses what is in
  /// it, or waits for a process that does. Closing it does nothing any more. What is put into it by
  /// a hook may be left.
  public void keepUntilTheEnd() {
    synchronized (OWN) {
      UNTIL_THE_END.add(path);
    }
  }

  @Override
  public void close() {
    synchronized (OWN) {
      if (UNTIL_THE_END.contains(path)) {
        return;
      }
      remove(path);
      OWN.remove(path);
    }
    try {
      lock.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Removes what killed processes of this user have left.
  ///
  /// @param root where
  /// @param prefix of their names
  public static void sweep(Path root, String prefix) {
    synchronized (OWN) {
      abandoned(root, prefix).forEach(OwnFolder::remove);
    }
  }

  /// What killed processes of this user have left.
  ///
  /// @param root where
  /// @param prefix of their names
  public static List<Path> abandoned(Path root, String prefix) {
    List<Path> abandoned = new ArrayList<>();
    synchronized (OWN) {
      try (DirectoryStream<Path> folders = Files.newDirectoryStream(root, prefix + "*")) {
        for (Path each : folders) {
          if (!OWN.contains(each) && isOfThisUser(each) && isAbandoned(each)) {
            abandoned.add(each);
          }
        }
      } catch (IOException | DirectoryIteratorException _) {
        // whoever may look there will remove it
      }
    }
    return abandoned;
  }

  /// {@return whether it is a folder that nobody else can have put anything into: this user's, and
  /// no other may enter it}
  ///
  /// @param folder that may not be there
  public static boolean isOfThisUser(Path folder) {
    try {
      Object owner = Files.getAttribute(folder, "unix:uid", LinkOption.NOFOLLOW_LINKS);
      return owner.equals(LocalHost.uid())
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
      try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
        return tryLock(channel, true);
      }
    } catch (IOException e) {
      return false; // somebody removes it at the same time
    }
  }

  /// Removes all of this JVM, which is ending: for who halts it, which runs no shutdown hooks.
  public static void removeAll() {
    synchronized (OWN) {
      isEnding = true;
      removeAll(_ -> true);
    }
  }

  private static void removeAll(Predicate<Path> which) {
    List<Path> folders = OWN.stream().filter(which).toList();
    for (int i = 0; i < TRIES && folders.stream().anyMatch(Files::exists); i++) {
      folders.forEach(OwnFolder::remove); // again, if somebody was just writing there
    }
  }

  /// The JVM deletes what is noted for its end once all shutdown hooks have run, what came last
  /// first.
  private static void removeAfterHooks(Path folder) {
    try (Stream<Path> files = Files.walk(folder)) {
      files.forEach(file -> file.toFile().deleteOnExit());
    } catch (IOException | UncheckedIOException _) {
      // it was deleted before, or the system does it
    }
  }

  /// The lock goes last: without one a folder is taken for one that is just being made.
  private static void remove(Path folder) {
    Path lock = folder.resolve(LOCK);
    try {
      Files.walkFileTree(folder, new Removing(Set.of(folder, lock)));
      Files.deleteIfExists(lock);
      Files.deleteIfExists(folder);
    } catch (IOException _) {
      // somebody is just writing there, or the system does it
    }
  }

  /// Removes what it visits, which another process may do at the same time.
  private static final class Removing extends SimpleFileVisitor<Path> {
    private final Set<Path> kept;

    Removing(Set<Path> kept) {
      this.kept = kept;
    }

    @Override
    public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
      return removed(file);
    }

    @Override
    public FileVisitResult postVisitDirectory(Path folder, @Nullable IOException failure)
        throws IOException {
      return failure == null ? removed(folder) : visitFileFailed(folder, failure);
    }

    private FileVisitResult removed(Path file) throws IOException {
      if (!kept.contains(file)) {
        Files.deleteIfExists(file);
      }
      return FileVisitResult.CONTINUE;
    }

    @Override
    public FileVisitResult visitFileFailed(Path file, IOException failure) throws IOException {
      if (failure instanceof NoSuchFileException) {
        return FileVisitResult.CONTINUE;
      }
      throw failure; // too many files are open, say, and the lock must not go before the rest
    }
  }
}
