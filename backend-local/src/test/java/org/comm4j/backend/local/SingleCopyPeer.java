package org.comm4j.backend.local;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// A process with memory to be read: `process address` on one line, then silence until its input
/// ends. What is there are the numbers from 0.
final class SingleCopyPeer {
  static final int COUNT = 1 << 15;

  private SingleCopyPeer() {}

  static void main() throws Exception {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment numbers = arena.allocate(JAVA_LONG, COUNT);
      for (int i = 0; i < COUNT; i++) {
        numbers.setAtIndex(JAVA_LONG, i, i);
      }
      System.out.println(ProcessHandle.current().pid() + " " + numbers.address());
      while (System.in.read() >= 0) {}
    }
  }
}
