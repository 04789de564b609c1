package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// What NVRTC makes of expressions, where it is there; and what is said where it is not good
/// enough.
class NvrtcTest {
  private static final boolean IS_FULL = Boolean.getBoolean("comm4j.full");
  private static final List<String> SOME =
      List.of(
          "float32: x > 0 ? x : 0",
          "float64: i % 2 ? x : erf(x)",
          "bfloat16 -> float32: x * tanhf(x)",
          "float64 -> float8_e4m3: fmin(x, 448.0)",
          "float8_e5m2: x / (1 + expf(-x))");

  private static final NvrtcCompiler COMPILER =
      new NvrtcCompiler(new DriverFiles("", Path.of("/")));

  /// NVRTC asks a driver for its cache, and other tests of this JVM may have loaded the model of
  /// one.
  @BeforeAll
  static void loadDriver() {
    if (!TestDevice.isReal() && HostCompiler.find().isPresent()) {
      ModelDriver.get().reset();
    }
  }

  private static CudaOptions options(Path library) {
    return CudaOptions.of(
        CommConfig.builder().option("COMM_CUDA_NVRTC", library.toString()).build());
  }

  /// With `-Dcomm4j.full=true` of every two types.
  static Stream<Expression> expressions() {
    Stream<Expression> some = SOME.stream().flatMap(each -> Expression.all(each).stream());
    return IS_FULL ? Stream.concat(some, ofEveryTwoTypes()) : some;
  }

  private static Stream<Expression> ofEveryTwoTypes() {
    return Stream.of(DataType.values())
        .filter(type -> type.kind() == DataType.Kind.FLOAT)
        .flatMap(from ->
            Stream.of(DataType.values())
                .filter(type -> type.kind() == DataType.Kind.FLOAT)
                .map(to -> new Expression(from, to, "x * x - i")));
  }

  private static String compiled(Expression expression) {
    byte[] ptx = COMPILER.compile(expression, options(RealNvrtc.need()));
    assertThat(ptx).endsWith((byte) 0);
    return new String(ptx, 0, ptx.length - 1, StandardCharsets.UTF_8);
  }

  @ParameterizedTest
  @MethodSource("expressions")
  void ptx_isForCuda12AndTuring_withKernelsThatTakeWhatWeGive(Expression expression) {
    String ptx = compiled(expression);

    assertThat(ptx).startsWith(".version 8.0\n.target sm_75\n.address_size 64\n");
    assertThat(ptx).doesNotContain(".nc.").doesNotContain("ldu."); // as PtxTest says
    for (KernelName kernel : expression.kernels()) {
      assertThat(ptx)
          .containsPattern(
              Pattern.compile(
                  "[.]entry %s\\(\\s*[.]param [.]align 8 [.]b8 %1$s_param_0\\[%d]\\s*\\)\\s*[.]maxntid %d,"
                      .formatted(kernel.function(), Parameters.CALL_BYTES, CudaProvider.THREADS)));
    }
  }

  @ParameterizedTest
  @MethodSource("expressions")
  void ptx_isAssembled(Expression expression, @TempDir Path folder) throws IOException {
    Programs.need("ptxas");
    Path ptx = Files.writeString(folder.resolve("expression.ptx"), compiled(expression));

    for (String generation : List.of("sm_75", "sm_90")) {
      Path out = folder.resolve(generation);
      Programs.run("ptxas", "-O0", "-arch=" + generation, ptx.toString(), "-o", out.toString());
      assertThat(out).isNotEmptyFile();
    }
  }

  @Test
  void compile_again_isNotCompiledAgain() {
    CudaOptions options = options(RealNvrtc.need());
    Expression expression = Expression.all("float32: x + 1").getFirst();

    assertThat(COMPILER.compile(expression, options))
        .isSameAs(
            new NvrtcCompiler(new DriverFiles("", Path.of("/"))).compile(expression, options));
  }

  @Test
  void compile_wrongExpression_saysWhatTheCompilerSays() {
    CudaOptions options = options(RealNvrtc.need());

    assertThatIllegalArgumentException()
        .isThrownBy(() -> COMPILER.compile(Expression.all("float32: y + 1").getFirst(), options))
        .withMessageStartingWith("COMM_CUDA_EXPRESSIONS: 'float32: y + 1' (expected: ")
        .withMessageContaining("identifier \"y\" is undefined");
  }

  // --- libraries that are not good enough ---

  @Test
  void load_noLibrary_saysWhatToDo(@TempDir Path folder) {
    Path none = folder.resolve("libnvrtc.so");

    assertUnavailable(none, "NVRTC can't be loaded from " + none);
  }

  @Test
  void load_otherLibrary_saysWhatIsMissing(@TempDir Path folder) throws IOException {
    assertUnavailable(library(folder, "int other() { return 0; }"), "it has no nvrtc");
  }

  @Test
  void load_tooOld_saysTheVersion(@TempDir Path folder) throws IOException {
    assertUnavailable(library(folder, model(11, 0)), "NVRTC 11.8 is too old");
  }

  /// As where its second library is missing.
  @Test
  void compile_compilerFails_saysWhy(@TempDir Path folder) throws IOException {
    Nvrtc broken = Nvrtc.load(library(folder, model(12, 7)));

    assertThatThrownBy(() -> broken.compile("name", "source", Map.of("a", "b"), List.of("-c")))
        .isInstanceOf(BackendUnavailableException.class)
        .hasMessageContainingAll("NVRTC 12.8 can't compile: no builtins", "COMM_CUDA_NVRTC");
  }

  private static void assertUnavailable(Path library, String reason) {
    assertThatThrownBy(() -> Nvrtc.load(library))
        .isInstanceOf(BackendUnavailableException.class)
        .hasMessageContainingAll(reason, "COMM_CUDA_NVRTC", "declare no COMM_CUDA_EXPRESSIONS");
  }

  private static Path library(Path folder, String source) throws IOException {
    assumeTrue(HostCompiler.find().isPresent(), "no C++ compiler for the host: install g++");
    Path file = Files.writeString(folder.resolve("model.cc"), "extern \"C\" {" + source + "}");
    Path library = folder.resolve("libnvrtc.so");
    HostCompiler.find().orElseThrow().library(library, "-O0", file);
    return library;
  }

  /// One that compiles nothing.
  ///
  /// @param code what it returns instead
  private static String model(int major, int code) {
    return """
    const char* nvrtcGetErrorString(int) { return "an error"; }
    int nvrtcVersion(int* major, int* minor) { *major = %d; *minor = 8; return 0; }
    int nvrtcCreateProgram(void**, const char*, const char*, int, const char* const*, const char* const*) { return 0; }
    int nvrtcDestroyProgram(void**) { return 0; }
    int nvrtcCompileProgram(void*, int, const char* const*) { return %d; }
    int nvrtcGetProgramLogSize(void*, unsigned long* bytes) { *bytes = 12; return 0; }
    int nvrtcGetProgramLog(void*, char* log) { __builtin_memcpy(log, "no builtins", 12); return 0; }
    int nvrtcGetPTXSize(void*, unsigned long* bytes) { *bytes = 1; return 0; }
    int nvrtcGetPTX(void*, char* ptx) { *ptx = 0; return 0; }
    """
        .formatted(major, code);
  }
}
