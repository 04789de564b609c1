package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BindingTest {
  @TempDir Path system;

  @Test
  void command_twoThreadsPerCore_bindsToBoth() throws IOException {
    siblings("0,2", "1,3", "0,2", "1,3");
    assertThat(places(2, Set.of(0, 1, 2, 3))).containsExactly("0,2", "1,3");
  }

  @Test
  void command_someProcessorsAllowed_bindsToNoOthers() throws IOException {
    siblings("0-1", "0-1", "2-3", "2-3");
    assertThat(places(2, Set.of(1, 2, 3))).containsExactly("1", "2,3");
  }

  @Test
  void command_kernelDoesNotTell_takesEachForACore() {
    assertThat(places(3, Set.of(7, 5, 6))).containsExactly("5", "6", "7");
  }

  @Test
  void of_moreRanksThanCores_saysSo() throws IOException {
    siblings("0-1", "0-1");
    assertThatThrownBy(() -> Binding.of(2, Set.of(0, 1), 2, system))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll("--bind-to: core", "2 ranks on 1 cores", "leave it out");
  }

  @Test
  void of_quotaOfFewerProcessors_saysSo() {
    assertThatThrownBy(() -> Binding.of(3, Set.of(0, 1, 2, 3), 2, system))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll("--bind-to: core", "3 ranks with the time of 2 processors");
  }

  @Test
  void of_processorsUnknown_saysSo() {
    assertThatThrownBy(() -> Binding.of(2, Set.of(), 2, system))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll("--bind-to: core", "the kernel does not say");
  }

  @Test
  void checkTool_notOnThePath_namesItsPackage() {
    assertThatThrownBy(() -> Binding.checkTool(system + ":" + system))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll("--bind-to: core", "taskset", "util-linux");
  }

  private void siblings(String... lists) throws IOException {
    for (int i = 0; i < lists.length; i++) {
      Path topology = Files.createDirectories(system.resolve("cpu" + i + "/topology"));
      Files.writeString(topology.resolve("thread_siblings_list"), lists[i] + "\n");
    }
  }

  private List<String> places(int ranks, Set<Integer> processors) {
    Binding binding = Binding.of(ranks, processors, processors.size(), system);
    return java.util.stream.IntStream.range(0, ranks)
        .mapToObj(rank -> binding.command(rank, List.of("program")))
        .peek(command -> assertThat(command).startsWith("taskset", "-c").endsWith("program"))
        .map(command -> command.get(2))
        .toList();
  }
}
