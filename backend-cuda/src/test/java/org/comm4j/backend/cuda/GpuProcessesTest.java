package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThatCode;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// What `gpu-check` does with processes on a GPU, on the model of the driver.
class GpuProcessesTest {
  @BeforeEach
  void reset() {
    ModelDriver.get().reset(); // skips the test on a GPU, and where there is no compiler
  }

  @Test
  void processes_oneIsKilled_othersGoOn() {
    assertThatCode(GpuProcesses::main).doesNotThrowAnyException();
  }
}
