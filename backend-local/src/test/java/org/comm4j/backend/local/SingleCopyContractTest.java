package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.concurrent.FutureTask;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.Test;

/// `shm` keeps the contract where ranks copy from each other's memory whenever they can.
class SingleCopyContractTest extends CommunicatorContract {
  private static final int COUNT = 100_000;

  /// What moves data, and what becomes of memory that is closed.
  @Override
  protected String wanted() {
    return ".*(anyArguments|leftFolds|D17).*";
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return ThreadGroups.open(
        new ShmProvider(), size, config.toBuilder().option("COMM_SHM_SINGLE_COPY", "on").build());
  }

  /// Nobody could tell a peer in time: but the rank, which waits until that has read, tells all.
  @Test
  void broadcast_memoryClosedByAnotherThread_breaksTheCommunicator() throws Exception {
    try (LocalGroup group = open(2, CommConfig.builder().build())) {
      Communicator root = group.communicators().getFirst();
      Communicator reader = group.communicators().get(1);
      Arena arena = Arena.ofShared();
      MemorySegment memory = arena.allocate(ValueLayout.JAVA_FLOAT, COUNT);
      var call =
          new FutureTask<Void>(
              () -> root.broadcast(CommData.of(DataType.FLOAT32, memory), 0), null);
      Thread thread = Thread.ofPlatform().start(call);
      while (thread.isAlive() && !isAwaiting(thread)) {
        Thread.onSpinWait();
      }
      arena.close();
      float[] received = new float[COUNT];
      assertThatThrownBy(
              () -> {
                reader.broadcast(received, 0);
                reader.barrier();
              })
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("memory of rank 0's")
          .hasMessageContaining("was closed while");
      assertThatThrownBy(call::get).hasCauseInstanceOf(AbortedException.class);
    }
  }

  private static boolean isAwaiting(Thread thread) {
    return Arrays.stream(thread.getStackTrace())
        .anyMatch(frame -> frame.getMethodName().equals("await"));
  }
}
