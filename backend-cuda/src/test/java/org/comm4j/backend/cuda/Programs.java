package org.comm4j.backend.cuda;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/// Programs that some machines have, and that these tests use where they do.
final class Programs {
  private Programs() {}

  /// {@return the first of these programs that is in `PATH`}
  static Optional<String> find(String... names) {
    return Stream.of(names).filter(Programs::isInPath).findFirst();
  }

  private static boolean isInPath(String name) {
    return Arrays.stream(System.getenv("PATH").split(File.pathSeparator, -1))
        .anyMatch(folder -> Files.isExecutable(Path.of(folder, name)));
  }

  /// Skips the calling test where a program of NVIDIA's CUDA toolkit is not there.
  static void need(String name) {
    assumeTrue(isInPath(name), "no " + name + " in PATH: it is in NVIDIA's CUDA toolkit");
  }

  /// Skips the calling test where nvcc can't compile: it is not there, or the host's compiler
  /// isn't, which it calls.
  static void needNvcc() {
    need("nvcc");
    String host = nvccHost();
    assumeTrue(
        isInPath(host) || Files.exists(Path.of(host)),
        "nvcc is here, and no %s in PATH, which it needs: install g++".formatted(host));
  }

  private static String nvccHost() {
    return Optional.ofNullable(System.getenv("NVCC_CCBIN")).orElse("g++"); // or its folder
  }

  /// {@return what tells the host's compiler that nvcc calls from others}
  static String nvccHostVersion() {
    String host = nvccHost();
    return Files.isDirectory(Path.of(host)) ? host : run(host, "--version");
  }

  /// Runs a program.
  ///
  /// @return what it has printed
  /// @throws AssertionError with what it has printed, if it fails or takes minutes
  static String run(String... command) {
    try {
      Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
      String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (!process.waitFor(2, TimeUnit.MINUTES) || process.exitValue() != 0) {
        throw new AssertionError(String.join(" ", command) + " failed:\n" + output);
      }
      return output;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
