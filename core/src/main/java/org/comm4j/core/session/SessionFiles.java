package org.comm4j.core.session;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.comm4j.api.CommConfig;
import org.comm4j.api.JoinException;

/// The files in which ranks of this user meet that have no address ([FileSession]), for who looks
/// after a host. The last rank of a session removes its file; where all are killed at once, by
/// Ctrl-C at an `mpirun` for example, it stays.
public final class SessionFiles {
  /// How long a process may take from making its file to having a lock on it.
  private static final Duration STARTING = Duration.ofMinutes(1);

  private SessionFiles() {}

  /// Those that nobody alive has locked.
  ///
  /// @param directory of this user alone; it may be absent
  public static List<Path> abandoned(Path directory) {
    List<Path> abandoned = new ArrayList<>();
    try {
      LogFile.checkDirectory(directory);
      try (DirectoryStream<Path> files =
          Files.newDirectoryStream(directory, "*" + FileSession.ENDING)) {
        for (Path file : files) {
          Instant made = Files.getLastModifiedTime(file).toInstant();
          if (made.isBefore(Instant.now().minus(STARTING)) && LogFile.isAbandoned(file)) {
            abandoned.add(file);
          }
        }
      }
    } catch (IOException | DirectoryIteratorException _) {
      // there is none, or it is not ours; or somebody removes a file at the same time
    }
    return abandoned;
  }

  /// Removes them, and our own directory if nothing else is in it.
  ///
  /// @param config says where sessions of this user are
  public static void sweep(CommConfig config) {
    try {
      Path directory = DefaultSessionFactory.directory(config);
      List<Path> abandoned = abandoned(directory);
      if (!abandoned.isEmpty()) {
        abandoned.forEach(LogFile::reap);
        if (directory.equals(FileSession.defaultDirectory())) { // another one is its owner's
          Files.deleteIfExists(directory);
        }
      }
    } catch (IOException | JoinException _) {
      // there are others, or no place for any
    }
  }
}
