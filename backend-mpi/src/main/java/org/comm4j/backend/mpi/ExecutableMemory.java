package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/// Memory that [MachineCode] runs from.
final class ExecutableMemory {
  private static final int PROT_READ_WRITE = 3;
  private static final int PROT_READ_EXEC = 5;
  private static final int MAP_PRIVATE_ANONYMOUS = 0x22;

  private ExecutableMemory() {}

  /// Puts machine code into memory of its own, for as long as the process lives.
  ///
  /// @return null where memory may not be made executable
  static @Nullable MemorySegment of(byte[] code) {
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
