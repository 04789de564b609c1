package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import jcuda.driver.JCudaDriver;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.TransportFailedException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// In a program that lets JCuda throw what the driver returns, as many do first of all; that is for
/// the whole process. On the model of the driver.
@Timeout(60)
class JCudaExceptionsTest extends ModelGroups {
  @BeforeEach
  void letJCudaThrow() {
    CudaDriver.load(); // JCuda's class needs its library
    JCudaDriver.setExceptionsEnabled(true);
  }

  @AfterEach
  void letJCudaReturn() {
    JCudaDriver.setExceptionsEnabled(false);
  }

  /// The driver says each time that it is not done.
  @Test
  void call_peerComesLate_endsWell() {
    var asked = new CountDownLatch(1);
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (CommBuffer data = comm.allocate(DataType.FLOAT32, 4)) {
            assertSum(comm, data);
            var call = new Collective.AllReduce(data.data(), data.data(), ReduceOp.SUM);
            if (comm.rank() == 0) {
              Request reducing = comm.start(call);
              assertThat(reducing.isDone()).isFalse();
              asked.countDown();
              reducing.await();
            } else {
              assertThat(asked.await(30, TimeUnit.SECONDS)).isTrue();
              comm.run(call);
            }
          } finally {
            asked.countDown();
          }
        });
  }

  /// Its devices reach each other already.
  @Test
  void communicator_isNotTheFirst_opens() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (Communicator second = comm.duplicate();
              CommBuffer data = comm.allocate(DataType.FLOAT32, 4)) {
            assertSum(comm, data);
            assertSum(second, data);
          }
        });
  }

  @Test
  void allocate_deviceIsFull_freesWhatNobodyUsesOrSaysSo() {
    onRanks(
        1,
        CONFIG,
        comm -> {
          comm.allocate(DataType.INT8, 99_999).close(); // what can be freed
          model.fail("cuMemAlloc", OUT_OF_MEMORY);
          comm.allocate(DataType.INT8, 12_345); // closed with the communicator
          model.fail("cuMemAlloc", OUT_OF_MEMORY);
          assertThatThrownBy(() -> comm.allocate(DataType.INT8, 12_345))
              .isInstanceOf(TransportFailedException.class)
              .hasMessageContaining("close buffers");
        });
  }

  @Test
  void data_thatWasFreed_isRefused() {
    onRanks(
        1,
        CONFIG,
        comm -> {
          DeviceData data;
          try (var memory = OfProgram.allocate(DataType.FLOAT32, 4, 0)) {
            data = memory.data();
          }
          assertThatThrownBy(() -> comm.allReduce(data, ReduceOp.SUM))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("it was freed");
          assertThat(comm.failure()).isEmpty();
        });
  }

  /// Of which JCuda may not know the name.
  @Test
  void code_ofAnyFailure_isTheDrivers() {
    try (CudaDevice device = CudaDriver.load().open(0)) {
      for (int code : new int[] {INVALID_VALUE, LAUNCH_FAILED, 997, 999}) {
        model.failHere("cuMemAlloc", code);
        assertThatThrownBy(() -> device.allocate(8))
            .hasMessageContaining("cuMemAlloc returned " + code);
      }
    }
  }
}
