package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Map;
import org.comm4j.core.session.PortRange;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DimensionsTest {
  private static final int LOOPBACK = 65_508;
  private static final Options NONE = OptionsTest.NONE;

  private static final long MIB = 1 << 20;

  /// 2 logs for each peer, of 3 terms of 64 KiB and a page, which is as little as Aeron takes, and
  /// what it notes of losses.
  private static final long LEAST_PER_PEER = 2 * (3 * (64L << 10) + 4096 + 512);

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 8, 16, 33, 64})
  void of_upTo64Ranks_takes32MebibytesEach(int ranks) {
    assertThat(Dimensions.of(NONE, ranks, LOOPBACK).bytesPerRank(ranks))
        .isLessThanOrEqualTo(32 * MIB);
  }

  @Test
  void of_moreRanks_takesAsLittleForEachAsAeronLets() {
    for (int ranks = 65; ranks <= 1024; ranks++) {
      assertThat(Dimensions.of(NONE, ranks, LOOPBACK).bytesPerRank(ranks))
          .as("%d ranks", ranks)
          .isLessThanOrEqualTo(32 * MIB + (ranks - 64) * LEAST_PER_PEER);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 8, 16, 33, 64, 65, 128, 1024})
  void of_ranks_fitTogether(int ranks) {
    Dimensions dimensions = Dimensions.of(NONE, ranks, LOOPBACK);
    assertThat(dimensions.mtu() % 32).isZero();
    assertThat(dimensions.mtu()).isBetween(1024, dimensions.termBytes() / 8);
    assertThat(dimensions.windowBytes())
        .isBetween(3 * dimensions.mtu(), dimensions.termBytes() / 2);
  }

  @Test
  void of_fewRanks_takesTheLargestDatagramsThatThereAre() {
    assertThat(Dimensions.of(NONE, 2, LOOPBACK, 4 << 20).mtu()).isEqualTo(65_504);
  }

  /// What is lost is sent again; where that is lost too, hardly anything arrives.
  @ParameterizedTest
  @CsvSource({
    "4194304, 1472",
    "4194304, 8972",
    "4194304, 65508",
    "212992, 1472",
    "212992, 8972",
    "212992, 65508"
  })
  void of_allOthersSendAtOnce_fitsIntoTheSocketsBuffer(int socketBytes, int datagramBytes) {
    for (int ranks = 2; ranks <= 8; ranks++) {
      Dimensions dimensions = Dimensions.of(NONE, ranks, datagramBytes, socketBytes);
      assertThat(dimensions.receiveBufferBytes()).isLessThanOrEqualTo(socketBytes);
      assertThat((ranks - 1L) * dimensions.windowBytes())
          .as("%d ranks", ranks)
          .isLessThanOrEqualTo(dimensions.receiveBufferBytes() * 2L / 3);
    }
  }

  @Test
  void of_littleBufferForManyRanks_leavesEachSomeDatagrams() {
    for (int ranks : new int[] {16, 64, 1024}) {
      Dimensions dimensions = Dimensions.of(NONE, ranks, 1472, 212_992);
      assertThat(dimensions.windowBytes()).isEqualTo(16 << 10);
      assertThat(dimensions.mtu()).isEqualTo(1472);
    }
    assertThat(Dimensions.of(NONE, 16, 8972, 212_992).mtu()).isEqualTo(5280);
  }

  /// As payloads leave some of a window to what comes behind them.
  @ParameterizedTest
  @CsvSource({"0, 0", "65536, 0", "67108864, 0", "0, 1024", "0, 1408", "0, 8160", "1048576, 65504"})
  void of_settings_windowTakesThreeDatagramsOfPayloads(int termBytes, int mtu) {
    var options =
        new Options(
            "", mtu, termBytes, PortRange.ANY, true, Options.DriverKind.EMBEDDED, "", true, false);
    for (int ranks : new int[] {2, 3, 4, 5, 8, 16, 33, 64, 1024}) {
      for (int datagramBytes : new int[] {1472, 8972, 65_508}) {
        for (int socketBytes : new int[] {212_992, 1 << 20, 4 << 20, 64 << 20}) {
          Dimensions dimensions = Dimensions.of(options, ranks, datagramBytes, socketBytes);
          assertThat(3 * dimensions.mtu() + Peer.CONTROL_ROOM_BYTES)
              .as("%d ranks, %s, sockets of %d bytes", ranks, dimensions, socketBytes)
              .isLessThanOrEqualTo(dimensions.windowBytes());
        }
      }
    }
  }

  @Test
  void of_mtuThatIsAskedFor_isKept_andWindowIsNoLargerThanItNeeds() {
    Options small = OptionsTest.of(Map.of("COMM_AERON_MTU", "1408"));
    Options large = OptionsTest.of(Map.of("COMM_AERON_MTU", "8960"));
    assertThat(Dimensions.of(small, 5, LOOPBACK, 212_992))
        .returns(1408, Dimensions::mtu)
        .returns(212_992 * 2 / 3 / 4, Dimensions::windowBytes);
    assertThat(Dimensions.of(large, 16, LOOPBACK, 212_992))
        .returns(8960, Dimensions::mtu)
        .returns(3 * 8960 + 512, Dimensions::windowBytes);
  }

  @Test
  void of_largeTerm_windowIsHalfOfIt() {
    Options large = OptionsTest.of(Map.of("COMM_AERON_TERM", "64MiB"));
    assertThat(Dimensions.of(large, 2, LOOPBACK, 64 << 20).windowBytes()).isEqualTo(32 << 20);
  }

  /// Ranks that share a driver may share a socket, whatever their interfaces.
  @Test
  void sendBuffer_otherInterfaceOfTheHost_isTheSame() {
    for (int ranks = 2; ranks <= 64; ranks++) {
      assertThat(Dimensions.of(NONE, ranks, 1472, 212_992).sendBufferBytes())
          .isEqualTo(Dimensions.of(NONE, ranks, 8972, 212_992).sendBufferBytes());
    }
  }

  @Test
  void of_enoughBuffer_windowIsHalfATerm() {
    for (int ranks = 2; ranks <= 64; ranks++) {
      Dimensions dimensions = Dimensions.of(NONE, ranks, 1472, 4 << 20);
      assertThat(dimensions.windowBytes()).isEqualTo(dimensions.termBytes() / 2);
    }
  }

  @Test
  void of_datagramTooLargeForATerm_isRefused() {
    assertThatThrownBy(() ->
            Dimensions.of(
                OptionsTest.of(Map.of("COMM_AERON_MTU", "65504", "COMM_AERON_TERM", "64KiB")),
                2,
                LOOPBACK))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll("COMM_AERON_MTU", "65504", "8192", "COMM_AERON_TERM");
  }

  @ParameterizedTest
  @CsvSource({"1472, 1472", "8972, 8960", "500, 1024"})
  void of_interface_fitsItsPackets(int datagramBytes, int mtu) {
    assertThat(Dimensions.of(NONE, 2, datagramBytes).mtu()).isEqualTo(mtu);
  }
}
