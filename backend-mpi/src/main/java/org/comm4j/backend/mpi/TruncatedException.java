package org.comm4j.backend.mpi;

/// A message was longer than its receive. Its call makes it a mismatch that names both.
final class TruncatedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int source;
  private final int tag;

  TruncatedException(int source, int tag) {
    super("a message from rank " + source + " is longer than its receive", null, false, false);
    this.source = source;
    this.tag = tag;
  }

  int source() {
    return source;
  }

  /// As the library has it.
  int tag() {
    return tag;
  }
}
