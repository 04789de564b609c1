package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// On the model of the driver.
@Timeout(60)
class GpuTest {
  private int held;

  @BeforeEach
  void reset() {
    held = ModelDriver.get().reset().held();
  }

  /// What is closed is given back aside.
  @AfterEach
  void nothingIsLeft() {
    CudaContract.assertHeld(held);
  }

  /// Not on another device of the process either.
  @Test
  void whileIdle_noCallBeginsBeforeItsEnd() throws InterruptedException {
    CudaDriver driver = CudaDriver.load();
    var process = UUID.randomUUID();
    var begun = new AtomicBoolean();
    try (Gpu gpu = Gpu.open(driver, 0, process, Duration.ofMinutes(1));
        Gpu other = Gpu.open(driver, 1, process, Duration.ofMinutes(1))) {
      Thread calling = Thread.ofPlatform().unstarted(() -> begin(other, begun));
      boolean isDone =
          gpu.whileIdle(() -> {
            calling.start();
            while (calling.getState() != Thread.State.TIMED_WAITING) {
              Thread.onSpinWait();
            }
            assertThat(begun).isFalse();
          });
      assertThat(isDone).isTrue();
      calling.join();
      assertThat(begun).isTrue();
    }
  }

  /// Its context is gone when that has ended.
  @Test
  void keep_whileTheLastCloseGivesAllBack_isRefused() {
    ModelDriver model = ModelDriver.get();
    CudaDriver driver = CudaDriver.load();
    Gpu gpu = Gpu.open(driver, 0, UUID.randomUUID(), Duration.ofMinutes(1));
    gpu.memory().giveBack(512, gpu.memory().take(512));
    try (CudaDevice device = driver.open(0)) {
      CudaDevice.Stream ofProgram = device.createStream();
      CudaDevice.Event never = device.createEvent();
      model.holdEvents(true);
      try {
        device.record(never, ofProgram);
        assertThat(gpu.keep()).isTrue();
        gpu.close();
        gpu.close();
        model.awaitWaiting(1); // the driver frees that block
        assertThat(gpu.keep()).isFalse();
      } finally {
        model.holdEvents(false);
        device.await(ofProgram);
        device.destroy(never);
        device.destroy(ofProgram);
      }
    }
  }

  private static void begin(Gpu gpu, AtomicBoolean begun) {
    try {
      assertThat(gpu.begin(() -> begun.set(true), TimeUnit.MINUTES.toNanos(1))).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
