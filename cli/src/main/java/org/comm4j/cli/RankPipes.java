package org.comm4j.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.comm4j.core.session.OwnFolder;

/// Named pipes that the ranks of a launcher write to, two for each, so that every rank's output
/// stays whole and apart from the others', and comes as soon as it is written.
///
/// What launchers offer for that does not: Open MPI 4's `--tag-output` drops output (what its tags
/// push out of a block of 8 KiB), Hydra's `-prepend-rank` puts ranks into the middle of lines.
final class RankPipes implements AutoCloseable {

  private final OwnFolder folder;
  private final int ranks;
  private final SharedStream err;
  private final List<RankOutput> readers = new ArrayList<>();

  private RankPipes(OwnFolder folder, int ranks, SharedStream err) {
    this.folder = folder;
    this.ranks = ranks;
    this.err = err;
  }

  /// @param err where the ranks' standard error goes
  static RankPipes make(int ranks, SharedStream err) throws InterruptedException {
    try {
      var pipes = new RankPipes(LaunchFolder.create(), ranks, err);
      var command = new ArrayList<>(List.of("mkfifo", "-m", "600"));
      pipes.files().stream().map(File::toString).forEach(command::add);
      var make = new ProcessBuilder(command).redirectErrorStream(true).start();
      String message = new String(make.getInputStream().readAllBytes(), UTF_8);
      if (make.waitFor() != 0) {
        pipes.folder.close();
        throw new IOException(message.strip());
      }
      return pipes;
    } catch (IOException e) {
      throw new UncheckedIOException("no pipes for the output of ranks: " + e.getMessage(), e);
    }
  }

  private File file(int rank, String stream) {
    return folder.path().resolve(rank + "." + stream).toFile();
  }

  private List<File> files() {
    List<File> files = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      files.add(file(rank, "out"));
      files.add(file(rank, "err"));
    }
    return files;
  }

  /// A command that writes to the pipes of its rank; where that is not known, or has no pipes here,
  /// to where the launcher lets it. Only rank 0 reads the standard input: no two can share a
  /// terminal. Descriptor 7 keeps the launcher's own stream open, since Open MPI forwards no input
  /// to whoever has closed its output. The launcher sees the command's words quoted: to those of
  /// MPI a `:` is where another program begins.
  ///
  /// @param rankVariable where the rank is
  List<String> command(String rankVariable, List<String> command) {
    String script =
        """
        rank=${%s-}; to=$1/$rank; shift
        eval "set -- $*"
        [ "$rank" = 0 ] || exec </dev/null
        [ -p "$to.out" ] || exec "$@"
        exec "$@" 7>&2 >"$to.out" 2>"$to.err"
        """
            .formatted(rankVariable);
    List<String> whole =
        new ArrayList<>(List.of("sh", "-c", script, "comm-cli", folder.path().toString()));
    command.stream().map(RankPipes::quoted).forEach(whole::add);
    return whole;
  }

  private static String quoted(String word) {
    return "'" + word.replace("'", "'\\''") + "'";
  }

  /// Starts copying.
  ///
  /// @param labels whether each line says which rank wrote it
  void copy(SharedStream out, boolean labels) {
    for (int rank = 0; rank < ranks; rank++) {
      String label = labels ? "[" + rank + "] " : "";
      readers.add(RankOutput.copy(file(rank, "out"), out, label));
      readers.add(RankOutput.copy(file(rank, "err"), err, label));
    }
  }

  /// Waits until everything is copied that the ranks wrote, which have ended, and deletes the
  /// pipes.
  @Override
  public void close() {
    try {
      for (File file : files()) {
        if (file.exists()) {
          new RandomAccessFile(file, "rw").close(); // wakes whoever waits for a writer
        }
      }
      RankOutput.await(readers, err);
    } catch (IOException _) {
      // its reader is a daemon
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
    } finally {
      folder.close(); // who has opened a pipe is not concerned
    }
  }
}
