package org.comm4j.cli;

/// Errors in words, for people.
final class Sentences {
  private Sentences() {}

  /// What an exception says; its kind only where it says nothing.
  static String of(Throwable thrown) {
    String message = thrown.getMessage();
    return message == null || message.isBlank() ? "failed with " + thrown : message;
  }

  /// Lets the calling thread, a rank of a program of our own, end with a sentence in place of a
  /// stack trace.
  static void forUncaught() {
    Thread.currentThread()
        .setUncaughtExceptionHandler((_, thrown) -> System.err.println("comm-cli: " + of(thrown)));
  }
}
