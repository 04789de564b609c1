package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.comm4j.core.transport.PeerMemory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What `docs/tuning.md` says about windows.
class WindowLayoutTest {
  private static final long MIB = 1 << 20;

  @Test
  void tuningPage_saysWhatStagingTakes() throws IOException {
    assertThat(Files.readString(Path.of("../docs/tuning.md")))
        .containsPattern("Up to half of the\\s+window is for staging, at most 1 MiB an area");
  }

  /// From the smallest that the option allows to the largest.
  @ParameterizedTest
  @ValueSource(longs = {MIB, 2 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB, 1024 * 1024 * MIB})
  void staging_takesHalfOfTheWindowAndAtMost1MiBAnArea(long windowBytes) {
    WindowLayout layout = WindowLayout.of(windowBytes);
    long areas = 2L * WindowLayout.LANES;
    assertThat(layout.hasLanes()).isTrue();
    assertThat(layout.stageBytes())
        .isLessThanOrEqualTo(MIB)
        .isGreaterThan(Math.min(MIB, windowBytes / 2 / areas) - WindowLayout.PAGE_BYTES);
    assertThat(areas * layout.stageBytes()).isLessThanOrEqualTo(windowBytes / 2);
    assertThat(layout.buffersStart()).isLessThan(windowBytes);
  }

  @Test
  void flags_haveMemoryBehindThemFromTheStart() {
    assertThat(WindowLayout.FLAG_BYTES).isLessThanOrEqualTo(PeerMemory.READY_BYTES);
  }

  @Test
  void window_ofTheDefault_has1MiBForAnArea() {
    assertThat(WindowLayout.of(1024 * MIB).stageBytes()).isEqualTo(MIB);
  }
}
