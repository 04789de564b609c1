package org.comm4j.backend.cuda;

import java.time.Duration;
import java.util.UUID;

/// The device on which kernels are tested: one of the model's, or, where the system property
/// `comm4j.gpu` is true, the host's first GPU. It stays open for all tests of a JVM.
final class TestDevice {
  private static final boolean IS_REAL = Boolean.getBoolean("comm4j.gpu");

  private final Gpu gpu;

  private TestDevice(Gpu gpu) {
    this.gpu = gpu;
  }

  private static final class Holder {
    private static final TestDevice FOUND =
        new TestDevice(Gpu.open(CudaDriver.load(), 0, UUID.randomUUID(), Duration.ofMinutes(1)));
  }

  /// {@return whether tests run on a GPU, where no model may be loaded}
  static boolean isReal() {
    return IS_REAL;
  }

  /// The device; where there is neither a GPU nor a compiler for the model the test is skipped.
  static TestDevice get() {
    if (!IS_REAL) {
      ModelDriver.get().reset();
    }
    return Holder.FOUND;
  }

  CudaDevice device() {
    return gpu.device();
  }

  /// {@return a kernel} All are compiled when the first one is asked for, as kernels of tests wait
  /// for each other.
  CudaDevice.Kernel function(KernelName kernel) {
    gpu.compileAll();
    return gpu.kernel(kernel);
  }
}
