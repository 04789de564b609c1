package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// The JVM's signal handlers, kept while a library is loaded and initialised that takes them:
/// HotSpot needs SIGSEGV for its null checks and safepoints, so a library that handles it (UCX
/// does, below some MPIs) ends the JVM at the next one.
final class Signals implements AutoCloseable {
  /// HUP, INT, QUIT, ILL, TRAP, BUS, FPE, USR2, SEGV, PIPE, TERM, XFSZ: what HotSpot handles.
  private static final int[] OF_THE_JVM = {1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 15, 25};

  private static final long ACTION_BYTES = 512; // more than any struct sigaction
  private static final MethodHandle SIGACTION =
      find("sigaction", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, ADDRESS));
  private static final MethodHandle SETENV =
      find("setenv", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));

  private final MemorySegment actions =
      Arena.ofAuto().allocate(ACTION_BYTES * OF_THE_JVM.length, 16);

  private Signals() {}

  private static MethodHandle find(String name, FunctionDescriptor descriptor) {
    Linker linker = Linker.nativeLinker();
    return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor);
  }

  /// Notes how signals are handled now; closing it has them handled so again. Tells UCX, should it
  /// be loaded, to handle none; what the user has set stays.
  static Signals keep() {
    keepUcxAway();
    Signals kept = new Signals();
    for (int i = 0; i < OF_THE_JVM.length; i++) {
      kept.call(i, MemorySegment.NULL, kept.action(i));
    }
    return kept;
  }

  private static void keepUcxAway() {
    try (Arena arena = Arena.ofConfined()) {
      int ignored =
          (int)
              SETENV.invokeExact(
                  arena.allocateFrom("UCX_ERROR_SIGNALS"), arena.allocateFrom(""), 0);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  private MemorySegment action(int i) {
    return actions.asSlice(i * ACTION_BYTES, ACTION_BYTES);
  }

  private void call(int i, MemorySegment action, MemorySegment old) {
    try {
      int ignored = (int) SIGACTION.invokeExact(OF_THE_JVM[i], action, old);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  /// Has them handled as they were noted, on any thread, also while the library goes on.
  void restore() {
    for (int i = 0; i < OF_THE_JVM.length; i++) {
      call(i, action(i), MemorySegment.NULL);
    }
  }

  @Override
  public void close() {
    restore();
  }
}
