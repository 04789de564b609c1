package org.comm4j.backend.cuda;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/// `cuda` keeps the contract on the model of the driver, which has two devices, or on GPUs
/// (`gpu-check`): buffers that communicators allocate are in their memory. Ranks are threads.
abstract class CudaContract extends CommunicatorContract {
  private static final int THREADS = 16; // of a block: each is one of the host

  private static final String COLLECTIVES = "(.*anyArguments.*|E\\d.*)";

  private final Map<String, String> options;
  private final boolean isOneProcess;
  private final boolean isWhole;

  @TempDir Path root;

  /// @param isOneProcess whether ranks are of one process, not each of its own
  /// @param isWhole whether all rules are checked, not only the collectives and their epilogues on
  ///   fewer sizes
  CudaContract(Map<String, String> options, boolean isOneProcess, boolean isWhole) {
    this.options = options;
    this.isOneProcess = isOneProcess;
    this.isWhole = isWhole;
  }

  @BeforeEach
  void reset() {
    if (isOneProcess && TestDevice.isReal()) {
      return;
    }
    ModelDriver model = ModelDriver.get().reset(); // skips the test on a GPU
    if (!isOneProcess) {
      model.openOwn();
    }
  }

  @Override
  protected CommConfig config() {
    CommConfig.Builder config = super.config().toBuilder();
    options.forEach(config::option);
    return config.build();
  }

  @Override
  protected String wanted() {
    return isWhole ? super.wanted() : COLLECTIVES;
  }

  @Override
  protected List<Integer> otherSizes() {
    return isWhole ? super.otherSizes() : List.of(3);
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) throws IOException {
    if (TestDevice.isReal()) {
      return ThreadGroups.open(new CudaProvider(), size, config);
    }
    var host = new FakeHost(root).library("usr/lib64/libcuda.so.1").device("nvidia0");
    var provider =
        new CudaProvider(
            host.files(), isOneProcess ? () -> CudaRank.PROCESS : UUID::randomUUID, THREADS);
    return ThreadGroups.open(provider, size, config);
  }
}
