package org.comm4j.backend.cuda;

import java.nio.file.InvalidPathException;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.OptionText;

/// The settings of this backend.
///
/// | variable | default | |
/// |---|---|---|
/// | `COMM_CUDA_DEVICE` | the rank's number on its host, modulo the devices | the number of the device that the rank owns |
/// | `COMM_CUDA_BLOCKS` | half as many as the device has multiprocessors, shared out among the launch's ranks on it | how many blocks a kernel has at most, 1 to 512 |
/// | `COMM_CUDA_CHUNK` | 16MiB | bytes of data that a rank shows its peers, or takes through the host, at once, where they can't read it in place: a multiple of 4 KiB from 64 KiB to 1 GiB |
/// | `COMM_CUDA_PATH` | auto | how data goes, see [Path] |
/// | `COMM_CUDA_EXPRESSIONS` | none | ends of epilogues that are compiled when the rank opens, see [Expression]: `TYPE: EXPRESSION` or `TYPE -> TYPE: EXPRESSION`, with `;` between them |
/// | `COMM_CUDA_NVRTC` | the newest that is found | the file of the library that compiles them |
///
/// All but the device and the library are the same on all ranks.
///
/// @param device empty unless given
/// @param maxBlocks 0 unless given
/// @param chunkBytes what a rank shows, or takes through the host, at once
/// @param nvrtc empty unless given
record CudaOptions(
    OptionalInt device,
    int maxBlocks,
    long chunkBytes,
    Path path,
    List<Expression> expressions,
    Optional<java.nio.file.Path> nvrtc) {
  static final Set<String> NAMES =
      Set.of("DEVICE", "BLOCKS", "CHUNK", "PATH", "EXPRESSIONS", "NVRTC");

  private static final String PREFIX = "COMM_CUDA_";
  private static final int CHUNK_STEP = 4096;
  private static final int LEAST_CHUNK = 1 << 16;
  private static final int MOST_CHUNK = 1 << 30;
  private static final long DEFAULT_CHUNK = 16 << 20;
  private static final int MOST_DEVICE = 1023;

  /// How data goes between devices.
  enum Path {
    /// Kernels where all ranks of a communicator reach each other's memory, else through the host.
    AUTO,
    /// Kernels, or the communicator fails.
    P2P,
    /// Through the host's memory.
    NAIVE
  }

  /// @throws IllegalArgumentException if a value is not valid
  static CudaOptions of(CommConfig config) {
    return new CudaOptions(
        option("DEVICE", config)
            .map(text ->
                OptionalInt.of(
                    text.number(
                        0, MOST_DEVICE, "it is that of a device, as this process counts them")))
            .orElse(OptionalInt.empty()),
        option("BLOCKS", config).map(text -> text.number(1, Window.MAX_BLOCKS)).orElse(0),
        option("CHUNK", config)
            .map(text -> text.size(LEAST_CHUNK, MOST_CHUNK, CHUNK_STEP))
            .orElse(DEFAULT_CHUNK),
        option("PATH", config).map(text -> text.word(Path.class)).orElse(Path.AUTO),
        Expression.all(config.options().getOrDefault(Expression.VARIABLE, "")),
        option("NVRTC", config).map(CudaOptions::file));
  }

  private static Optional<OptionText> option(String name, CommConfig config) {
    return OptionText.of(config, PREFIX + name);
  }

  private static java.nio.file.Path file(OptionText text) {
    try {
      return java.nio.file.Path.of(text.text()).toAbsolutePath();
    } catch (InvalidPathException _) {
      throw text.refused("the path of a file");
    }
  }
}
