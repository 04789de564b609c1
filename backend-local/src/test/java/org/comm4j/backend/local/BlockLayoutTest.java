package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What `docs/tuning.md` says about memory for each rank.
class BlockLayoutTest {
  private static final int KIB = 1 << 10;
  private static final int MIB = 1 << 20;
  private static final long WINDOW_BYTES = 1L << 30;

  @Test
  void tuningPage_saysWhatRingsTake() throws IOException {
    assertThat(Files.readString(Path.of("../docs/tuning.md")))
        .contains(
            "2 MiB for one or two, less than 5 MiB together for more, 36 KiB each from 128 on");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void rings_ofOneOrTwoPeers_have2MiBOfDataEach(int peers) {
    assertThat(of(peers).dataBytes()).isEqualTo(2 * MIB);
    assertThat(of(peers).ringBytes()).isLessThan(2 * MIB + 32 * KIB);
  }

  @Test
  void rings_ofMorePeers_haveLessThan5MiBTogether() {
    for (int peers = 3; peers <= 128; peers++) {
      assertThat(peers * of(peers).ringBytes())
          .as("bytes of %d rings", peers)
          .isBetween(2L * MIB, 5L * MIB - 1);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {128, 129, 1000, 4095})
  void rings_of128PeersAndMore_have36KiBEach(int peers) {
    assertThat(of(peers).ringBytes()).isEqualTo(36 * KIB);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 63, 64, 65, 127, 128, 1000})
  void parts_lieOneBehindTheOther(int peers) {
    BlockLayout layout = of(peers);
    assertThat(layout.consumedAt(0))
        .isGreaterThanOrEqualTo(
            BlockLayout.CONNECTED_AT + layout.connectedWords() * (long) Long.BYTES);
    assertThat(layout.controlBytes())
        .isGreaterThanOrEqualTo(layout.consumedAt(peers) + BlockLayout.LINE_BYTES);
    for (int peer = 0; peer < peers; peer++) {
      assertThat(layout.ringAt(peer + 1) - layout.ringAt(peer))
          .isGreaterThanOrEqualTo(layout.ringBytes());
    }
    assertThat(layout.windowAt()).isGreaterThanOrEqualTo(layout.ringAt(peers) + layout.ringBytes());
    assertThat(layout.storageBytes()).isGreaterThanOrEqualTo(layout.windowAt() + WINDOW_BYTES);
  }

  private static BlockLayout of(int peers) {
    return new BlockLayout(peers + 1, WINDOW_BYTES);
  }
}
