package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.comm4j.core.kernel.MachineCode;
import org.jspecify.annotations.Nullable;

/// Keeps arrays where they are while native code uses them: JNI's critical arrays. Its functions
/// stand in a table that the virtual machine tells of, so this needs no native library of ours. G1
/// and Shenandoah go on collecting around such an array (JEP 423); with other collectors each
/// collection would wait until the native code is done, so there it is not done.
///
/// A local reference of JNI ends with the next native method of Java's own that the thread runs,
/// and between two calls of ours there may be some. So where one function makes such a reference,
/// one piece of machine code calls it and makes the reference a global one.
///
/// Source: Java Native Interface Specification, chapters 4 and 5, with the functions' places.
///
/// @param machine the virtual machine, as it is passed to its functions
/// @param getEnv the environment of the calling thread
/// @param globally [#GLOBALLY]
/// @param pin a critical array's address
/// @param unpin takes that back
/// @param forget ends a global reference
record Pinning(
    long machine,
    MethodHandle getEnv,
    MethodHandle globally,
    MethodHandle pin,
    MethodHandle unpin,
    MethodHandle forget) { // a record: the compiler trusts its fields

  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.mpi");

  private static final int JNI_VERSION = 0x0015_0000; // 21

  // the functions' places: of the machine's table, then of an environment's
  private static final int GET_ENV = 6;
  private static final int FIND_CLASS = 6;
  private static final int DELETE_GLOBAL_REFERENCE = 22;
  private static final int GET_OBJECT_CLASS = 31;
  private static final int GET_FIELD_ID = 94;
  private static final int GET_OBJECT_FIELD = 95;
  private static final int GET_STATIC_METHOD_ID = 113;
  private static final int CALL_STATIC_OBJECT_METHOD_A = 116;
  private static final int GET_OBJECT_ARRAY_ELEMENT = 173;
  private static final int GET_PRIMITIVE_ARRAY_CRITICAL = 222;
  private static final int RELEASE_PRIMITIVE_ARRAY_CRITICAL = 223;
  private static final int PLACES = 235;

  /// `jobject globally(JNIEnv* env, a, b, c, offset)`: calls the function at this offset in the
  /// environment's table, which returns a local reference; makes a global one (place 21) and ends
  /// the local one (place 23).
  private static final String GLOBALLY =
      """
      53              push    rbx
      4154            push    r12
      4155            push    r13
      4889fb          mov     rbx, rdi
      488b07          mov     rax, [rdi]
      42ff1400        call    [rax + r8]
      4989c4          mov     r12, rax
      4889df          mov     rdi, rbx
      4889c6          mov     rsi, rax
      488b03          mov     rax, [rbx]
      ff90a8000000    call    [rax + 21 * 8]
      4989c5          mov     r13, rax
      4889df          mov     rdi, rbx
      4c89e6          mov     rsi, r12
      488b03          mov     rax, [rbx]
      ff90b8000000    call    [rax + 23 * 8]
      4c89e8          mov     rax, r13
      415d            pop     r13
      415c            pop     r12
      5b              pop     rbx
      c3              ret
      """;

  private static final @Nullable Pinning HERE = find();

  /// How native code gets hold of an object: it stands here while a reference to it is made.
  private static final class Shelf {
    static final @Nullable Object[] PLACES = new @Nullable Object[1];
    static final long REFERENCE = Teller.referenceTo(PLACES);
  }

  /// {@return whether arrays can be pinned in this virtual machine}
  static boolean isPossible() {
    return HERE != null && Shelf.REFERENCE != 0;
  }

  /// The environment of the calling thread, a platform thread: the same for as long as it lives; 0
  /// where it can't be had.
  static long environment() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment found = arena.allocate(JAVA_LONG);
      int error = (int) here().getEnv.invokeExact(here().machine, found.address(), JNI_VERSION);
      return error == 0 ? found.get(JAVA_LONG, 0) : 0;
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  /// A global reference to an array; 0 where the virtual machine has no memory for it.
  static long reference(long environment, Object array) {
    synchronized (Shelf.PLACES) {
      Shelf.PLACES[0] = array;
      try {
        return globally(environment, GET_OBJECT_ARRAY_ELEMENT, Shelf.REFERENCE, 0, 0);
      } finally {
        Shelf.PLACES[0] = null;
      }
    }
  }

  private static long globally(long environment, int place, long a, long b, long c) {
    try {
      return (long) here().globally.invokeExact(environment, a, b, c, offset(place));
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  /// Pins an array.
  ///
  /// @return the address of its first element, until it is unpinned by the same thread; 0 where the
  ///   virtual machine has no memory for that
  static long pin(long environment, long reference) {
    try {
      return (long) here().pin.invokeExact(environment, reference, 0L);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static void unpin(long environment, long reference, long address) {
    try {
      here().unpin.invokeExact(environment, reference, address, 0);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  /// Ends a global reference.
  static void forget(long environment, long reference) {
    try {
      here().forget.invokeExact(environment, reference);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  private static Pinning here() {
    return Objects.requireNonNull(HERE);
  }

  private static long offset(int place) {
    return place * ADDRESS.byteSize();
  }

  private static @Nullable Pinning find() {
    byte[] code = MachineCode.ofX86(GLOBALLY);
    var library = Path.of(System.getProperty("java.home"), "lib", "server", "libjvm.so");
    try {
      if (code == null || !Files.exists(library) || !collectsAround()) {
        return null;
      }
      MemorySegment globally = ExecutableMemory.of(code);
      return globally == null ? null : find(library, globally);
    } catch (RuntimeException | LinkageError e) { // a small runtime may lack java.management
      LOG.log(System.Logger.Level.DEBUG, "arrays are copied: they can't be pinned here", e);
      return null;
    }
  }

  private static boolean collectsAround() {
    return ManagementFactory.getGarbageCollectorMXBeans().stream()
        .anyMatch(
            each -> each.getName().startsWith("G1") || each.getName().startsWith("Shenandoah"));
  }

  private static @Nullable Pinning find(Path library, MemorySegment globally) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment start =
          SymbolLookup.libraryLookup(library, Arena.global()).findOrThrow("JNI_GetCreatedJavaVMs");
      MethodHandle machines = function(start, JAVA_INT, ADDRESS, JAVA_INT, ADDRESS);
      MemorySegment found = arena.allocate(ADDRESS);
      MemorySegment count = arena.allocate(JAVA_INT);
      if ((int) machines.invokeExact(found, 1, count) != 0 || count.get(JAVA_INT, 0) != 1) {
        return null;
      }
      MemorySegment machine = found.get(ADDRESS, 0);
      MethodHandle getEnv =
          function(place(machine, GET_ENV), JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT);
      if ((int) getEnv.invokeExact(machine.address(), found.address(), JNI_VERSION) != 0) {
        return null;
      }
      MemorySegment environment = found.get(ADDRESS, 0);
      return new Pinning(
          machine.address(),
          getEnv,
          function(globally, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
          function(
              place(environment, GET_PRIMITIVE_ARRAY_CRITICAL),
              JAVA_LONG,
              JAVA_LONG,
              JAVA_LONG,
              JAVA_LONG),
          function(
              place(environment, RELEASE_PRIMITIVE_ARRAY_CRITICAL),
              null,
              JAVA_LONG,
              JAVA_LONG,
              JAVA_LONG,
              JAVA_INT),
          function(place(environment, DELETE_GLOBAL_REFERENCE), null, JAVA_LONG, JAVA_LONG));
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  /// The function at a place of an object's table.
  private static MemorySegment place(MemorySegment object, int place) {
    MemorySegment table = object.reinterpret(ADDRESS.byteSize()).get(ADDRESS, 0);
    return table.reinterpret(offset(PLACES)).getAtIndex(ADDRESS, place);
  }

  private static MethodHandle function(
      MemorySegment start, @Nullable MemoryLayout result, MemoryLayout... parameters) {
    return Linker.nativeLinker()
        .downcallHandle(
            start,
            result == null
                ? FunctionDescriptor.ofVoid(parameters)
                : FunctionDescriptor.of(result, parameters));
  }

  /// A thread that has an object: native code can ask for the thread that it runs on, and for the
  /// thread's fields.
  private static final class Teller extends Thread {
    @SuppressWarnings("UnusedVariable") // native code reads it
    private final @Nullable Object[] told;

    private final CompletableFuture<Long> reference = new CompletableFuture<>();

    private Teller(@Nullable Object[] told) {
      super("comm4j-mpi-pinning");
      this.told = told;
    }

    /// A global reference to an array, for as long as the process lives.
    ///
    /// @return 0 where there is none
    static long referenceTo(@Nullable Object[] told) {
      var teller = new Teller(told);
      try {
        teller.start();
        return teller.reference.join();
      } catch (OutOfMemoryError | CompletionException e) { // the former: no more threads
        LOG.log(System.Logger.Level.DEBUG, "arrays are copied: they can't be pinned here", e);
        return 0;
      }
    }

    @Override
    public void run() {
      try {
        long environment = environment();
        reference.complete(environment == 0 ? 0 : reference(environment));
      } catch (RuntimeException | Error e) {
        reference.completeExceptionally(e);
      }
    }

    private static long reference(long environment) {
      try (Arena arena = Arena.ofConfined()) {
        long threads = globally(environment, FIND_CLASS, text(arena, "java/lang/Thread"), 0, 0);
        long current =
            member(
                environment,
                GET_STATIC_METHOD_ID,
                threads,
                text(arena, "currentThread"),
                text(arena, "()Ljava/lang/Thread;"));
        long self = globally(environment, CALL_STATIC_OBJECT_METHOD_A, threads, current, 0);
        long type = globally(environment, GET_OBJECT_CLASS, self, 0, 0);
        long field =
            member(
                environment,
                GET_FIELD_ID,
                type,
                text(arena, "told"),
                text(arena, "[Ljava/lang/Object;"));
        long reference = globally(environment, GET_OBJECT_FIELD, self, field, 0);
        forget(environment, threads);
        forget(environment, self);
        forget(environment, type);
        return reference;
      }
    }

    private static long text(Arena arena, String text) {
      return arena.allocateFrom(text).address();
    }

    private static long member(long environment, int place, long type, long name, long signature) {
      MemorySegment start = Pinning.place(MemorySegment.ofAddress(environment), place);
      try {
        return (long)
            function(start, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG)
                .invokeExact(environment, type, name, signature);
      } catch (Throwable e) {
        throw Functions.failed(e);
      }
    }
  }
}
