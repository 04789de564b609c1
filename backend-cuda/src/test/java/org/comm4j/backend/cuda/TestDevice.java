package org.comm4j.backend.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;

/// The device on which kernels are tested: one of the model's, or, where the system property
/// `comm4j.gpu` is true, the host's first GPU. It stays open for all tests of a JVM.
final class TestDevice {
  private static final boolean IS_REAL = Boolean.getBoolean("comm4j.gpu");

  private final CudaDevice device;
  private final Map<String, CUmodule> modules = new ConcurrentHashMap<>();
  private final Map<KernelName, CUfunction> functions = new ConcurrentHashMap<>();

  private TestDevice(CudaDevice device) {
    this.device = device;
  }

  private static final class Holder {
    private static final TestDevice FOUND = new TestDevice(CudaDriver.load().open(0));
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
    return device;
  }

  /// {@return a kernel, compiled when it is first asked for}
  CUfunction function(KernelName kernel) {
    return functions.computeIfAbsent(
        kernel,
        name ->
            device.function(
                modules.computeIfAbsent(name.module(), module -> device.load(ptx(module))),
                name.function()));
  }

  private static String ptx(String module) {
    try (InputStream in = CudaDevice.class.getResourceAsStream("ptx/" + module + ".ptx")) {
      if (in == null) {
        throw new AssertionError("no PTX of " + module);
      }
      return new String(in.readAllBytes(), StandardCharsets.US_ASCII);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
