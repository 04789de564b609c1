package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.ToIntFunction;
import org.comm4j.api.BackendException;

/// Error codes of the MPI library as exceptions. Every communicator has `MPI_ERRORS_RETURN`, so
/// that each call returns one.
final class Errors {
  private Errors() {}

  /// Throws unless a call went well.
  ///
  /// @param function which one was called, for example `MPI_Allreduce`
  static void check(int code, String function) {
    if (code != Constants.SUCCESS) {
      throw of(code, function);
    }
  }

  /// The exception for a code: its number is the code's class, its text the library's.
  static BackendException of(int code, String function) {
    int errorClass = classOf(code);
    return new BackendException(
        errorClass,
        "%s of %s returned error class %d, code %d: %s"
            .formatted(function, Functions.library().version(), errorClass, code, textOf(code)));
  }

  /// The same error with who made which call; unchanged if it says that already.
  ///
  /// @param call its label
  /// @param communicator its name
  static BackendException inCall(BackendException e, int rank, String call, String communicator) {
    if (e.getCause() instanceof BackendException) {
      return e;
    }
    var named =
        new BackendException(
            e.code(),
            "rank %d, %s of '%s': %s".formatted(rank, call, communicator, e.getMessage()));
    named.initCause(e);
    return named;
  }

  /// Whether a message was longer than its receive.
  static boolean isTruncation(int code) {
    return code != Constants.SUCCESS && classOf(code) == Functions.constants().errTruncate;
  }

  /// {@return the int that a function of the library tells}
  ///
  /// @param question calls the function, which writes it there
  static int ask(String function, ToIntFunction<MemorySegment> question) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment answer = arena.allocate(JAVA_INT);
      check(question.applyAsInt(answer), function);
      return answer.get(JAVA_INT, 0);
    }
  }

  private static int classOf(int code) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment found = arena.allocate(JAVA_INT);
      return Mpi.errorClass(code, found) == Constants.SUCCESS ? found.get(JAVA_INT, 0) : code;
    }
  }

  private static String textOf(int code) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocate(Functions.constants().maxErrorString + 1L);
      MemorySegment length = arena.allocate(JAVA_INT);
      return Mpi.errorString(code, text, length) == Constants.SUCCESS
          ? text.getString(0).strip()
          : "no text";
    }
  }
}
