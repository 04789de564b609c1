package org.comm4j.backend.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.stream.Collectors;
import org.comm4j.api.spi.Availability;

/// Compiles expressions for the model of the driver, by the host's C++ compiler: a library with
/// their kernels, and a text that names it in place of PTX.
final class ModelCompiler implements ExpressionCompiler {
  private static final Path SOURCES = Path.of("src").toAbsolutePath();
  private static final Map<Expression, Path> LIBRARIES = new HashMap<>(); // guarded by the class

  @Override
  public Optional<Availability> missing(CudaOptions options) {
    return Optional.empty();
  }

  @Override
  public Optional<Path> file(CudaOptions options) {
    return Optional.empty();
  }

  /// The library stays for other JVMs of the tests, and the next build, as long as the sources are
  /// the same.
  @Override
  public byte[] compile(Expression expression, CudaOptions options) {
    synchronized (ModelCompiler.class) { // a file's lock is one for all threads
      Path library = LIBRARIES.computeIfAbsent(expression, ModelCompiler::compiled);
      return text(expression, library);
    }
  }

  private static Path compiled(Expression expression) {
    String version =
        expression + Sources.hashes(Path.of("src"), ".*/cuda/.*[.](cuh?|hh)").toString();
    String name = UUID.nameUUIDFromBytes(version.getBytes(UTF_8)).toString();
    try {
      Path folder = Files.createDirectories(Path.of("target/model/expressions").toAbsolutePath());
      Path library = folder.resolve(name + ".so");
      try (FileChannel lock = FileChannel.open(folder.resolve("lock"), CREATE, WRITE);
          FileLock _ = lock.lock()) {
        if (!Files.exists(library)) {
          Path source = folder.resolve(name + ".cc");
          Path part = folder.resolve("part");
          Files.writeString(source, source(expression));
          HostCompiler.find().orElseThrow().library(part, "-fvisibility=hidden", source);
          Files.move(part, library, ATOMIC_MOVE);
        }
      }
      return library;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String source(Expression expression) {
    return "#define NANS_HAVE_SIGNS\n"
        + expression
            .source()
            .replace("kernels.cuh", SOURCES.resolve("main/cuda/kernels.cuh").toString())
        + """

        #include "%s"

        extern "C" [[gnu::visibility("default")]] void model_launch(
            const std::string& name, u32 blocks, u32 threads, const void* parameters) {
          launch_kernel(name, blocks, threads, parameters);
        }
        """
            .formatted(SOURCES.resolve("test/cuda/launch.hh"));
  }

  /// What the model reads of PTX.
  private static byte[] text(Expression expression, Path library) {
    String kernels =
        expression.kernels().stream()
            .map(KernelName::function)
            .sorted()
            .map(name ->
                ".entry %1$s(\n.param .align 8 .b8 %1$s_param_0[%2$d]\n)\n"
                    .formatted(name, Parameters.CALL_BYTES))
            .collect(Collectors.joining());
    return (".version 8.0\n// library " + library + "\n" + kernels + "\0").getBytes(UTF_8);
  }
}
