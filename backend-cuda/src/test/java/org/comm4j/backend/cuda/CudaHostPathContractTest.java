package org.comm4j.backend.cuda;

import java.util.Map;

/// The collectives where all data goes through the host, in chunks.
class CudaHostPathContractTest extends CudaContract {
  CudaHostPathContractTest() {
    super(Map.of("COMM_CUDA_PATH", "naive", "COMM_CUDA_CHUNK", "65536"), true, false);
  }
}
