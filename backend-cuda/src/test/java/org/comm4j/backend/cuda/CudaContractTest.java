package org.comm4j.backend.cuda;

import java.util.Map;

/// The contract where all ranks are of one process and peers read data where it is.
class CudaContractTest extends CudaContract {
  CudaContractTest() {
    super(Map.of(), true, true);
  }
}
