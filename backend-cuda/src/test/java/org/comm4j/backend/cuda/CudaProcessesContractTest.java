package org.comm4j.backend.cuda;

import java.util.Map;

/// The collectives where each rank is of a process of its own to the others: windows are opened by
/// handles, and data goes through them in chunks.
class CudaProcessesContractTest extends CudaContract {
  CudaProcessesContractTest() {
    super(Map.of("COMM_CUDA_CHUNK", "65536"), false, false);
  }
}
