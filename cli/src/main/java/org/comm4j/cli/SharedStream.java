package org.comm4j.cli;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/// Standard output or error, to which several ranks write, and `comm-cli` itself. Who writes there
/// while another's line is not finished begins a new one; so every line is of one writer.
/// Thread-safe.
final class SharedStream {
  private final PrintStream to;
  private final CompletableFuture<Void> broken = new CompletableFuture<>();
  private @Nullable Object begun; // whose line is not finished
  private @Nullable Object returned; // who has written last, a carriage return at the end

  SharedStream(PrintStream to) {
    this.to = to;
  }

  PrintStream target() {
    return to;
  }

  /// Completes when it can't be written to: nobody reads it any more, or the disk is full. What is
  /// written then is lost.
  CompletableFuture<Void> broken() {
    return broken;
  }

  /// Writes some of a line, at once: others write there too. A newline belongs to the carriage
  /// return before it, if nobody has written in between.
  ///
  /// @param whose the writer
  /// @param label what its lines begin with
  /// @param piece with an end of line only at its end, if it has one
  synchronized void write(Object whose, String label, byte[] piece) {
    byte[] before = new byte[0];
    boolean endsItsLine = returned == whose && piece.length == 1 && piece[0] == '\n';
    if (begun != whose && !endsItsLine) {
      before = ((begun == null ? "" : "\n") + label).getBytes(StandardCharsets.US_ASCII);
    }
    byte[] whole = new byte[before.length + piece.length];
    System.arraycopy(before, 0, whole, 0, before.length);
    System.arraycopy(piece, 0, whole, before.length, piece.length);
    to.write(whole, 0, whole.length);
    if (to.checkError()) { // which flushes
      broken.complete(null);
    }
    byte last = piece[piece.length - 1];
    begun = last == '\n' || last == '\r' ? null : whose;
    returned = last == '\r' ? whose : null;
  }

  /// Finishes the line of a writer, if it has begun one.
  synchronized void finish(Object whose) {
    if (begun == whose) {
      write(whose, "", new byte[] {'\n'});
    }
  }

  /// Writes a line of `comm-cli`'s own.
  void println(Object line) {
    write(this, "", (line + System.lineSeparator()).getBytes(to.charset()));
  }
}
