package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.HostData;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.junit.jupiter.api.Test;

/// Whatever is opened, called and closed, and however often: nothing stays behind.
class LeakTest {
  private static final CommConfig CONFIG = CommConfig.builder().backend("local").build();
  // a million takes a second on an idle machine, minutes on a crowded one
  private static final long CALLS = Boolean.getBoolean("comm4j.full") ? 1_000_000 : 100_000;
  private static final int COMMUNICATORS = 10_000;
  private static final int GROUPS = 200;

  /// What a process holds.
  private record Holdings(long heapBytes, int threads, long descriptors) {
    static Holdings now() throws IOException {
      // twice: the first collection finds what was unreachable, the second what cleaners let go
      System.gc();
      System.gc();
      try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
        return new Holdings(
            Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory(),
            Thread.getAllStackTraces().size(),
            descriptors.count());
      }
    }

    void assertNotAbove(Holdings before) {
      assertThat(heapBytes).as("heap").isLessThan(before.heapBytes + (8L << 20));
      assertThat(threads).as("threads").isLessThanOrEqualTo(before.threads);
      assertThat(descriptors).as("descriptors").isLessThanOrEqualTo(before.descriptors);
    }
  }

  @Test
  void allReduce_manyTimes_leavesNothing() throws Exception {
    call(20_000);
    Holdings before = Holdings.now();

    call(CALLS);

    Holdings.now().assertNotAbove(before);
  }

  private static void call(long times) {
    LocalGroup.run(
        2,
        CONFIG,
        communicator -> {
          HostData data = CommData.of(new double[1]);
          for (long i = 0; i < times; i++) {
            communicator.allReduce(data, ReduceOp.MAX);
          }
        });
  }

  @Test
  void duplicate_tenThousandTimes_leavesNothing() throws Exception {
    duplicate(500);
    Holdings before = Holdings.now();

    duplicate(COMMUNICATORS);

    Holdings.now().assertNotAbove(before);
  }

  private static void duplicate(int times) {
    LocalGroup.run(
        2,
        CONFIG,
        communicator -> {
          for (int i = 0; i < times; i++) {
            try (Communicator copy = communicator.duplicate()) {
              copy.barrier();
            }
          }
        });
  }

  @Test
  void group_openedAndClosed_leavesNothing() throws Exception {
    open(20);
    Holdings before = Holdings.now();

    open(GROUPS);

    Holdings.now().assertNotAbove(before);
  }

  private static void open(int times) {
    for (int i = 0; i < times; i++) {
      try (LocalGroup group = LocalGroup.open(3, CONFIG)) {
        assertThat(group.communicators()).hasSize(3);
      }
    }
  }
}
