package org.comm4j.core.session;

import java.util.concurrent.TimeUnit;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session.Member;

/// What a rank says when it joins. What a launcher claims about hosts (`LOCAL_RANK` and the like)
/// is not in it: who shares a host is what the kernels say.
///
/// @param version of comm4j
/// @param job the session asked for, or empty
/// @param generation how often this rank has met others at this host before
/// @param member who it is; its rank is the one asked for
/// @param worldSize how many ranks it expects
/// @param patienceMillis how long it will wait for the others
/// @param livenessMillis after which silence a rank is given up
/// @param settings what must be equal on all ranks, as [Settings] writes it
record JoinRequest(
    String version,
    String job,
    int generation,
    Member member,
    int worldSize,
    long patienceMillis,
    long livenessMillis,
    String settings) {

  /// The same for a certain host, with what is left of its patience.
  JoinRequest forHost(int generation, long patienceNs) {
    return new JoinRequest(
        version,
        job,
        generation,
        member,
        worldSize,
        Math.max(0, TimeUnit.NANOSECONDS.toMillis(patienceNs)),
        livenessMillis,
        settings);
  }

  int rank() {
    return member.rank();
  }

  /// Names the process, for messages.
  String who() {
    return who(member.pid(), member.host());
  }

  static String who(long pid, HostIdentity host) {
    return "pid %d on %s".formatted(pid, host.name());
  }
}
