package org.comm4j.backend.cuda;

import java.util.List;
import java.util.Map;

/// The collectives where all data goes through the host.
class CudaHostPathContractTest extends CudaContract {
  CudaHostPathContractTest() {
    super(Map.of("COMM_CUDA_PATH", "naive"), true);
  }

  @Override
  protected String wanted() {
    return ".*anyArguments.*";
  }

  @Override
  protected List<Integer> otherSizes() {
    return List.of(3);
  }
}
