package org.comm4j.core.session;

import java.util.LinkedHashMap;
import java.util.Map;

/// How often the ranks of this process have met others at a host of sessions. A host that forms
/// group after group tells by it for which one a rank has come. A matter of the process, however
/// many class paths or factories there are in it; old entries are forgotten.
final class Meetings {
  private static final int MAX_ENTRIES = 4096;

  private static final Meetings OF_THIS_PROCESS = new Meetings();

  private final Map<Meeting, Integer> counts = new LinkedHashMap<>();

  private record Meeting(String hostId, int rank) {}

  private Meetings() {}

  static Meetings ofThisProcess() {
    return OF_THIS_PROCESS;
  }

  synchronized int count(String hostId, int rank) {
    return counts.getOrDefault(new Meeting(hostId, rank), 0);
  }

  /// A group has formed, or has given up, with this rank in it.
  synchronized void add(String hostId, int rank) {
    counts.merge(new Meeting(hostId, rank), 1, Integer::sum);
    if (counts.size() > MAX_ENTRIES) {
      counts.remove(counts.keySet().iterator().next());
    }
  }
}
