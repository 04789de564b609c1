package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.comm4j.api.BackendInfo;
import org.comm4j.api.Backends;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.CommException;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class LocalProviderTest {
  private static final CommConfig CONFIG =
      CommConfig.fromEnvironment(Map.of("COMM_BACKEND", "local", "COMM_LOCAL_WINDOW", "64MiB"));

  @Test
  void providers_areFound() {
    assertThat(Backends.availableBackends(CONFIG))
        .filteredOn(BackendInfo::isReady)
        .extracting(BackendInfo::name)
        .contains("local", "shm");
  }

  @Test
  void providers_badWindow_areListedWithIt() {
    var config =
        CommConfig.fromEnvironment(Map.of("COMM_LOCAL_WINDOW", "much", "COMM_SHM_WINDOW", "much"));
    assertThat(Backends.availableBackends(config))
        .extracting(each -> each.reason().orElse(""))
        .containsExactlyInAnyOrder(
            "COMM_LOCAL_WINDOW: 'much' (expected: a size from 1MiB to 1TiB, in bytes or with KiB, MiB, GiB or TiB)",
            "COMM_SHM_WINDOW: 'much' (expected: a size from 1MiB to 1TiB, in bytes or with KiB, MiB, GiB or TiB)");
  }

  @Test
  void availability_noSharedMemory_saysHowToGetIt(@TempDir Path folder) {
    assertThat(ShmProvider.availability(folder.resolve("none"), 1))
        .isEqualTo(
            Availability.unavailable(
                folder.resolve("none") + " is not there",
                "as root: mount -m -t tmpfs tmpfs " + folder.resolve("none")));
  }

  /// Also the one of the backend that is not used.
  @ParameterizedTest
  @ValueSource(strings = {"COMM_LOCAL_WINDOW", "COMM_SHM_WINDOW", "COMM_TIMEOUT", "COMM_CHECK"})
  void open_groupOfOneBadValue_isRefused(String variable) {
    assertThatThrownBy(
            () -> Communicators.open(CommConfig.fromEnvironment(Map.of(variable, "much"))).close())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(variable + ": 'much' (expected: ");
  }

  @ParameterizedTest
  @CsvSource({"auto, COMM_LOCAL_WINDOW", "auto, COMM_SHM_WINDOW", "local, COMM_LOCAL_WINDOW"})
  void openLocalGroup_badValue_isRefused(String backend, String variable) {
    var config = CommConfig.fromEnvironment(Map.of("COMM_BACKEND", backend, variable, "much"));
    assertThatThrownBy(() -> LocalGroup.open(2, config).close())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(variable + ": 'much' (expected: ");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 5})
  void launch_allReduce_sumsOverThreads(int size) {
    LocalGroup.run(
        size,
        CONFIG,
        communicator -> {
          for (int count : new int[] {1, 1000, 300_000}) {
            var values = new float[count];
            Arrays.fill(values, communicator.rank() + 1);
            communicator.allReduce(CommData.of(values), ReduceOp.SUM);
            assertThat(values).containsOnly(size * (size + 1) / 2f);
          }
        });
  }

  /// Nobody reads its window, so what is in it need not be there.
  @ParameterizedTest
  @ValueSource(strings = {"local", "shm"})
  void allocate_groupOfOne_isNotLimitedByTheWindow(String backend) throws Exception {
    var config =
        CommConfig.fromEnvironment(Map.of("COMM_LOCAL_WINDOW", "1MiB", "COMM_SHM_WINDOW", "1MiB"));
    BackendProvider provider = backend.equals("shm") ? new ShmProvider() : new LocalProvider();
    try (LocalGroup group = ThreadGroups.open(provider, 1, config)) {
      Communicator communicator = group.communicators().getFirst();
      try (CommBuffer buffer = communicator.allocate(DataType.INT8, 2 << 20);
          SharedRegion<HostData> region =
              communicator.sharedMemory().createRegion(DataType.INT8, 2 << 20)) {
        buffer.hostData().segment().fill((byte) 7);
        communicator.allReduce(buffer.data(), ReduceOp.SUM);
        region.write(0, buffer.hostData());
        region.fence();
        assertThat(region.data().segment().get(ValueLayout.JAVA_BYTE, (2 << 20) - 1))
            .isEqualTo((byte) 7);
      }
    }
  }

  @Test
  void launch_messagesAndBuffers_arrive() {
    LocalGroup.run(
        3,
        CONFIG,
        communicator -> {
          int right = (communicator.rank() + 1) % 3;
          int left = (communicator.rank() + 2) % 3;
          try (var mine = communicator.allocate(DataType.INT64, 100_000);
              var theirs = communicator.allocate(DataType.INT64, 100_000)) {
            mine.hostData().segment().fill((byte) communicator.rank());
            communicator.sendReceive(mine.data(), right, theirs.data(), left, 7);
            assertThat(theirs.hostData().segment().get(ValueLayout.JAVA_BYTE, 799_999))
                .isEqualTo((byte) left);
          }
        });
  }

  /// Else the other one waits until its deadline, and that is another exception.
  @Test
  void launch_oneReturnsWithAnOpenGroup_otherHearsThatItIsGone() {
    Queue<Communicator> groups = new ConcurrentLinkedQueue<>();
    assertThatThrownBy(() ->
            LocalGroup.run(
                2,
                CONFIG.toBuilder().timeout(Duration.ofSeconds(5)).build(),
                communicator -> {
                  Communicator group = communicator.duplicate();
                  groups.add(group);
                  if (communicator.rank() == 0) {
                    group.barrier();
                  }
                }))
        .isInstanceOf(PeerFailedException.class)
        .hasMessageContaining("rank 1");
    groups.forEach(Communicator::close);
  }

  @Test
  void launch_oneThrows_othersAreTold() {
    var told = new AtomicInteger();
    assertThatThrownBy(() ->
            LocalGroup.run(
                3,
                CONFIG,
                communicator -> {
                  if (communicator.rank() == 1) {
                    throw new IllegalStateException("on purpose");
                  }
                  try {
                    communicator.barrier();
                  } catch (PeerFailedException e) {
                    told.incrementAndGet();
                    throw e;
                  }
                }))
        .hasStackTraceContaining("on purpose");
    assertThat(told).hasValue(2);
  }

  @Test
  void launch_othersEndedOverAMismatch_namesTheMismatch() {
    Map<Integer, Thread> threads = new ConcurrentHashMap<>();
    var latest = new AtomicReference<Throwable>();
    assertThatThrownBy(() ->
            LocalGroup.run(
                3,
                CONFIG,
                communicator -> {
                  int rank = communicator.rank();
                  threads.put(rank, Thread.currentThread());
                  communicator.barrier();
                  if (rank == 2) { // when the others are gone
                    for (int other = 0; other < 2; other++) {
                      assertThat(
                              Objects.requireNonNull(threads.get(other))
                                  .join(Duration.ofSeconds(20)))
                          .isTrue();
                    }
                  }
                  CommData data = CommData.of(new int[1 + rank]);
                  try {
                    communicator.allReduce(data, data, ReduceOp.SUM);
                  } catch (CommException e) {
                    latest.set(e);
                    throw e;
                  }
                }))
        .hasStackTraceContaining("MismatchedCallException");
    assertThat(latest.get()).isInstanceOf(MismatchedCallException.class);
  }
}
