package org.comm4j.core.session;

import java.util.concurrent.atomic.AtomicInteger;

/// What a thread meets where the heap is full: the first attempts to say so find no memory either.
final class FullHeap extends OutOfMemoryError {
  private static final long serialVersionUID = 1;

  private final AtomicInteger attempts = new AtomicInteger(3);

  @Override
  public String getMessage() {
    if (attempts.getAndDecrement() > 0) {
      throw new OutOfMemoryError("for the words");
    }
    return "a test's";
  }
}
