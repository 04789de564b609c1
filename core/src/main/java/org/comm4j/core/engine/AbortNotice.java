package org.comm4j.core.engine;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntUnaryOperator;
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

  private static final int MOST_BYTES = 4096;

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

  /// The same in the numbers of another communicator.
  AbortNotice renumbered(IntUnaryOperator rank) {
    return new AbortNotice(kind, missing.stream().map(rank::applyAsInt).toList(), message);
  }

  /// As bytes of a session's abort.
  public byte[] encode() {
    int ranks = Math.min(missing.size(), 256);
    byte[] text = message.getBytes(UTF_8);
    int textBytes = Math.min(text.length, MOST_BYTES - 8 - 4 * ranks);
    ByteBuffer bytes = ByteBuffer.allocate(8 + 4 * ranks + textBytes);
    bytes.putInt(kind.code).putInt(ranks);
    missing.stream().limit(ranks).forEach(bytes::putInt);
    return bytes.put(text, 0, textBytes).array();
  }

  /// The opposite of [#encode]; bytes that are none become an abort for an unknown reason.
  public static AbortNotice decode(byte[] encoded) {
    ByteBuffer bytes = ByteBuffer.wrap(encoded);
    boolean whole = bytes.remaining() >= 8;
    int code = whole ? bytes.getInt() : 0;
    int ranks = whole ? bytes.getInt() : 0;
    if (!whole || ranks < 0 || ranks > bytes.remaining() / 4) {
      return new AbortNotice(Kind.ABORT, List.of(), "for a reason that can't be read");
    }
    List<Integer> missing = new ArrayList<>();
    for (int i = 0; i < ranks; i++) {
      missing.add(bytes.getInt());
    }
    byte[] text = Arrays.copyOfRange(encoded, bytes.position(), encoded.length);
    return new AbortNotice(Kind.ofCode(code), missing, new String(text, UTF_8));
  }
}
