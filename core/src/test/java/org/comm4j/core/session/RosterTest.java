package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session.Member;
import org.junit.jupiter.api.Test;

final class RosterTest {
  private final Roster roster = new Roster(Optional.of("job"), OptionalInt.empty());

  /// As a launcher does that is not told its number; its name is as long as they come.
  private void takesTheFirstFreeNumber(int process, int worldSize) {
    var host =
        new HostIdentity("host-%02d".formatted(process) + ".example".repeat(6), "id" + process);
    for (int rank = 0; ; rank++) {
      var member = new Member(rank, host, 1, Set.of(), List.of());
      var request = new JoinRequest("1", "job", 0, member, worldSize, 1000, 1000, "");
      if (roster.admit(request, _ -> true) instanceof Roster.Verdict.Admitted) {
        return;
      }
    }
  }

  private void isRefused(int process) {
    var member =
        new Member(0, new HostIdentity("other-" + process, "id" + process), 1, Set.of(), List.of());
    var request = new JoinRequest("1", "another", 0, member, 8, 1000, 1000, "");
    assertThat(roster.admit(request, _ -> true)).isInstanceOf(Roster.Verdict.Refused.class);
  }

  @Test
  void missing_someTriedNumbersUntilOneWasFree_isNoRefusal() {
    for (int process = 0; process < 6; process++) {
      takesTheFirstFreeNumber(process, 8);
    }
    assertThat(roster.missing(0))
        .startsWith("ranks 6, 7 of 8 did not join")
        .doesNotContain("refused", "has joined already");
  }

  /// A cut, as on the way to other ranks, costs their ends alone.
  @Test
  void missing_manyRefused_standBehindTheRest() {
    takesTheFirstFreeNumber(0, 8);
    for (int process = 0; process < 20; process++) {
      isRefused(process);
    }
    String text = roster.missing(0);
    assertThat(text).contains("rank 0 (pid 1 on other-19): this is session 'job', not 'another'");
    assertThat(text.indexOf("COMM_JOIN_TIMEOUT")).isBetween(0, text.indexOf("; refused: "));
    assertThat(text).doesNotContain("other-9:");
  }

  @Test
  void missing_manyHostsWithLongNames_fitsIntoAFrame() {
    for (int process = 0; process < 60; process++) {
      takesTheFirstFreeNumber(process, 128);
    }
    String text = roster.missing(0);
    assertThat(FrameCodec.cut(text)).isEqualTo(text);
  }
}
