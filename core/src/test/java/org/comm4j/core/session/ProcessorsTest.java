package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

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
  void ofThisThread_onLinux_areNotFewerThanTheJvmSees() {
    assertThat(Processors.ofThisThread())
        .hasSizeGreaterThanOrEqualTo(Runtime.getRuntime().availableProcessors());
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
