package org.comm4j.backend.cuda;

/// Something that was started and uses memory of a device until it ends.
interface InFlight {
  /// {@return whether it was seen to have ended} Looks at nothing.
  boolean hasEnded();

  /// {@return whether it has ended}
  boolean isDone();

  /// {@return whether it reads or writes a part of this memory}
  boolean uses(long address, long bytes);

  /// {@return what it is, for messages}
  String text();
}
