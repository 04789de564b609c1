package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.List;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CommException;
import org.comm4j.api.EvictedException;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session.Abort;
import org.comm4j.api.spi.Session.Failure;
import org.comm4j.api.spi.Session.News;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// Why rank 2 of three finds its communicator broken; the session has ranks 10 to 13.
class BreakReasonTest {
  private static final long SCOPE = 7;
  private static final int[] MEMBERS = {10, 11, 12};
  private static final AbortNotice OWN = AbortNotice.of(new AbortedException(1, "enough", null));

  @Test
  void abort_othersEndBecauseOfIt_isTheReason() {
    var news = news(List.of(failure(10)), abort(OWN, 0));
    assertThat(reason(news))
        .isInstanceOfSatisfying(
            AbortedException.class, reason -> assertThat(reason.rank()).isEqualTo(1));
  }

  @Test
  void abort_becauseAnotherHasEnded_isNotTheReason() {
    var news = news(List.of(failure(10)), abort(OWN, 1));
    assertThat(reason(news))
        .isInstanceOfSatisfying(
            PeerFailedException.class, reason -> assertThat(reason.ranks()).containsExactly(0));
  }

  @Test
  void abort_strangersAndWhoHasLeftAreGoneBefore_isTheReason() {
    var left = new Failure(11, Failure.LEFT, null);
    var news = news(List.of(failure(13), left, failure(10)), abort(OWN, 2));
    assertThat(reason(news)).isInstanceOf(AbortedException.class);
  }

  /// The transport may notice a rank's end before the session does.
  @Test
  void transportFails_beforeTheSessionKnowsOfTheEnd_theEndIsTheReason() {
    var news = news(List.of(failure(10)), abort(AbortNotice.of(lost()), 0));
    assertThat(reason(news)).isInstanceOf(PeerFailedException.class);
  }

  @Test
  void transportFails_andNobodyEnds_isTheReason() {
    assertThat(reason(news(List.of(), abort(AbortNotice.of(lost()), 0))))
        .hasMessageContaining("out of cable");
  }

  @Test
  void nothing_isNoReason() {
    assertThat(reason(News.NONE)).isNull();
  }

  /// Its end is that of all communicators, but who had the rank that hosted it is told of that.
  @Test
  void hostOfTheSessionIsGone_otherCommunicatorsHaveAReasonToo() {
    var news = new News(List.of(failure(13), hostGone(10)), List.of(), "rank 10 is gone");
    assertThat(reason(news))
        .isInstanceOfSatisfying(
            PeerFailedException.class, reason -> assertThat(reason.ranks()).containsExactly(0));
    var ofOthers = new News(List.of(failure(12), hostGone(13)), List.of(), "rank 13 is gone");
    assertThat(reason(ofOthers))
        .isInstanceOf(EvictedException.class)
        .hasMessageContaining("rank 13 is gone");
  }

  /// What the others say of each other then is no matter of this rank's.
  @Test
  void evicted_othersFail_evictionIsTheReason() {
    var news = new News(List.of(failure(10)), List.of(), "they have given up rank 12");
    assertThat(reason(news)).isInstanceOf(EvictedException.class);
  }

  private static Failure hostGone(int rank) {
    return new Failure(rank, "silent for 10.1 s" + Failure.HOSTED, null);
  }

  private static TransportFailedException lost() {
    return new TransportFailedException("out of cable", null);
  }

  private static Failure failure(int rank) {
    return new Failure(rank, "its control connection closed", null);
  }

  private static Abort abort(AbortNotice notice, int failuresBefore) {
    return new Abort(SCOPE, MEMBERS[1], notice.encode(), failuresBefore);
  }

  private static News news(List<Failure> failures, Abort... aborts) {
    return new News(failures, List.of(aborts), null);
  }

  private static @Nullable CommException reason(News news) {
    return BreakReason.of(
        news, SCOPE, 2, MEMBERS, world -> Arrays.stream(MEMBERS).boxed().toList().indexOf(world));
  }
}
