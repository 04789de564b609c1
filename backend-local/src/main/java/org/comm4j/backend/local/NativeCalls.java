package org.comm4j.backend.local;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalInt;

/// What we need of Linux' C library. Everything works without it, only slower.
final class NativeCalls {
  /// `posix_fallocate`: no space.
  static final int ENOSPC = 28;

  /// The same: a signal came.
  static final int EINTR = 4;

  /// Takes less time than passes between two signals of any profiler.
  private static final long LEAST_RESERVED_BYTES = 64 << 10;

  private static final int FUTEX_WAIT = 0;
  private static final int FUTEX_WAKE = 1;
  private static final int MEMBARRIER_GLOBAL_EXPEDITED = 1 << 1;
  private static final int MEMBARRIER_REGISTER_GLOBAL_EXPEDITED = 1 << 2;
  private static final int O_RDWR = 2;
  private static final int O_CLOEXEC = 0x80000;
  private static final int PROT_READ_WRITE = 3;
  private static final int PROT_READ_EXEC = 5;
  private static final int MAP_PRIVATE_ANONYMOUS_NORESERVE = 0x4022;
  private static final int MADV_HUGEPAGE = 14;

  private final long futexNumber;
  private final long membarrierNumber;
  private final long readvNumber;
  private final MethodHandle syscall;
  private final MethodHandle membarrier;
  private final MethodHandle readv;
  private final MethodHandle open;
  private final MethodHandle close;
  private final MethodHandle fallocate;
  private final MethodHandle mmap;
  private final MethodHandle munmap;
  private final MethodHandle madvise;
  private final MethodHandle mprotect;

  private NativeCalls(long futexNumber, long membarrierNumber, long readvNumber) {
    this.futexNumber = futexNumber;
    this.membarrierNumber = membarrierNumber;
    this.readvNumber = readvNumber;
    var firstVariadic = Linker.Option.firstVariadicArg(1);
    syscall =
        find(
            "syscall",
            FunctionDescriptor.of(
                JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS, JAVA_INT),
            firstVariadic);
    membarrier =
        find(
            "syscall",
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT),
            firstVariadic);
    readv =
        find(
            "syscall",
            FunctionDescriptor.of(
                JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_LONG,
                ADDRESS),
            firstVariadic);
    open =
        find(
            "open",
            FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT),
            Linker.Option.firstVariadicArg(2));
    close = find("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));
    fallocate =
        find("posix_fallocate", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG));
    mmap =
        find(
            "mmap",
            FunctionDescriptor.of(
                ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG));
    munmap = find("munmap", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG));
    madvise = find("madvise", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
    mprotect = find("mprotect", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
  }

  /// The calls, if this module has native access (asked first: without it each first call would
  /// print a warning), the CPU is one whose numbers we know, and the kernel lets us.
  static Optional<NativeCalls> find() {
    if (!NativeCalls.class.getModule().isNativeAccessEnabled()
        || !System.getProperty("os.name").equals("Linux")) {
      return Optional.empty();
    }
    try {
      var calls =
          switch (System.getProperty("os.arch")) {
            case "amd64" -> new NativeCalls(202, 324, 310);
            case "aarch64", "riscv64" -> new NativeCalls(98, 283, 270);
            default -> null;
          };
      return Optional.ofNullable(calls).filter(NativeCalls::hasFutex);
    } catch (IllegalStateException | UnsupportedOperationException absent) {
      return Optional.empty();
    }
  }

  /// Waits while the word is `expected`; may end early.
  ///
  /// @param time at most so long: seconds, then nanoseconds, 8 bytes each
  void futexWait(MemorySegment word, int expected, MemorySegment time) {
    futex(word, FUTEX_WAIT, expected, time);
  }

  /// Wakes whoever waits on the word.
  void futexWake(MemorySegment word) {
    futex(word, FUTEX_WAKE, Integer.MAX_VALUE, MemorySegment.NULL);
  }

  /// Takes part, as a process, in the barriers of others.
  ///
  /// @return whether it does; if so, [#barrier] works too
  boolean joinBarriers() {
    return membarrier(MEMBARRIER_REGISTER_GLOBAL_EXPEDITED) == 0
        && membarrier(MEMBARRIER_GLOBAL_EXPEDITED) == 0;
  }

  /// A full fence on every processor that runs a thread of a process that has joined: whatever such
  /// a thread stored before it loaded something that is older than this call, can be seen after it.
  void barrier() {
    membarrier(MEMBARRIER_GLOBAL_EXPEDITED);
  }

  /// Copies from another process (`process_vm_readv`).
  ///
  /// @param here an address and a number of bytes, 8 bytes each: of `target`, or of a part of it
  /// @param there the same in the other process
  /// @param target kept alive meanwhile: one argument more than the kernel reads
  /// @return how many bytes were copied; -1 if none
  long readProcess(long pid, MemorySegment here, MemorySegment there, MemorySegment target) {
    try {
      return (long) readv.invokeExact(readvNumber, pid, here, 1L, there, 1L, 0L, target);
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  /// Opens an existing file for reading and writing.
  OptionalInt open(Path file) {
    try (var arena = Arena.ofConfined()) {
      int fd = (int) open.invokeExact(arena.allocateFrom(file.toString()), O_RDWR | O_CLOEXEC);
      return fd < 0 ? OptionalInt.empty() : OptionalInt.of(fd);
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  void close(int fd) {
    try {
      int ignored = (int) close.invokeExact(fd);
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  /// Gives a part of a file memory.
  ///
  /// @return 0, or the error number
  int fallocate(int fd, long offset, long bytes) {
    return inParts(
        offset,
        bytes,
        (at, part) -> {
          try {
            return (int) fallocate.invokeExact(fd, at, part);
          } catch (Throwable e) {
            throw failed(e);
          }
        });
  }

  /// Reserves all at once, since what fails then leaves nothing behind. A signal ends that, though,
  /// and what the kernel had done is undone: where signals come often, as a profiler's do, a small
  /// part gets between two of them and the whole never would.
  ///
  /// @return 0, or the error number
  static int inParts(long offset, long bytes, Reservation call) {
    long most = bytes;
    for (long done = 0; done < bytes; ) {
      long part = Math.min(most, bytes - done);
      int error = call.reserve(offset + done, part);
      if (error == 0) {
        done += part;
      } else if (error == EINTR) {
        most = Math.max(part / 2, LEAST_RESERVED_BYTES);
      } else {
        return error;
      }
    }
    return 0;
  }

  /// `posix_fallocate` of a file.
  @FunctionalInterface
  interface Reservation {
    /// {@return 0, or the error number}
    int reserve(long offset, long bytes);
  }

  /// Address space, zeroed, that gets memory page by page when it is touched.
  ///
  /// @return empty when there is not so much of it
  Optional<MemorySegment> mapAnonymous(long bytes) {
    try {
      var address =
          (MemorySegment)
              mmap.invokeExact(
                  MemorySegment.NULL,
                  bytes,
                  PROT_READ_WRITE,
                  MAP_PRIVATE_ANONYMOUS_NORESERVE,
                  -1,
                  0L);
      return address.address() == -1 ? Optional.empty() : Optional.of(address.reinterpret(bytes));
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  /// Puts machine code into memory of its own, for as long as the process lives.
  ///
  /// @return empty where memory may not be made executable
  Optional<MemorySegment> executable(byte[] code) {
    return mapAnonymous(code.length)
        .flatMap(memory -> {
          MemorySegment.copy(code, 0, memory, JAVA_BYTE, 0, code.length);
          try {
            int error = (int) mprotect.invokeExact(memory, memory.byteSize(), PROT_READ_EXEC);
            return error == 0 ? Optional.of(memory) : Optional.empty();
          } catch (Throwable e) {
            throw failed(e);
          }
        });
  }

  /// Asks for huge pages; a wish.
  void adviseHuge(MemorySegment start, long bytes) {
    try {
      int ignored = (int) madvise.invokeExact(start, bytes, MADV_HUGEPAGE);
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  void unmap(MemorySegment segment) {
    try {
      int ignored = (int) munmap.invokeExact(segment, segment.byteSize());
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  private boolean hasFutex() {
    try (var arena = Arena.ofConfined()) {
      return futex(arena.allocate(JAVA_INT), FUTEX_WAKE, 1, MemorySegment.NULL) == 0;
    }
  }

  private long futex(MemorySegment word, int operation, int value, MemorySegment time) {
    try {
      return (long)
          syscall.invokeExact(futexNumber, word, operation, value, time, MemorySegment.NULL, 0);
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  private long membarrier(int command) {
    try {
      return (long) membarrier.invokeExact(membarrierNumber, command, 0, 0);
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  private static MethodHandle find(
      String name, FunctionDescriptor descriptor, Linker.Option... options) {
    var linker = Linker.nativeLinker();
    SymbolLookup library = linker.defaultLookup();
    return library
        .find(name)
        .map(symbol -> linker.downcallHandle(symbol, descriptor, options))
        .orElseThrow(() -> new IllegalStateException("the C library has no " + name));
  }

  static RuntimeException failed(Throwable e) {
    return switch (e) {
      case RuntimeException unchecked -> unchecked;
      case Error error -> throw error;
      default -> new IllegalStateException(e);
    };
  }
}
