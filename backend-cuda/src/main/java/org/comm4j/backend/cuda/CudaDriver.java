package org.comm4j.backend.cuda;

import java.io.IOException;
import java.util.Set;
import java.util.function.IntSupplier;
import java.util.stream.IntStream;
import jcuda.CudaException;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import org.comm4j.api.BackendException;
import org.comm4j.api.BackendUnavailableException;

/// NVIDIA's driver in this process, loaded and found to be good enough. Thread-safe.
final class CudaDriver {
  /// CUDA 12.0, whose PTX the kernels are in.
  static final int OLDEST_VERSION = 12_000;

  private static final int NO_DEVICE = 100;
  private static final int CODES = 1000; // CUDA_ERROR_UNKNOWN is the last

  /// What a driver says when a device's kernels have been stopped and no call on it goes well any
  /// more, besides what is newer than JCuda.
  private static final Set<Integer> FAILED =
      Set.of(
          CUresult.CUDA_ERROR_DEINITIALIZED,
          CUresult.CUDA_ERROR_INVALID_CONTEXT,
          CUresult.CUDA_ERROR_ECC_UNCORRECTABLE,
          CUresult.CUDA_ERROR_NVLINK_UNCORRECTABLE,
          CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
          CUresult.CUDA_ERROR_LAUNCH_TIMEOUT,
          CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED,
          CUresult.CUDA_ERROR_ASSERT,
          CUresult.CUDA_ERROR_HARDWARE_STACK_ERROR,
          CUresult.CUDA_ERROR_ILLEGAL_INSTRUCTION,
          CUresult.CUDA_ERROR_MISALIGNED_ADDRESS,
          CUresult.CUDA_ERROR_INVALID_ADDRESS_SPACE,
          CUresult.CUDA_ERROR_INVALID_PC,
          CUresult.CUDA_ERROR_LAUNCH_FAILED,
          CUresult.CUDA_ERROR_MPS_CONNECTION_FAILED,
          CUresult.CUDA_ERROR_MPS_RPC_FAILURE,
          CUresult.CUDA_ERROR_MPS_SERVER_NOT_READY,
          CUresult.CUDA_ERROR_MPS_CLIENT_TERMINATED,
          CUresult.CUDA_ERROR_UNKNOWN);

  private final Libcuda library;
  private final int devices;

  private CudaDriver(Libcuda library, int devices) {
    this.library = library;
    this.devices = devices;
  }

  /// Loads and initialises the driver.
  ///
  /// @throws BackendUnavailableException if there is none, if it is too old, or if it has no device
  static CudaDriver load() {
    Libcuda library = loadLibrary();
    try {
      int version = library.version();
      if (version < OLDEST_VERSION) {
        throw unavailable(
            "NVIDIA's driver is for CUDA %d.%d (expected: 12.0 or newer)"
                .formatted(version / 1000, version % 1000 / 10),
            "install a newer driver, 525 at least");
      }
      library.initialise();
      JCudaLoader.load();
      int[] count = new int[1];
      library.check(code(() -> JCudaDriver.cuDeviceGetCount(count)), "cuDeviceGetCount");
      return new CudaDriver(library, count[0]);
    } catch (BackendException e) {
      throw e.code() == NO_DEVICE
          ? unavailable(
              "NVIDIA's driver finds no GPU",
              "see what nvidia-smi -L says, and whether CUDA_VISIBLE_DEVICES hides them")
          : unavailable(String.valueOf(e.getMessage()), "see what nvidia-smi says");
    } catch (IOException | UnsatisfiedLinkError e) {
      throw unavailable(
          "JCuda's library can't be loaded: " + e.getMessage(),
          "see that java.io.tmpdir can be written to and that libstdc++ is installed");
    }
  }

  private static Libcuda loadLibrary() {
    try {
      return Libcuda.load();
    } catch (IllegalArgumentException e) {
      throw unavailable(
          "NVIDIA's driver can't be loaded: " + e.getMessage(),
          "install it, 525 or newer; in a container, start it with the NVIDIA Container Toolkit");
    }
  }

  private static BackendUnavailableException unavailable(String reason, String remedy) {
    return new BackendUnavailableException(CudaProvider.NAME, reason, remedy);
  }

  /// {@return how many devices there are}
  int devices() {
    return devices;
  }

  /// {@return the library, for what JCuda doesn't give}
  Libcuda library() {
    return library;
  }

  /// Opens a device.
  ///
  /// @param ordinal in `0..devices()-1`
  /// @return the caller closes it
  /// @throws BackendUnavailableException if its kernels can't be ours
  CudaDevice open(int ordinal) {
    return CudaDevice.open(this, ordinal);
  }

  /// {@return whether a call failed for want of memory}
  static boolean isFull(BackendException e) {
    return e.code() == CUresult.CUDA_ERROR_OUT_OF_MEMORY;
  }

  /// {@return whether a call failed since the device has: then nothing runs on it any more} Else
  /// kernels may run on, whatever was asked.
  static boolean isOver(BackendException e) {
    return FAILED.contains(e.code());
  }

  /// {@return what a call of JCuda's returned} Also where the program lets JCuda throw that
  /// (`JCudaDriver.setExceptionsEnabled`), which is a switch of the whole process.
  static int code(IntSupplier call) {
    try {
      return call.getAsInt();
    } catch (CudaException e) {
      return codeOf(e);
    }
  }

  /// It has but the code's name.
  private static int codeOf(CudaException thrown) {
    return IntStream.range(1, CODES)
        .filter(code -> CUresult.stringFor(code).equals(thrown.getMessage()))
        .findFirst()
        .orElseThrow(() -> thrown);
  }

  /// Throws unless a call went well, by what it returned.
  void check(int code, String function) {
    library.check(code, function);
  }

  /// Throws unless a call of JCuda's goes well.
  void check(IntSupplier call, String function) {
    library.check(code(call), function);
  }
}
