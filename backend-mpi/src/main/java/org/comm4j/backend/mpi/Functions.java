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
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.comm4j.api.BackendUnavailableException;
import org.jspecify.annotations.Nullable;

/// The one MPI library of this process and how its functions are found. A process uses one library
/// for as long as it lives: it can be initialised only once.
final class Functions {
  /// What is loaded.
  ///
  /// @param constants those of its interface
  /// @param level how threads call it
  private record Loaded(
      MpiLibrary library, SymbolLookup symbols, Constants constants, ThreadLevel level) {}

  private static final String OTHER_LIBRARY = "install a library of MPI 3.1 or later";
  private static final ReentrantLock ONE_AT_A_TIME = new ReentrantLock();

  private static volatile @Nullable Loaded loaded;
  private static @Nullable String lacking; // why what is loaded is no use

  private Functions() {}

  /// Loads a library; does nothing where it is loaded already.
  ///
  /// @throws BackendUnavailableException if it can't be loaded, lacks something, or another one is
  ///   loaded
  static synchronized void load(MpiLibrary library, ThreadLevel level) {
    Loaded known = loaded;
    if (known != null && !known.library().file().equals(library.file())) {
      throw new BackendUnavailableException(
          "mpi",
          "this process uses %s (%s) already and can't use %s (%s) too"
              .formatted(
                  known.library().version(),
                  known.library().file(),
                  library.version(),
                  library.file()),
          "give a process one COMM_MPI_LIBRARY for as long as it lives");
    }
    if (known != null && known.level() != level) {
      throw new BackendUnavailableException(
          "mpi",
          "this process uses %s with %s already and can't use it with %s"
              .formatted(library.version(), known.level().shown(), level.shown()),
          "give a process one %s for as long as it lives".formatted(ThreadLevel.OPTION));
    }
    if (known == null) {
      SymbolLookup symbols = symbols(library);
      loaded = new Loaded(library, symbols, Constants.of(library.abi(), symbols), level);
      lacking = bind(Mpi.class, MpiCollectives.class);
    }
    String reason = lacking;
    if (reason != null) {
      throw new BackendUnavailableException(MpiProvider.NAME, reason, OTHER_LIBRARY);
    }
  }

  /// Has classes find their functions, which they do when they are initialised.
  ///
  /// @return what they have not found; null if they have all
  private static @Nullable String bind(Class<?>... classes) {
    try {
      for (Class<?> each : classes) {
        MethodHandles.lookup().ensureInitialized(each);
      }
      return null;
    } catch (ExceptionInInitializerError e) {
      if (e.getCause() instanceof BackendUnavailableException missing) {
        return missing.reason();
      }
      throw e;
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  private static SymbolLookup symbols(MpiLibrary library) {
    try (Signals _ = Signals.keep()) { // UCX takes them as soon as it is loaded
      return SymbolLookup.libraryLookup(library.file(), Arena.global());
    } catch (IllegalArgumentException e) {
      throw new BackendUnavailableException(
          "mpi",
          "%s (%s) can't be loaded: %s"
              .formatted(library.file(), library.version(), e.getMessage()),
          "see what it lacks with ldd " + library.file());
    }
  }

  private static Loaded get() {
    Loaded known = loaded;
    if (known == null) {
      throw new IllegalStateException("no MPI library is loaded");
    }
    return known;
  }

  static MpiLibrary library() {
    return get().library();
  }

  static Constants constants() {
    return get().constants();
  }

  /// How threads call it.
  static ThreadLevel level() {
    return get().level();
  }

  /// A function of the library.
  ///
  /// @param signature of its parameters: `p` a pointer, `i` an int, `l` a 64-bit integer, `H` a
  ///   handle and `n` a count, which are `long`s here, `N` a pointer to counts or places; it
  ///   returns an int. What counts is the library's function with 64-bit counts, if it has such
  static MethodHandle find(String name, String signature) {
    MethodHandle function = findUnordered(name, signature);
    return level() == ThreadLevel.SERIALIZED ? oneAtATime(function) : function;
  }

  /// One that may be called whatever other threads do.
  static MethodHandle findUnordered(String name, String signature) {
    boolean counts = signature.contains("n") || signature.contains("N");
    String function = counts && hasLargeCounts() ? name + "_c" : name;
    assert !counts || MpiLibrary.Feature.LARGE_COUNTS.functions().contains(name + "_c") : name;
    return get()
        .symbols()
        .find(function)
        .map(symbol -> bind(symbol, signature))
        .orElseThrow(() ->
            new BackendUnavailableException(
                "mpi",
                "%s (%s) has no %s".formatted(library().file(), library().version(), function),
                OTHER_LIBRARY));
  }

  /// Whether the library's counts and places have 64 bits; else they are ints.
  static boolean hasLargeCounts() {
    return library().features().contains(MpiLibrary.Feature.LARGE_COUNTS);
  }

  /// The same function for one thread at a time.
  ///
  /// @param function returns an int
  static MethodHandle oneAtATime(MethodHandle function) {
    try {
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      MethodHandle enter =
          lookup
              .findVirtual(ReentrantLock.class, "lock", MethodType.methodType(void.class))
              .bindTo(ONE_AT_A_TIME);
      MethodHandle leave =
          lookup.findStatic(
              Functions.class,
              "leave",
              MethodType.methodType(int.class, Throwable.class, int.class));
      return MethodHandles.foldArguments(MethodHandles.tryFinally(function, leave), enter);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  /// @param thrown is thrown again by who calls this
  @SuppressWarnings({"UnusedMethod", "UnusedVariable"}) // by its method handle
  private static int leave(@Nullable Throwable thrown, int result) {
    ONE_AT_A_TIME.unlock();
    return result;
  }

  private static MethodHandle bind(MemorySegment symbol, String signature) {
    List<MemoryLayout> layouts = signature.chars().mapToObj(each -> layout((char) each)).toList();
    FunctionDescriptor descriptor =
        FunctionDescriptor.of(JAVA_INT, layouts.toArray(MemoryLayout[]::new));
    MethodHandle function = Linker.nativeLinker().downcallHandle(symbol, descriptor);
    MethodType wide = function.type();
    for (int i = 0; i < signature.length(); i++) {
      if ("Hn".indexOf(signature.charAt(i)) >= 0) {
        wide = wide.changeParameterType(i, long.class);
      }
    }
    return MethodHandles.explicitCastArguments(function, wide);
  }

  private static MemoryLayout layout(char kind) {
    return switch (kind) {
      case 'p', 'N' -> ADDRESS;
      case 'i' -> JAVA_INT;
      case 'l' -> JAVA_LONG;
      case 'n' -> hasLargeCounts() ? JAVA_LONG : JAVA_INT;
      default -> constants().handleBytes == Integer.BYTES ? JAVA_INT : JAVA_LONG;
    };
  }

  /// What a call can't throw.
  static RuntimeException failed(Throwable e) {
    return switch (e) {
      case RuntimeException unchecked -> unchecked;
      case Error error -> throw error;
      default -> new IllegalStateException(e);
    };
  }
}
