package org.comm4j.backend.local;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.FutureTask;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.TransportFailedException;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.Test;
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

  /// As where a policy of the kernel's has changed: the peer that lends it lives, and has no reason
  /// to say anything.
  @Test
  @Timeout(60)
  void broadcast_kernelCopiesNoLonger_saysSoLongBeforeTheDeadline() throws Exception {
    noLongerCopied(comm -> data -> comm.broadcast(data, 0));
  }

  @Test
  @Timeout(60)
  void message_kernelCopiesNoLonger_saysSoLongBeforeTheDeadline() throws Exception {
    noLongerCopied(comm ->
        data -> {
          if (comm.rank() == 0) {
            comm.send(data, 1, 1);
          } else {
            comm.receive(data, 0, 1);
          }
        });
  }

  /// Makes a call on memory that is lent, and again when most of it is gone.
  private void noLongerCopied(Function<Communicator, Consumer<CommData>> call) throws Exception {
    SingleCopyTest.assumePermitted();
    int bytes = 1 << 20;
    CommConfig config = CommConfig.builder().timeout(Duration.ofSeconds(40)).build();
    try (LocalGroup group = open(2, config);
        var file = FileChannel.open(folder.resolve("file"), CREATE, READ, WRITE)) {
      MemorySegment memory = file.map(FileChannel.MapMode.READ_WRITE, 0, bytes, Arena.ofAuto());
      CommData lent = CommData.of(DataType.INT8, memory);
      Consumer<CommData> owner = call.apply(group.communicators().getFirst());
      Consumer<CommData> reader = call.apply(group.communicators().get(1));
      for (boolean isGone : new boolean[] {false, true}) {
        if (isGone) {
          file.truncate(4096);
        }
        var owners = new FutureTask<Void>(() -> owner.accept(lent), null);
        Thread.ofPlatform().start(owners);
        Throwable thrown = catchThrowable(() -> reader.accept(CommData.of(new byte[bytes])));
        if (isGone) {
          assertThat(thrown)
              .isInstanceOf(TransportFailedException.class)
              .hasMessageContaining("rank 1 could not copy the memory of rank 0")
              .hasMessageContaining("COMM_SHM_SINGLE_COPY=off");
          assertThatThrownBy(owners::get).hasCauseInstanceOf(AbortedException.class);
        } else {
          assertThat(thrown).isNull();
          owners.get();
        }
      }
    }
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
