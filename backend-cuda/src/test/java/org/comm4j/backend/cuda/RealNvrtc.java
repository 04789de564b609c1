package org.comm4j.backend.cuda;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.comm4j.api.CommConfig;

/// NVIDIA's compiler at run time, where this host has it: needs no GPU.
final class RealNvrtc {
  /// The system property that names its file, where it is not found by itself.
  private static final String LIBRARY = "comm4j.nvrtc";

  private static final String MISSING =
      "no NVRTC found: give its file by -D%s or COMM_CUDA_NVRTC (libnvrtc.so.12 or .13, of a CUDA toolkit or the Python package nvidia-cuda-nvrtc)"
          .formatted(LIBRARY);

  private RealNvrtc() {}

  static Optional<Path> find() {
    return Optional.ofNullable(System.getProperty(LIBRARY))
        .or(() -> Optional.ofNullable(System.getenv("COMM_CUDA_NVRTC")))
        .map(Path::of)
        .or(() ->
            new NvrtcCompiler(new DriverFiles("", Path.of("/")))
                .file(CudaOptions.of(CommConfig.builder().build())))
        .filter(Files::exists);
  }

  /// The library's file; where there is none the calling test is skipped.
  static Path need() {
    assumeTrue(find().isPresent(), MISSING);
    return find().orElseThrow();
  }
}
