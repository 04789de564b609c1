package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/// `cuda` keeps the contract on the model of the driver, which has two devices, or on GPUs
/// (`gpu-check`): buffers that communicators allocate are in their memory. Ranks are threads.
abstract class CudaContract extends CommunicatorContract {
  private static final int THREADS = 8; // of a block: each is one of the host

  private static final String COLLECTIVES = "(.*anyArguments.*|E\\d.*)";

  private static final String EXPRESSIONS =
      Stream.of("float32", "float64", "bfloat16", "bfloat16 -> float32", "float64 -> bfloat16")
          .map(types -> types + ": " + EXPRESSION)
          .collect(Collectors.joining("; "));

  private final Map<String, String> options;
  private final boolean isOneProcess;
  private final boolean isWhole;

  @TempDir Path root;
  private int held;

  /// @param isOneProcess whether ranks are of one process, not each of its own
  /// @param isWhole whether all rules are checked, not only the collectives and their epilogues on
  ///   3 ranks
  CudaContract(Map<String, String> options, boolean isOneProcess, boolean isWhole) {
    this.options = options;
    this.isOneProcess = isOneProcess;
    this.isWhole = isWhole;
  }

  @BeforeEach
  void reset() {
    held = reset(isOneProcess);
  }

  @AfterEach
  void nothingIsLeft() {
    assertHeld(held);
  }

  /// Begins with a new model, where there is no GPU.
  ///
  /// @param isOneProcess if not, tests are skipped on a GPU
  /// @return how many things it holds
  static int reset(boolean isOneProcess) {
    if (isOneProcess && TestDevice.isReal()) {
      return 0;
    }
    ModelDriver model = ModelDriver.get().reset();
    if (!isOneProcess) {
      model.openOwn();
    }
    return model.held();
  }

  /// Waits until the model holds so many things, else who counts next does so while they are given
  /// back.
  static void assertHeld(int expected) {
    if (!TestDevice.isReal()) {
      assertThat(ModelDriver.get().heldSoon(expected)).isEqualTo(expected);
    }
  }

  @Override
  protected CommConfig config() {
    CommConfig.Builder config = super.config().toBuilder();
    options.forEach(config::option);
    if (TestDevice.isReal()) {
      RealNvrtc.find()
          .ifPresent(file ->
              config
                  .option(Expression.VARIABLE, EXPRESSIONS)
                  .option("COMM_CUDA_NVRTC", file.toString()));
      return config.build();
    }
    return config.option(Expression.VARIABLE, EXPRESSIONS).build();
  }

  @Override
  protected String wanted() {
    return isWhole ? super.wanted() : COLLECTIVES;
  }

  @Override
  protected int size() {
    return isWhole ? super.size() : 3;
  }

  /// On a GPU all for which there are kernels of one stage or two. The model takes long, and the
  /// kernels' own tests have 1 to 8 ranks on it.
  @Override
  protected List<Integer> otherSizes() {
    if (!isWhole) {
      return List.of();
    }
    if (TestDevice.isReal()) {
      return List.of(1, 2, 3, 5, 6, 7, 8);
    }
    return Boolean.getBoolean("comm4j.full") ? super.otherSizes() : List.of(1, 2, 3);
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) throws IOException {
    return open(root, isOneProcess, size, config);
  }

  /// Threads with devices.
  ///
  /// @param root an empty folder
  static LocalGroup open(Path root, boolean isOneProcess, int size, CommConfig config)
      throws IOException {
    if (TestDevice.isReal()) {
      return ThreadGroups.open(new CudaProvider(), size, config);
    }
    var host = new FakeHost(root).library("usr/lib64/libcuda.so.1").device("nvidia0");
    var provider =
        new CudaProvider(
            host.files(),
            isOneProcess ? () -> CudaRank.PROCESS : UUID::randomUUID,
            THREADS,
            new ModelCompiler());
    return isOneProcess
        ? ThreadGroups.open(provider, size, config)
        : ModelGroups.openProcesses(provider, size, config);
  }
}
