package org.comm4j.backend.cuda;

import java.nio.file.InvalidPathException;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import org.comm4j.api.CommConfig;

/// The settings of this backend.
///
/// | variable | default | |
/// |---|---|---|
/// | `COMM_CUDA_DEVICE` | the rank's number on its host, modulo the devices | the number of the device that the rank owns |
/// | `COMM_CUDA_BLOCKS` | half as many as the device has multiprocessors, shared out among the launch's ranks on it | how many blocks a kernel has at most, 1 to 512 |
/// | `COMM_CUDA_CHUNK` | 16777216 | bytes of data that a rank shows its peers, or takes through the host, at once, where they can't read it in place: a multiple of 4096 from 65536 to 1 GiB |
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
  private static final String DEFAULT_CHUNK = "16777216";

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
    String device = config.options().get(PREFIX + "DEVICE");
    String blocks = config.options().get(PREFIX + "BLOCKS");
    String chunk = config.options().getOrDefault(PREFIX + "CHUNK", DEFAULT_CHUNK);
    return new CudaOptions(
        device == null
            ? OptionalInt.empty()
            : OptionalInt.of(number("DEVICE", device, 0, 1023, "the number of a device")),
        blocks == null ? 0 : number("BLOCKS", blocks, 1, Window.MAX_BLOCKS, "1..512"),
        chunk(chunk),
        path(config.options().getOrDefault(PREFIX + "PATH", "auto")),
        Expression.all(config.options().getOrDefault(Expression.VARIABLE, "")),
        Optional.ofNullable(config.options().get(PREFIX + "NVRTC")).map(CudaOptions::file));
  }

  private static java.nio.file.Path file(String text) {
    try {
      return java.nio.file.Path.of(text).toAbsolutePath();
    } catch (InvalidPathException _) {
      throw refused("NVRTC", text, "the path of a file");
    }
  }

  private static long chunk(String text) {
    String expected = "a multiple of 4096 from 65536 to 1073741824";
    int bytes = number("CHUNK", text, LEAST_CHUNK, MOST_CHUNK, expected);
    if (bytes % CHUNK_STEP != 0) {
      throw refused("CHUNK", text, expected);
    }
    return bytes;
  }

  private static Path path(String text) {
    for (Path path : Path.values()) {
      if (path.name().toLowerCase(Locale.ROOT).equals(text)) {
        return path;
      }
    }
    throw refused("PATH", text, "auto, p2p or naive");
  }

  private static int number(String name, String text, int least, int most, String expected) {
    try {
      int number = Integer.parseInt(text);
      if (number >= least && number <= most) {
        return number;
      }
    } catch (NumberFormatException _) {
      // refused below
    }
    throw refused(name, text, expected);
  }

  private static IllegalArgumentException refused(String name, String text, String expected) {
    return new IllegalArgumentException(
        "%s%s: '%s' (expected: %s)".formatted(PREFIX, name, text, expected));
  }
}
