package org.comm4j.backend.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// The kernels, compiled for the host by its C++ compiler, once for all tests. A kernel's threads
/// are threads of the host.
final class HostKernels {
  private static final Path SOURCE = Path.of("src/test/cuda/host.cc");

  private static final Optional<HostKernels> FOUND = find();

  private final MethodHandle launch;
  private final MethodHandle has;

  private HostKernels(SymbolLookup library) {
    this.launch =
        Linker.nativeLinker()
            .downcallHandle(
                library.find("launch_kernel").orElseThrow(),
                FunctionDescriptor.ofVoid(ADDRESS, JAVA_INT, JAVA_INT, ADDRESS));
    this.has =
        Linker.nativeLinker()
            .downcallHandle(
                library.find("has_kernel").orElseThrow(), FunctionDescriptor.of(JAVA_INT, ADDRESS));
  }

  /// The kernels; where there is no compiler the calling test is skipped.
  static HostKernels get() {
    assumeTrue(FOUND.isPresent(), "no C++ compiler for the host: install g++ 12 or newer");
    return FOUND.orElseThrow();
  }

  private static Optional<HostKernels> find() {
    return Programs.find("g++", "clang++").map(HostKernels::compile);
  }

  private static HostKernels compile(String compiler) {
    try {
      Path library = Files.createTempDirectory("comm4j-kernels-").resolve("kernels.so");
      try {
        Programs.run(
            compiler,
            "-std=c++20",
            "-O1",
            "-ffp-contract=off",
            "-fno-strict-aliasing",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unknown-pragmas",
            "-shared",
            "-fPIC",
            "-pthread",
            "-o",
            library.toString(),
            SOURCE.toString());
        return new HostKernels(SymbolLookup.libraryLookup(library, Arena.global()));
      } finally {
        Files.deleteIfExists(library);
        Files.delete(library.resolveSibling(""));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  boolean has(KernelName kernel) {
    try (Arena arena = Arena.ofConfined()) {
      return (int) has.invokeExact(arena.allocateFrom(kernel.function())) != 0;
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /// Runs a kernel to its end.
  void launch(KernelName kernel, int blocks, int threads, MemorySegment parameters) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment copy = arena.allocate(parameters.byteSize(), 16).copyFrom(parameters);
      launch.invokeExact(arena.allocateFrom(kernel.function()), blocks, threads, copy);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }
}
