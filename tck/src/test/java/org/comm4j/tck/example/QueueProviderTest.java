package org.comm4j.tck.example;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.Pending;
import org.comm4j.api.spi.RankGroup;
import org.junit.jupiter.api.Test;

final class QueueProviderTest {
  @Test
  void launch_threeRanks_reduce() {
    int[][] data = {new int[10_000], new int[10_000], new int[10_000]};
    try (RankGroup group = new QueueProvider().launch(3, CommConfig.builder().build())) {
      List<Pending> pending = new ArrayList<>();
      for (int rank = 0; rank < 3; rank++) {
        Arrays.fill(data[rank], rank + 1);
        CommData own = CommData.of(data[rank]);
        var sum = new Collective.AllReduce(own, own, ReduceOp.SUM);
        pending.add(group.communicator(rank).submit(sum));
      }
      while (!pending.stream().map(Pending::isDone).reduce(true, Boolean::logicalAnd)) {
        Thread.onSpinWait();
      }

      pending.forEach(handle -> handle.await(0));
      assertThat(List.of(data)).allSatisfy(result -> assertThat(result).containsOnly(6));
    }
  }

  @Test
  void documentation_showsTheTransport() throws IOException {
    assertIsShown("QueueTransport", "/// The smallest");
  }

  @Test
  void documentation_showsSharedMemoryWithinHosts() throws IOException {
    assertIsShown("FooWithinHosts", "/// Shared memory");
  }

  private static void assertIsShown(String name, String beginning) throws IOException {
    Path source = Path.of("src/test/java/org/comm4j/tck/example", name + ".java");
    String code = Files.readString(source);
    assertThat(Files.readString(Path.of("../docs/writing-a-backend.md")))
        .contains(code.substring(code.indexOf(beginning)));
  }
}
