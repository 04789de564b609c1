package org.comm4j.backend.cuda;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/// A C++ compiler for the host. Not in a class whose initialiser compiles: the threads that do it
/// would wait for its end.
///
/// @param program in `PATH`
record HostCompiler(String program) {
  static Optional<HostCompiler> find() {
    return Programs.find("g++", "clang++").map(HostCompiler::new);
  }

  /// Compiles sources, all at the same time, and links them to a library.
  ///
  /// @param option one more for the compiler
  void library(Path library, String option, Path... sources) {
    List<String> objects =
        Stream.of(sources).parallel().map(source -> object(library, option, source)).toList();
    run(Stream.of("-shared", "-pthread", option, "-o", library.toString()), objects.stream());
  }

  private String object(Path library, String option, Path source) {
    String object = library.resolveSibling(source.getFileName() + ".o").toString();
    run(
        Stream.of(
            "-std=c++20",
            "-O0", // compiling takes longer than what is then run
            "-ffp-contract=off",
            "-fno-strict-aliasing",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unknown-pragmas",
            "-fPIC",
            "-pthread"),
        Stream.of(option, "-c", "-o", object, source.toString()));
    return object;
  }

  private void run(Stream<String> options, Stream<String> more) {
    Programs.run(
        Stream.concat(Stream.of(program), Stream.concat(options, more)).toArray(String[]::new));
  }
}
