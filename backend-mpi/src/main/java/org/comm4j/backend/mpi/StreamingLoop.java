package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
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
  private static final int PROT_READ_WRITE = 3;
  private static final int PROT_READ_EXEC = 5;
  private static final int MAP_PRIVATE_ANONYMOUS = 0x22;

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
    MemorySegment start = code == null ? null : executable(code);
    return start == null
        ? null
        : Linker.nativeLinker()
            .downcallHandle(
                start,
                FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG),
                Linker.Option.critical(true)); // arrays too
  }

  /// Puts machine code into memory of its own, for as long as the process lives.
  ///
  /// @return null where memory may not be made executable
  private static @Nullable MemorySegment executable(byte[] code) {
    if (!"Linux".equals(System.getProperty("os.name"))) {
      return null;
    }
    MethodHandle mmap =
        find(
            "mmap",
            FunctionDescriptor.of(
                ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG));
    MethodHandle mprotect =
        find("mprotect", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
    long bytes = code.length;
    try {
      var address =
          (MemorySegment)
              mmap.invokeExact(
                  MemorySegment.NULL, bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0L);
      if (address.address() == -1) {
        return null;
      }
      MemorySegment memory = address.reinterpret(bytes);
      MemorySegment.copy(code, 0, memory, JAVA_BYTE, 0, code.length);
      int error = (int) mprotect.invokeExact(memory, bytes, PROT_READ_EXEC);
      return error == 0 ? memory : null;
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  private static MethodHandle find(String name, FunctionDescriptor descriptor) {
    Linker linker = Linker.nativeLinker();
    return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor);
  }
}
