package org.comm4j.core.engine;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.CommException;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.PeerFailedException;

/// What a rank that breaks a communicator tells the others, in the bytes of a session's abort.
///
/// @param kind decides which exception the others get
/// @param missing the ranks that were waited for: of a timeout, or because they have left; of an
///   abort the one that is to be named, none where that is who tells
/// @param message in words
public record AbortNotice(Kind kind, List<Integer> missing, String message) {
  /// Which exception the others get.
  public enum Kind {
    MISMATCH(1),
    TIMEOUT(2),
    ABORT(3),
    LEFT(4);

    private final int code;

    Kind(int code) {
      this.code = code;
    }

    /// Whether it does not come of a rank's end, which others would otherwise be told of first.
    boolean isNeverOfFailure() {
      return this == MISMATCH || this == TIMEOUT;
    }

    private static Kind ofCode(int code) {
      return Arrays.stream(values()).filter(kind -> kind.code == code).findFirst().orElse(ABORT);
    }
  }

  private static final int MOST_BYTES = 4096; // half of them tell any of a session's 16384 ranks

  /// What to tell of a failure of this rank.
  public static AbortNotice of(CommException failure) {
    String message = String.valueOf(failure.getMessage());
    if (failure instanceof AbortedException aborted) {
      String added = "rank %d aborted the communicator: ".formatted(aborted.rank());
      message = message.replace(added, ""); // the others' exception says it again
    }
    return switch (failure) {
      case MismatchedCallException _ -> new AbortNotice(Kind.MISMATCH, List.of(), message);
      case CollectiveTimeoutException timeout ->
          new AbortNotice(Kind.TIMEOUT, timeout.missing(), message);
      case AbortedException aborted ->
          new AbortNotice(Kind.ABORT, List.of(aborted.rank()), message);
      case PeerFailedException left -> new AbortNotice(Kind.LEFT, left.ranks(), left.evidence());
      default -> new AbortNotice(Kind.ABORT, List.of(), message);
    };
  }

  /// Whether its rank's program itself wanted it: it has aborted, or its operator has failed.
  boolean isOf(int byRank) {
    return kind == Kind.ABORT && missing.equals(List.of(byRank));
  }

  /// The exception of the other ranks.
  ///
  /// @param members world ranks
  public CommException exception(int byRank, int[] members) {
    return switch (kind) {
      case MISMATCH -> new MismatchedCallException(message);
      case TIMEOUT -> new CollectiveTimeoutException(missing, message);
      case ABORT ->
          new AbortedException(missing.isEmpty() ? byRank : missing.getFirst(), message, null);
      case LEFT ->
          new PeerFailedException(
              missing, missing.stream().map(peer -> members[peer]).toList(), message, null);
    };
  }

  /// A failure of a part of a communicator's ranks as that communicator has it: what names ranks
  /// names them by their numbers there, and where its text can't, that tells whose they are.
  ///
  /// @param part the part's ranks, by their numbers in the communicator
  /// @param rank this one, in the communicator
  /// @param members its world ranks
  public static CommException inWhole(CommException failure, int[] part, int rank, int[] members) {
    String numbers =
        Arrays.equals(part, IntStream.range(0, part.length).toArray())
            ? ""
            : "among ranks %s, numbered from 0 in this order: ".formatted(Arrays.toString(part));
    return switch (failure) {
      case AbortedException _, CollectiveTimeoutException _, PeerFailedException _ -> {
        AbortNotice notice = of(failure);
        List<Integer> ranks = notice.missing.stream().map(each -> part[each]).toList();
        yield new AbortNotice(notice.kind, ranks, numbers + notice.message)
            .exception(rank, members);
      }
      case MismatchedCallException _ when !numbers.isEmpty() ->
          new MismatchedCallException(numbers + failure.getMessage());
      default -> failure;
    };
  }

  /// As bytes of a session's abort. Whatever ranks a session can have, all of `missing` fit; of the
  /// text goes what does.
  public byte[] encode() {
    byte[] ranks = encodedRanks();
    byte[] text = message.getBytes(UTF_8);
    int textBytes = Math.min(text.length, MOST_BYTES - 4 - ranks.length);
    ByteBuffer bytes = ByteBuffer.allocate(4 + ranks.length + textBytes);
    return bytes.putInt(kind.code).put(ranks).put(text, 0, textBytes).array();
  }

  /// How many there are, and each; or, where that takes less, minus how many bytes, and a bit for
  /// each.
  private byte[] encodedRanks() {
    int bitBytes = missing.stream().mapToInt(rank -> (rank >>> 3) + 1).max().orElse(0);
    if (bitBytes < 4 * missing.size()) {
      var set = new BitSet();
      missing.forEach(set::set);
      byte[] bits = set.toByteArray();
      return ByteBuffer.allocate(4 + bits.length).putInt(-bits.length).put(bits).array();
    }
    ByteBuffer list = ByteBuffer.allocate(4 + 4 * missing.size()).putInt(missing.size());
    missing.forEach(list::putInt);
    return list.array();
  }

  /// The opposite of [#encode]; bytes that are none become an abort for an unknown reason.
  public static AbortNotice decode(byte[] encoded) {
    ByteBuffer bytes = ByteBuffer.wrap(encoded);
    boolean whole = bytes.remaining() >= 8;
    int code = whole ? bytes.getInt() : 0;
    int ranks = whole ? bytes.getInt() : 0;
    long rankBytes = ranks < 0 ? -(long) ranks : 4L * ranks;
    if (!whole || rankBytes > bytes.remaining()) {
      return new AbortNotice(Kind.ABORT, List.of(), "for a reason that can't be read");
    }
    ByteBuffer coded = bytes.slice(bytes.position(), (int) rankBytes);
    List<Integer> missing =
        ranks < 0
            ? BitSet.valueOf(coded).stream().boxed().toList()
            : IntStream.range(0, ranks).mapToObj(i -> coded.getInt(4 * i)).toList();
    byte[] text = Arrays.copyOfRange(encoded, 8 + (int) rankBytes, encoded.length);
    return new AbortNotice(Kind.ofCode(code), missing, new String(text, UTF_8));
  }
}
