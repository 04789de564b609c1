package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

final class ProcessorsTest {
  private static final Set<Integer> BOTH = Set.of(0, 1);
  private static final Set<Integer> FIRST = Set.of(0);
  private static final Set<Integer> SECOND = Set.of(1);
  private static final Set<Integer> UNKNOWN = Set.of();

  @Test
  void parse_rangesAndNumbers_areAllThere() {
    assertThat(Processors.parse("0-2,8,10-11")).containsExactlyInAnyOrder(0, 1, 2, 8, 10, 11);
  }

  @Test
  void ofThread_someAreSwitchedOff_areThoseThatAreOn(@TempDir Path folder) throws IOException {
    Path status = folder.resolve("status");
    Path online = folder.resolve("online");
    Files.writeString(status, "Name:\tjava\nCpus_allowed_list:\t0-127\n");
    assertThat(Processors.ofThread(status, online)).hasSize(128); // nobody says which are on
    Files.writeString(online, "0-1,4\n");
    assertThat(Processors.ofThread(status, online)).containsExactlyInAnyOrder(0, 1, 4);
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void ofThisThread_onLinux_areNotFewerThanTheJvmSees() {
    assertThat(Processors.ofThisThread())
        .hasSizeGreaterThanOrEqualTo(Runtime.getRuntime().availableProcessors());
  }

  /// The kernel has 15 bytes of a thread's name, which end in the middle of a character.
  @Test
  @EnabledOnOs(OS.LINUX)
  void ofThisThread_nameThatTheKernelCuts_areKnown() throws Exception {
    var found = new CompletableFuture<Set<Integer>>();
    Thread.ofPlatform()
        .name("\u901a\u4fe1\u7ebf\u7a0b-\u5de5\u4f5c \ud83d\ude80")
        .start(() -> {
          try {
            found.complete(Processors.ofThisThread());
          } catch (RuntimeException e) {
            found.completeExceptionally(e);
          }
        });
    assertThat(found.get(10, TimeUnit.SECONDS)).isEqualTo(Processors.ofThisThread()).isNotEmpty();
  }

  @Test
  void areFewerThanRanks_eachBoundToItsOwn_isFalse() {
    assertThat(Processors.areFewerThanRanks(1, FIRST, List.of(FIRST, SECOND))).isFalse();
  }

  @Test
  void areFewerThanRanks_allBoundToOne_isTrue() {
    assertThat(Processors.areFewerThanRanks(1, FIRST, List.of(FIRST, FIRST))).isTrue();
  }

  @Test
  void areFewerThanRanks_twoOfThreeBoundToOne_isTrue() {
    Set<Integer> four = Set.of(0, 1, 2, 3);
    assertThat(Processors.areFewerThanRanks(4, four, List.of(four, FIRST, Set.of(0)))).isTrue();
    assertThat(Processors.areFewerThanRanks(4, four, List.of(four, FIRST, SECOND))).isFalse();
    assertThat(Processors.areFewerThanRanks(4, four, List.of(BOTH, FIRST, SECOND))).isTrue();
  }

  @Test
  void areFewerThanRanks_noneBound_comparesWithAll() {
    assertThat(Processors.areFewerThanRanks(2, BOTH, List.of(BOTH, BOTH))).isFalse();
    assertThat(Processors.areFewerThanRanks(2, BOTH, List.of(BOTH, BOTH, BOTH))).isTrue();
  }

  @Test
  void areFewerThanRanks_quotaOfOne_comparesWithTheQuota() {
    assertThat(Processors.areFewerThanRanks(1, BOTH, List.of(BOTH, BOTH))).isTrue();
  }

  @Test
  void areFewerThanRanks_notKnown_comparesWithWhatTheJvmSees() {
    assertThat(Processors.areFewerThanRanks(2, UNKNOWN, List.of(UNKNOWN, UNKNOWN))).isFalse();
    assertThat(Processors.areFewerThanRanks(1, FIRST, List.of(FIRST, UNKNOWN))).isTrue();
  }
}
