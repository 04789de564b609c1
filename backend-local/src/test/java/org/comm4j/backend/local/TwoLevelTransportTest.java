package org.comm4j.backend.local;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.comm4j.core.transport.Transport;
import org.comm4j.core.transport.TwoLevelTransport;
import org.comm4j.tck.TransportContract;

/// Ranks on hosts of unequal size that do not follow each other: 0 2 3 5 6 and 1 4 7, and so on.
class TwoLevelTransportTest extends TransportContract {
  @Override
  protected List<Transport> transports(int size) {
    List<? extends Transport> far = group(size);
    Map<Boolean, List<Integer>> hosts = new HashMap<>();
    IntStream.range(0, size)
        .forEach(rank -> hosts.computeIfAbsent(rank % 3 == 1, _ -> new ArrayList<>()).add(rank));
    Transport[] all = new Transport[size];
    for (List<Integer> host : hosts.values()) {
      List<? extends Transport> near = group(host.size());
      for (int each = 0; each < host.size(); each++) {
        int rank = host.get(each);
        all[rank] = new TwoLevelTransport(near.get(each), far.get(rank), host);
      }
    }
    return List.of(all);
  }

  private static List<? extends Transport> group(int size) {
    return LocalTransports.group(size, 0, Optional.empty(), Long.MAX_VALUE);
  }
}
