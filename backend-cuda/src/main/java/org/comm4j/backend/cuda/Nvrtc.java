package org.comm4j.backend.cuda;

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
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.comm4j.api.BackendException;
import org.comm4j.api.BackendUnavailableException;
import org.jspecify.annotations.Nullable;

/// NVIDIA's compiler at run time, as a library. It needs neither a GPU nor a driver. One thread at
/// a time calls it.
final class Nvrtc {
  /// CUDA 12.0, the first whose C++ is that of 2020.
  private static final int OLDEST_MAJOR = 12;

  private static final int SUCCESS = 0;
  private static final int COMPILATION = 6;

  private final MethodHandle create;
  private final MethodHandle destroy;
  private final MethodHandle compile;
  private final MethodHandle logBytes;
  private final MethodHandle log;
  private final MethodHandle ptxBytes;
  private final MethodHandle ptx;
  private final MethodHandle errorString;
  private final String version;

  /// What came of a compilation.
  ///
  /// @param ptx null if the source is wrong
  /// @param log what the compiler says
  record Outcome(@Nullable String ptx, String log) {}

  private Nvrtc(SymbolLookup library, Path file) {
    this.errorString =
        Linker.nativeLinker()
            .downcallHandle(
                find(library, "nvrtcGetErrorString"), FunctionDescriptor.of(ADDRESS, JAVA_INT));
    this.version = version(library, file);
    this.create =
        function(
            library, "nvrtcCreateProgram", ADDRESS, ADDRESS, ADDRESS, JAVA_INT, ADDRESS, ADDRESS);
    this.destroy = function(library, "nvrtcDestroyProgram", ADDRESS);
    this.compile = function(library, "nvrtcCompileProgram", ADDRESS, JAVA_INT, ADDRESS);
    this.logBytes = function(library, "nvrtcGetProgramLogSize", ADDRESS, ADDRESS);
    this.log = function(library, "nvrtcGetProgramLog", ADDRESS, ADDRESS);
    this.ptxBytes = function(library, "nvrtcGetPTXSize", ADDRESS, ADDRESS);
    this.ptx = function(library, "nvrtcGetPTX", ADDRESS, ADDRESS);
  }

  /// Loads the library, for good.
  ///
  /// @throws BackendUnavailableException if it can't be loaded, or is too old
  static Nvrtc load(Path file) {
    try {
      var loaded = new Nvrtc(SymbolLookup.libraryLookup(file, Arena.global()), file);
      loaded.loadPartBeside(file);
      return loaded;
    } catch (IllegalArgumentException e) {
      throw unavailable("NVRTC can't be loaded from %s: %s".formatted(file, e.getMessage()));
    }
  }

  private static BackendUnavailableException unavailable(String reason) {
    return new BackendUnavailableException(CudaProvider.NAME, reason, NvrtcCompiler.REMEDY);
  }

  /// It looks for a second library by its name alone, which finds it where it has been loaded.
  private void loadPartBeside(Path file) {
    Path beside = file.resolveSibling("libnvrtc-builtins.so." + version);
    if (Files.exists(beside)) {
      var _ = SymbolLookup.libraryLookup(beside, Arena.global());
    }
  }

  private String version(SymbolLookup library, Path file) {
    MethodHandle function = function(library, "nvrtcVersion", ADDRESS, ADDRESS);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment major = arena.allocate(JAVA_INT);
      MemorySegment minor = arena.allocate(JAVA_INT);
      check(call(function, major, minor), "nvrtcVersion");
      String found = major.get(JAVA_INT, 0) + "." + minor.get(JAVA_INT, 0);
      if (major.get(JAVA_INT, 0) < OLDEST_MAJOR) {
        throw unavailable(
            "NVRTC %s is too old: %s (expected: 12.0 or newer)".formatted(found, file));
      }
      return found;
    }
  }

  /// {@return its version, for example `13.0`}
  String version() {
    return version;
  }

  private static MemorySegment find(SymbolLookup library, String name) {
    return library.find(name).orElseThrow(() -> new IllegalArgumentException("it has no " + name));
  }

  private static MethodHandle function(
      SymbolLookup library, String name, MemoryLayout... arguments) {
    return Linker.nativeLinker()
        .downcallHandle(find(library, name), FunctionDescriptor.of(JAVA_INT, arguments));
  }

  private static int call(MethodHandle function, Object... arguments) {
    try {
      return (int) function.invokeWithArguments(arguments);
    } catch (Throwable e) {
      throw new AssertionError(e); // functions of C throw nothing
    }
  }

  /// Compiles one source.
  ///
  /// @param name what it is called in the log
  /// @param headers what it includes, by their names
  /// @param options of the compiler
  Outcome compile(String name, String source, Map<String, String> headers, List<String> options) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment program = arena.allocate(ADDRESS);
      check(
          call(
              create,
              program,
              arena.allocateFrom(source),
              arena.allocateFrom(name),
              headers.size(),
              texts(arena, headers.values()),
              texts(arena, headers.keySet())),
          "nvrtcCreateProgram");
      try {
        return compile(program.get(ADDRESS, 0), options, arena);
      } finally {
        check(call(destroy, program), "nvrtcDestroyProgram");
      }
    }
  }

  private Outcome compile(MemorySegment program, List<String> options, Arena arena) {
    int code = call(compile, program, options.size(), texts(arena, options));
    String said = text(program, logBytes, log, "nvrtcGetProgramLog").strip();
    if (code == COMPILATION) {
      return new Outcome(null, said);
    }
    if (code != SUCCESS) {
      throw unavailable("NVRTC %s can't compile: %s".formatted(version, said));
    }
    return new Outcome(text(program, ptxBytes, ptx, "nvrtcGetPTX"), said);
  }

  private static MemorySegment texts(Arena arena, Collection<String> all) {
    MemorySegment pointers = arena.allocate(ADDRESS, all.size());
    int at = 0;
    for (String each : all) {
      pointers.setAtIndex(ADDRESS, at++, arena.allocateFrom(each));
    }
    return pointers;
  }

  private String text(
      MemorySegment program, MethodHandle bytes, MethodHandle function, String name) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment length = arena.allocate(JAVA_LONG);
      check(call(bytes, program, length), name + "Size");
      MemorySegment text = arena.allocate(Math.max(1, length.get(JAVA_LONG, 0)));
      check(call(function, program, text), name);
      return text.getString(0);
    }
  }

  private void check(int code, String function) {
    if (code != SUCCESS) {
      throw new BackendException(
          code, "%s returned %d, %s".formatted(function, code, errorText(code)));
    }
  }

  private String errorText(int code) {
    try {
      var text = (MemorySegment) errorString.invokeExact(code);
      return text.reinterpret(Long.MAX_VALUE).getString(0);
    } catch (Throwable e) {
      throw new AssertionError(e); // functions of C throw nothing
    }
  }
}
