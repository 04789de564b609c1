package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.stream.IntStream;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommException;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.core.engine.AbortNotice.Kind;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class AbortNoticeTest {
  private static final int MOST_RANKS = 16 * 1024; // of a session between processes
  private static final int MOST_BYTES = 4 * 1024; // of a session's reason

  @ParameterizedTest
  @CsvSource({"1, 1", "257, 1", "2000, 1", "2000, 7", "16383, 1", "8192, 2"})
  void decode_manyMissing_namesExactlyThose(int count, int stride) {
    List<Integer> missing =
        IntStream.range(0, count).map(i -> MOST_RANKS - 1 - i * stride).sorted().boxed().toList();
    String message = "ranks %s have not come".formatted(missing);
    byte[] encoded = AbortNotice.of(new CollectiveTimeoutException(missing, message)).encode();
    assertThat(encoded.length).isLessThanOrEqualTo(MOST_BYTES);

    AbortNotice notice = AbortNotice.decode(encoded);
    assertThat(notice.kind()).isEqualTo(Kind.TIMEOUT);
    assertThat(notice.missing()).isEqualTo(missing);
    assertThat(notice.message()).isNotEmpty();
    assertThat(message).startsWith(notice.message());
    CommException thrown = notice.exception(1, new int[0]);
    assertThat(((CollectiveTimeoutException) thrown).missing()).isEqualTo(missing);
  }

  /// Ranks of another host have the part's numbers, and have done nothing.
  @Test
  void inWhole_partHasOtherNumbers_textSaysWhose() {
    int[] part = {2, 5};
    int[] members = IntStream.range(0, 6).toArray();
    var mismatch = new MismatchedCallException("rank 1 calls barrier() but rank 0 fence()");

    CommException told = AbortNotice.inWhole(mismatch, part, 2, members);

    assertThat(told)
        .isInstanceOf(MismatchedCallException.class)
        .hasMessage(
            "among ranks [2, 5], numbered from 0 in this order: rank 1 calls barrier() but rank 0 fence()");
    assertThat(AbortNotice.inWhole(mismatch, new int[] {0, 1}, 0, members)).isSameAs(mismatch);
    assertThat(
            AbortNotice.inWhole(
                new CollectiveTimeoutException(List.of(1), "rank(s) [1] have not come"),
                part,
                2,
                members))
        .isInstanceOfSatisfying(
            CollectiveTimeoutException.class, late -> assertThat(late.missing()).containsExactly(5))
        .hasMessageContaining("among ranks [2, 5]");
  }

  /// Which one comes first tells more than a set could.
  @Test
  void decode_few_keepsTheirOrder() {
    var notice = new AbortNotice(Kind.LEFT, List.of(9_000, 3, 70), "left");
    assertThat(AbortNotice.decode(notice.encode())).isEqualTo(notice);
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, Integer.MIN_VALUE, 2, Integer.MAX_VALUE})
  void decode_ranksThatAreNotThere_isAnAbort(int ranks) {
    byte[] none = ByteBuffer.allocate(8).putInt(2).putInt(ranks).array();
    assertThat(AbortNotice.decode(none).kind()).isEqualTo(Kind.ABORT);
  }
}
