package org.comm4j.backend.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.spi.Availability;
import org.jspecify.annotations.Nullable;

/// Compiles expressions by NVIDIA's compiler at run time, NVRTC, a library of the CUDA toolkit. It
/// is loaded when the first one is to be compiled. What is compiled stays for the process, whose
/// ranks ask for the same.
final class NvrtcCompiler implements ExpressionCompiler {
  /// Of CUDA 12 and newer, whose C++ the kernels are in; the newest first.
  static final List<String> LIBRARIES = List.of("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so");

  static final String REMEDY =
      "install it (a CUDA toolkit 12.0 or newer has it, and so has the Python package nvidia-cuda-nvrtc), name its file with COMM_CUDA_NVRTC, or declare no COMM_CUDA_EXPRESSIONS";

  private static final List<String> HEADERS =
      List.of("call.cuh", "kernels.cuh", "operators.cuh", "platform.cuh", "types.cuh");
  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.cuda");
  private static final Map<Expression, byte[]> COMPILED = new HashMap<>(); // guarded by the class
  private static @Nullable Nvrtc library; // guarded by the class

  private final DriverFiles files;

  NvrtcCompiler(DriverFiles files) {
    this.files = files;
  }

  /// The one that the options name, whether it is there or not, or what is found.
  @Override
  public Optional<Path> file(CudaOptions options) {
    return options
        .nvrtc()
        .or(() -> LIBRARIES.stream().flatMap(name -> files.library(name).stream()).findFirst());
  }

  @Override
  public Optional<Availability> missing(CudaOptions options) {
    Optional<Path> file = file(options);
    if (file.isEmpty()) {
      return unavailable(
          "no NVRTC is found (looked for %s)".formatted(String.join(", ", LIBRARIES)));
    }
    return DriverFiles.isForThisProcessor(file.get())
        ? Optional.empty()
        : unavailable(
            "COMM_CUDA_NVRTC: '%s' is no library of 64 bits for x86".formatted(file.get()));
  }

  private static Optional<Availability> unavailable(String reason) {
    return Optional.of(
        Availability.unavailable(
            "COMM_CUDA_EXPRESSIONS wants kernels compiled at run time, and " + reason, REMEDY));
  }

  @Override
  public byte[] compile(Expression expression, CudaOptions options) {
    synchronized (NvrtcCompiler.class) {
      return COMPILED.computeIfAbsent(expression, it -> compile(it, loaded(options)));
    }
  }

  private Nvrtc loaded(CudaOptions options) {
    Nvrtc known = library;
    if (known == null) {
      Path file =
          file(options)
              .orElseThrow(() ->
                  new BackendUnavailableException(CudaProvider.NAME, "no NVRTC is found", REMEDY));
      known = Nvrtc.load(file);
      library = known;
    }
    return known;
  }

  private static byte[] compile(Expression expression, Nvrtc nvrtc) {
    long start = System.nanoTime();
    Nvrtc.Outcome outcome = nvrtc.compile("expression", expression.source(), headers(), options());
    if (outcome.ptx() == null) {
      throw new IllegalArgumentException(
          "%s: '%s' (expected: an expression of CUDA C++ in x and i); NVRTC %s says:%n%s"
              .formatted(Expression.VARIABLE, expression, nvrtc.version(), outcome.log()));
    }
    LOG.log(
        System.Logger.Level.DEBUG,
        "NVRTC {0} compiled ''{1}'' in {2} ms",
        nvrtc.version(),
        expression,
        (System.nanoTime() - start) / 1_000_000);
    return ptx(outcome.ptx());
  }

  /// Those of `compile-kernels`: the same arithmetic.
  private static List<String> options() {
    return List.of(
        "--gpu-architecture=compute_75",
        "--std=c++20",
        "--fmad=false",
        "--device-as-default-execution-space"); // of lambdas, as nvcc finds out by itself
  }

  /// In the version of the language that our oldest driver knows, as `compile-kernels` has it, with
  /// a zero at its end.
  private static byte[] ptx(String text) {
    String lowered = text.replaceFirst("(?m)^[.]version .*$", ".version 8.0");
    byte[] bytes = lowered.substring(lowered.indexOf(".version")).getBytes(StandardCharsets.UTF_8);
    return Arrays.copyOf(bytes, bytes.length + 1);
  }

  private static Map<String, String> headers() {
    Map<String, String> headers = new LinkedHashMap<>();
    for (String name : HEADERS) {
      try (InputStream in = NvrtcCompiler.class.getResourceAsStream("kernels/" + name)) {
        if (in == null) {
          throw new AssertionError("no " + name);
        }
        headers.put(name, new String(in.readAllBytes(), StandardCharsets.UTF_8));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
    return headers;
  }
}
