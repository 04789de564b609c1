package org.comm4j.backend.cuda;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.UUID;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.io.TempDir;

/// `cuda` keeps the contract on the model of the driver: buffers that communicators allocate are in
/// the memory of devices. Ranks are threads.
class CudaContractTest {
  private static final int THREADS = 16; // of a block: each is one of the host

  /// Ranks of one process, two devices.
  @Nested
  class OneProcess extends Contract {
    OneProcess() {
      super(Map.of(), true);
    }
  }

  /// The same where data goes another way: what moves it, and what must end then.
  abstract static class OtherWay extends Contract {
    OtherWay(Map<String, String> options, boolean isOneProcess) {
      super(options, isOneProcess);
    }

    @Override
    protected String wanted() {
      return ".*(anyArguments|leftFolds|D1[0-9]|F[0-9]|L[0-9]).*";
    }
  }

  /// Each rank is of a process of its own to the others: windows are opened by handles.
  @Nested
  class Processes extends OtherWay {
    Processes() {
      super(Map.of("COMM_CUDA_CHUNK", "65536"), false);
    }
  }

  /// Nobody reaches anybody's memory.
  @Nested
  class ThroughTheHost extends OtherWay {
    ThroughTheHost() {
      super(Map.of("COMM_CUDA_PATH", "naive"), true);
    }
  }

  abstract static class Contract extends CommunicatorContract {
    private final Map<String, String> options;
    private final boolean isOneProcess;

    @TempDir Path root;

    Contract(Map<String, String> options, boolean isOneProcess) {
      this.options = options;
      this.isOneProcess = isOneProcess;
    }

    @BeforeEach
    void reset() {
      ModelDriver model = ModelDriver.get().reset();
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
    protected LocalGroup open(int size, CommConfig config) throws IOException {
      var host = new FakeHost(root).library("usr/lib64/libcuda.so.1").device("nvidia0");
      var provider =
          new CudaProvider(
              host.files(), isOneProcess ? () -> CudaRank.PROCESS : UUID::randomUUID, THREADS);
      return ThreadGroups.open(provider, size, config);
    }
  }
}
