package org.comm4j.api;

import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Other ranks have died or fallen silent. The communicator is broken; the survivors may
/// [Communicator#shrink()] it.
public final class PeerFailedException extends CommException {
  private static final long serialVersionUID = 1L;
  private final int[] ranks;
  private final int[] worldRanks;
  private final String evidence;

  /// Makes the exception.
  ///
  /// @param ranks who failed, in the communicator, not empty
  /// @param worldRanks the same ranks as numbered in the launch
  /// @param evidence how it is known, for example `control connection closed`
  /// @param cause what the rank threw where it is a thread of this JVM, else null
  public PeerFailedException(
      List<Integer> ranks, List<Integer> worldRanks, String evidence, @Nullable Throwable cause) {
    super(
        "%s %s failed%s: %s"
            .formatted(
                ranks.size() == 1 ? "rank" : "ranks",
                numbers(ranks),
                ranks.equals(worldRanks) ? "" : " (of the launch: " + numbers(worldRanks) + ")",
                evidence),
        cause);
    this.ranks = ranks.stream().mapToInt(Integer::intValue).toArray();
    this.worldRanks = worldRanks.stream().mapToInt(Integer::intValue).toArray();
    this.evidence = evidence;
  }

  /// {@return who failed, in the communicator}
  public List<Integer> ranks() {
    return Arrays.stream(ranks).boxed().toList();
  }

  /// {@return who failed, as numbered in the launch}
  public List<Integer> worldRanks() {
    return Arrays.stream(worldRanks).boxed().toList();
  }

  /// {@return how it is known}
  public String evidence() {
    return evidence;
  }

  private static String numbers(List<Integer> ranks) {
    String text = ranks.toString();
    return text.substring(1, text.length() - 1);
  }
}
