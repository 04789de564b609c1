package org.comm4j.backend.local;

import java.util.List;
import java.util.stream.IntStream;
import org.comm4j.core.transport.Transport;
import org.comm4j.core.transport.TwoLevelTransport;
import org.comm4j.tck.TransportContract;

/// Ranks on hosts of unequal size that do not follow each other: 0 2 3 5 6 and 1 4 7, and so on.
class TwoLevelTransportTest extends TransportContract {
  @Override
  protected List<Transport> transports(int size) {
    return List.copyOf(group(size, 0));
  }

  /// @param windowBytes of each rank
  static List<TwoLevelTransport> group(int size, long windowBytes) {
    List<SharedMemoryTransport> far = threads(size, 0);
    int[] hosts = IntStream.range(0, size).map(TwoLevelTransportTest::host).toArray();
    TwoLevelTransport[] all = new TwoLevelTransport[size];
    for (int host = 0; host < 2; host++) {
      int here = host;
      int[] ranks = IntStream.range(0, size).filter(rank -> hosts[rank] == here).toArray();
      List<SharedMemoryTransport> near = threads(ranks.length, windowBytes);
      for (int each = 0; each < ranks.length; each++) {
        all[ranks[each]] = new TwoLevelTransport(near.get(each), far.get(ranks[each]), hosts);
      }
    }
    return List.of(all);
  }

  /// Which host a rank pretends to be on.
  static int host(int rank) {
    return rank % 3 == 1 ? 1 : 0;
  }

  private static List<SharedMemoryTransport> threads(int size, long windowBytes) {
    return size == 0
        ? List.of()
        : LocalTransports.group(size, windowBytes, NativeCalls.find(), Long.MAX_VALUE);
  }
}
