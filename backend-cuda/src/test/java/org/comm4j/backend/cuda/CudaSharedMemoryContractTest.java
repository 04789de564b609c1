package org.comm4j.backend.cuda;

import java.io.IOException;
import java.nio.file.Path;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.SharedMemoryContract;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/// The rules of shared memory, with regions of the host's and of devices' memory.
class CudaSharedMemoryContractTest extends SharedMemoryContract {
  @TempDir Path root;
  private int held;

  @BeforeEach
  void reset() {
    held = CudaContract.reset(true);
  }

  @AfterEach
  void nothingIsLeft() {
    CudaContract.assertHeld(held);
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) throws IOException {
    return CudaContract.open(root, true, size, config);
  }
}
