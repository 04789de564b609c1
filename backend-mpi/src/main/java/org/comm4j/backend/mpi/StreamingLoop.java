package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.Objects;
import org.comm4j.core.kernel.StreamingCopy;
import org.jspecify.annotations.Nullable;

/// The loop of [StreamingCopy], called.
final class StreamingLoop {
  private static final @Nullable MethodHandle COPY = find();

  private StreamingLoop() {}

  /// {@return the loop, or null where there is none}
  static StreamingCopy.@Nullable Loop ofThisMachine() {
    return COPY == null ? null : StreamingLoop::copy;
  }

  private static void copy(
      MemorySegment target,
      MemorySegment source,
      long bytes,
      long targetOffset,
      long sourceOffset) {
    try {
      Objects.requireNonNull(COPY).invokeExact(target, source, bytes, targetOffset, sourceOffset);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  private static @Nullable MethodHandle find() {
    byte[] code = StreamingCopy.code();
    MemorySegment start = code == null ? null : ExecutableMemory.of(code);
    return start == null
        ? null
        : Linker.nativeLinker()
            .downcallHandle(
                start,
                FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG),
                Linker.Option.critical(true)); // arrays too
  }
}
