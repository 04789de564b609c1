package org.comm4j.core.engine;

import java.util.function.Function;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.spi.BackendCommunicator;

/// Calls among the ranks of a host that belong to a communicator of more: what fails there breaks
/// it, as every call of it does, and is told in its ranks' numbers.
///
/// @param <G> what the host's ranks call
public final class HostCalls<G extends BackendCommunicator> {
  private final BackendCommunicator parent;
  private final int[] members;
  private final Function<String, G> group;
  private final IntUnaryOperator rankOf;

  /// @param members the parent's, as world ranks
  /// @param group the host's ranks, for a call that is named so; a collective of them the first
  ///   time
  /// @param rankOf of a rank of the host its number in the parent
  public HostCalls(
      BackendCommunicator parent,
      int[] members,
      Function<String, G> group,
      IntUnaryOperator rankOf) {
    this.parent = parent;
    this.members = members;
    this.group = group;
    this.rankOf = rankOf;
  }

  /// Makes a call; that the parent can be used is for the caller to see.
  public <T> T run(String label, Function<G, T> call) {
    G here;
    try {
      here = group.apply(label);
    } catch (CommException failure) {
      throw broken(failure);
    }
    try {
      return call.apply(here);
    } catch (CommException failure) {
      CommException known = parent.failure(); // what broke it, broke the group with it
      if (known != null) {
        throw known;
      }
      int[] ranks = IntStream.range(0, here.size()).map(rankOf).toArray();
      throw broken(AbortNotice.inWhole(failure, ranks, parent.rank(), members));
    }
  }

  /// Breaks the communicator.
  ///
  /// @return what has broken it; another rank may have been first
  public CommException broken(CommException failure) {
    parent.abort(failure);
    CommException first = parent.failure();
    return first == null ? failure : first; // it was closed meanwhile
  }

  /// Sees that all ranks of the host create the same region.
  ///
  /// @param all each one's type and count, and more
  public void checkSame(long[][] all, DataType type, long count) {
    for (int each = 0; each < all.length; each++) {
      if (all[each][0] != type.id() || all[each][1] != count) {
        throw broken(
            new MismatchedCallException(
                "rank %d creates a region of %s × %d but rank %d, of the same host, one of %s × %d"
                    .formatted(
                        rankOf.applyAsInt(each),
                        DataType.ofId((int) all[each][0]),
                        all[each][1],
                        parent.rank(),
                        type,
                        count)));
      }
    }
  }

  /// Sees that all ranks of the host fence the same region, or all meet in its barrier.
  ///
  /// @param all of each one the region's number, or 0 for the barrier
  /// @param rank this one, of the host's
  public void checkSameFence(long[][] all, int rank) {
    for (int each = 0; each < all.length; each++) {
      if (all[each][0] != all[rank][0]) {
        throw broken(
            new MismatchedCallException(
                "rank %d calls %s but rank %d, of the same host, %s"
                    .formatted(
                        rankOf.applyAsInt(each),
                        fence(all[each][0]),
                        parent.rank(),
                        fence(all[rank][0]))));
      }
    }
  }

  private static String fence(long number) {
    return number == 0 ? "barrier()" : "fence() of region #" + number;
  }
}
