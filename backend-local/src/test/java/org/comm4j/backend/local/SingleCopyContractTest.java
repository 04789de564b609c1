package org.comm4j.backend.local;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.FutureTask;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// `shm` keeps the contract where ranks copy from each other's memory whenever they can.
class SingleCopyContractTest extends CommunicatorContract {
  @TempDir Path folder;

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

  /// A peer may have read anything; the rank, which waits until that has, tells all.
  @ParameterizedTest
  @ValueSource(ints = {10_000, 100_000, 4_000_000})
  @Timeout(60)
  void broadcast_memoryClosedByAnotherThread_breaksTheCommunicator(int count) throws Exception {
    closedByAnotherThread(
        count,
        (comm, data) -> comm.broadcast(data, 0),
        comm -> comm.broadcast(new float[count], 0));
  }

  /// So it is where that rank waits for data of the others'.
  @ParameterizedTest
  @ValueSource(ints = {10_000, 100_000, 4_000_000})
  @Timeout(60)
  void allGather_memoryClosedByAnotherThread_breaksTheCommunicator(int count) throws Exception {
    closedByAnotherThread(
        count,
        (comm, data) -> comm.allGather(data, CommData.of(new float[2 * count])),
        comm -> comm.allGather(new float[count], new float[2 * count]));
  }

  private void closedByAnotherThread(
      int count, BiConsumer<Communicator, CommData> mine, Consumer<Communicator> theirs)
      throws Exception {
    SingleCopyTest.assumePermitted();
    try (LocalGroup group = open(2, CommConfig.builder().build())) {
      Communicator reader = group.communicators().get(1);
      Arena arena = Arena.ofShared();
      MemorySegment memory = mapped(arena, Float.BYTES * (long) count);
      CommData data = CommData.of(DataType.FLOAT32, memory);
      var call =
          new FutureTask<Void>(() -> mine.accept(group.communicators().getFirst(), data), null);
      Thread thread = Thread.ofPlatform().start(call);
      while (thread.isAlive() && !isAwaiting(thread)) {
        Thread.onSpinWait();
      }
      arena.close();
      assertThatThrownBy(
              () -> {
                theirs.accept(reader);
                reader.barrier();
              })
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("memory of rank 0's")
          .hasMessageContaining("was closed while");
      assertThatThrownBy(call::get).hasCauseInstanceOf(AbortedException.class);
    }
  }

  /// Memory that is gone with its arena for sure.
  private MemorySegment mapped(Arena arena, long bytes) throws IOException {
    try (var file = FileChannel.open(folder.resolve("memory"), CREATE, READ, WRITE)) {
      return file.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
    }
  }

  private static boolean isAwaiting(Thread thread) {
    return Arrays.stream(thread.getStackTrace())
        .anyMatch(frame -> frame.getMethodName().equals("await"));
  }
}
