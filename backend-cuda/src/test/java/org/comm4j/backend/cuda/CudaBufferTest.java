package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.List;
import java.util.Map;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.JCudaDriver;
import org.comm4j.api.AbortedException;
import org.comm4j.api.BackendException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.Epilogue;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.TransportFailedException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Memory of devices that calls are given, the program's and allocated. On the model of the driver.
class CudaBufferTest extends ModelGroups {
  // --- data ---

  @Test
  void deviceData_notOfTheRanksDevice_isRefusedAndChangesNothing() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          CommBuffer buffer = comm.allocate(DataType.FLOAT32, 8);
          DeviceData data = (DeviceData) buffer.data();
          assertThat(data.device()).isEqualTo(comm.rank());
          assertRefused(
              comm,
              new DeviceData(DataType.FLOAT32, data.address(), 8, 5),
              "this rank's",
              "device 5");
          assertRefused(
              comm,
              new DeviceData(DataType.FLOAT32, data.address(), 100_000, data.device()),
              "400000 bytes",
              "where its allocation ends");
          assertRefused(
              comm,
              new DeviceData(DataType.FLOAT32, data.address() + 2, 4, data.device()),
              "a multiple of 4");
          try (Arena arena = Arena.ofConfined()) {
            long host = arena.allocate(32).address();
            assertRefused(
                comm,
                new DeviceData(DataType.FLOAT32, host, 8, data.device()),
                Long.toHexString(host),
                "it was freed, or is the host's");
          }
          buffer.close();
          assertRefused(comm, data, "of an arena or buffer that is closed");
          assertRefused(
              comm,
              new DeviceData(DataType.FLOAT32, data.address(), 8, data.device()),
              "it was freed");
          try (CommBuffer other = comm.allocate(DataType.FLOAT32, 8)) {
            assertThatThrownBy(
                    () -> comm.allReduce(other.data(), CommData.of(new float[8]), ReduceOp.SUM))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("all in a device's memory or all in the host's");
            assertEpilogueRefused(
                comm,
                other.data(),
                Epilogue.cast().plusBias(CommData.of(new float[8])),
                "× 1.0 + bias (FLOAT32 × 8)",
                "all in a device's memory or all in the host's");
            assertEpilogueRefused(
                comm,
                other.data(),
                Epilogue.cast()
                    .plusResidual(new DeviceData(DataType.FLOAT32, data.address(), 8, 5)),
                "this rank's",
                "device 5");
            assertSum(comm, other);
          }
        });
  }

  /// Peers' kernels would fault there, where they are on other devices. Such memory is of no
  /// context, which drivers say in one way or another.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void deviceData_ofAPool_isRefusedWhereOtherDevicesReadIt(boolean isContextRefused) {
    for (var options :
        List.of(
            Map.<String, String>of(),
            Map.of("COMM_CUDA_DEVICE", "0"),
            Map.of("COMM_CUDA_PATH", "naive"))) {
      onRanks(
          2,
          options(options),
          comm -> {
            try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 8)) {
              assertSum(comm, buffer);
              comm.barrier();
              model.poolMemory(isContextRefused);
              int ordinal = options.containsKey("COMM_CUDA_DEVICE") ? 0 : comm.rank();
              try (var memory = OfProgram.allocate(DataType.FLOAT32, 8, ordinal)) {
                DeviceData data = memory.data();
                if (options.isEmpty()) {
                  assertRefused(comm, data, "of a pool", "expected: memory of cuMemAlloc");
                  assertThatThrownBy(() -> comm.sharedMemory().register(data))
                      .isInstanceOf(IllegalArgumentException.class)
                      .hasMessageContainingAll("register", "of a pool");
                  assertThat(comm.failure()).isEmpty();
                } else {
                  comm.allReduce(data, ReduceOp.SUM);
                }
                comm.barrier(); // freeing waits for kernels
              }
              comm.barrier();
              assertSum(comm, buffer); // ours is not asked for
            }
          });
      model.reset();
    }
  }

  /// It may be on the device, but not within reach of kernels of the primary context.
  @Test
  void deviceData_ofAnotherContext_isRefused() {
    onRanks(
        1,
        CONFIG,
        comm -> {
          var context = new CUcontext();
          var address = new Address();
          try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 8)) {
            JCudaDriver.cuCtxCreate(context, 0, new CUdevice());
            JCudaDriver.cuMemAlloc(address, 32);
            var data = new DeviceData(DataType.FLOAT32, address.value(), 8, 0);
            assertRefused(comm, data, "allReduce: FLOAT32 × 8", "cuDevicePrimaryCtxRetain");
            assertThat(comm.failure()).isEmpty();
            assertSum(comm, buffer);
          } finally {
            JCudaDriver.cuMemFree(address);
            JCudaDriver.cuCtxPopCurrent(new CUcontext());
            JCudaDriver.cuCtxDestroy(context);
          }
        });
  }

  /// A pointer that shows its address.
  private static final class Address extends CUdeviceptr {
    long value() {
      return getNativePointer();
    }
  }

  private static void assertEpilogueRefused(
      Communicator comm, CommData data, Epilogue epilogue, String... says) {
    assertThatThrownBy(() -> comm.allReduce(data, data, ReduceOp.SUM, epilogue))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(says);
  }

  private static void assertRefused(Communicator comm, DeviceData data, String... says) {
    assertThatThrownBy(() -> comm.allReduce(data, ReduceOp.SUM))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(says);
  }

  @Test
  void allocate_deviceIsFull_saysSoAndStaysUsable() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          if (comm.rank() == 0) {
            model.fail("cuMemAlloc", OUT_OF_MEMORY);
            assertThatThrownBy(() -> comm.allocate(DataType.INT8, 12_345))
                .isInstanceOf(TransportFailedException.class)
                .hasMessageContainingAll("12345 bytes", "Model 0", "close buffers");
          }
          comm.barrier(); // so that no other rank's allocation is refused instead
          try (CommBuffer buffer = comm.allocate(DataType.FLOAT32, 3)) {
            assertSum(comm, buffer);
          }
        });
  }

  @Test
  void allocate_deviceHasFailed_breaksTheCommunicator() {
    List<Throwable> failures =
        failures(
            2,
            CONFIG,
            comm -> {
              if (comm.rank() == 1) {
                comm.receive(CommData.of(new int[1]), 0, 1); // which does not come
              }
              model.fail("cuStreamSynchronize", LAUNCH_FAILED);
              comm.allocate(DataType.INT8, 12_345);
            });

    assertThat(failures.get(0)).isInstanceOf(BackendException.class).hasMessageContaining("719");
    assertThat(failures.get(1)).isInstanceOf(AbortedException.class).hasMessageContaining("719");
  }

  /// Freeing memory waits for kernels, and this one waits for a rank that comes later.
  @Test
  void allocate_deviceIsFullWhileACallWaits_saysSoAtOnce() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (CommBuffer data = comm.allocate(DataType.FLOAT32, 4)) {
            assertSum(comm, data);
            comm.allocate(DataType.INT8, 99_999).close(); // what could be freed
            comm.barrier(); // so that no other rank's allocation is refused instead
            if (comm.rank() == 0) {
              Request waiting =
                  comm.start(new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM));
              model.fail("cuMemAlloc", OUT_OF_MEMORY);
              assertThatThrownBy(() -> comm.allocate(DataType.INT8, 12_345))
                  .isInstanceOf(TransportFailedException.class);
              comm.send(CommData.of(1), 1, 1);
              waiting.await();
            } else {
              comm.receive(CommData.of(new int[1]), 0, 1);
              comm.allReduce(data.data(), ReduceOp.SUM);
            }
          }
        });
  }

  /// Also where that is another rank's, on another device: the driver may let them wait together.
  @Test
  void allocate_deviceIsFullWhileAnotherRanksCallWaits_freesNothing() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (CommBuffer data = comm.allocate(DataType.FLOAT32, 4)) {
            assertSum(comm, data);
            comm.allocate(DataType.INT8, 99_999).close(); // what could be freed
            comm.barrier();
            if (comm.rank() == 0) {
              comm.receive(CommData.of(new int[1]), 1, 1);
              model.fail("cuMemAlloc", OUT_OF_MEMORY);
              assertThatThrownBy(() -> comm.allocate(DataType.INT8, 12_345))
                  .isInstanceOf(TransportFailedException.class);
              comm.allReduce(data.data(), ReduceOp.SUM);
              comm.barrier(); // that call has ended there too
              model.fail("cuMemAlloc", OUT_OF_MEMORY);
              comm.allocate(DataType.INT8, 12_345).close();
            } else {
              Request waiting =
                  comm.start(new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM));
              comm.send(CommData.of(1), 0, 1);
              waiting.await();
              comm.barrier();
            }
            comm.barrier();
          }
        });
  }

  @Test
  void close_bufferInUse_isRefused() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          CommBuffer buffer = comm.allocate(DataType.FLOAT32, 4);
          if (comm.rank() == 0) {
            Request reducing =
                comm.start(new Collective.AllReduce(buffer.data(), buffer.data(), ReduceOp.SUM));
            assertThatThrownBy(buffer::close)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContainingAll("allReduce(SUM, FLOAT32 × 4)", "in flight");
            comm.send(CommData.of(1), 1, 1);
            reducing.await();
          } else {
            comm.receive(CommData.of(new int[1]), 0, 1);
            comm.allReduce(buffer.data(), ReduceOp.SUM);
          }
          buffer.close();
        });
  }
}
