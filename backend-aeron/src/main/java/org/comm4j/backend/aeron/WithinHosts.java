package org.comm4j.backend.aeron;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.stream.IntStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.JoinException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.MembersSession;
import org.comm4j.core.transport.HostTransport;
import org.comm4j.core.transport.HostTransports;
import org.comm4j.core.transport.Transport;
import org.comm4j.core.transport.TwoLevelTransport;

/// How the ranks of one host share memory, where others run elsewhere.
final class WithinHosts {
  private static final System.Logger LOG = System.getLogger(WithinHosts.class.getName());

  private final Session session;
  private final CommConfig config;

  WithinHosts(Session session, CommConfig config) {
    this.session = session;
    this.config = config;
  }

  /// Opens shared memory on every host, if that is wanted, if there are several hosts and ranks
  /// that share one, and if all ranks have something to open it with. Where all ranks are on one
  /// host who asks for this backend gets UDP.
  ///
  /// @param far of all ranks; closed if this fails
  Optional<TwoLevelTransport> open(Transport far) {
    int[] hosts = hosts();
    long count = Arrays.stream(hosts).distinct().count();
    if (!Options.of(config).sharesMemory() || count == 1 || count == hosts.length) {
      return Optional.empty();
    }
    HostTransport near = null;
    try {
      Optional<HostTransports> found =
          ServiceLoader.load(HostTransports.class, WithinHosts.class.getClassLoader()).findFirst();
      if (!allHave(found.isPresent())) {
        return Optional.empty();
      }
      near = found.orElseThrow().open(host(hosts), config);
      checkWindows(near.windowBytes());
      return Optional.of(new TwoLevelTransport(near, far, hosts));
    } catch (Throwable e) {
      if (near != null) {
        near.close();
      }
      far.close();
      throw e;
    }
  }

  /// By rank, the lowest rank of its host.
  private int[] hosts() {
    List<String> ids =
        IntStream.range(0, session.size())
            .mapToObj(rank -> session.member(rank).host().id())
            .toList();
    return ids.stream().mapToInt(ids::indexOf).toArray();
  }

  private Session host(int[] hosts) {
    int here = hosts[session.rank()];
    List<Integer> members =
        IntStream.range(0, hosts.length).filter(rank -> hosts[rank] == here).boxed().toList();
    return MembersSession.of(session, "aeron/host-" + here, members);
  }

  private boolean allHave(boolean mine) {
    byte[] answer = {(byte) (mine ? 1 : 0)};
    List<byte[]> all = session.exchange("aeron/shared", answer, config.joinTimeout());
    List<Integer> without =
        IntStream.range(0, all.size()).filter(rank -> all.get(rank)[0] == 0).boxed().toList();
    if (!without.isEmpty() && session.rank() == 0) {
      LOG.log(
          System.Logger.Level.WARNING,
          "ranks of one host go by UDP: rank(s) {0} have no comm4j-backend-local on their class path; add it, or set COMM_AERON_SHARED=false",
          without);
    }
    return without.isEmpty();
  }

  /// Plans go by what a window holds, so all have to be alike.
  private void checkWindows(long bytes) {
    byte[] mine = ByteBuffer.allocate(Long.BYTES).putLong(bytes).array();
    List<byte[]> all = session.exchange("aeron/windows", mine, config.joinTimeout());
    for (int rank = 0; rank < all.size(); rank++) {
      long theirs = ByteBuffer.wrap(all.get(rank)).getLong();
      long first = ByteBuffer.wrap(all.getFirst()).getLong();
      if (theirs != first) {
        throw new JoinException(
            JoinException.Reason.CONFIGURATION,
            "shared memory has windows of %d bytes on rank 0 but of %d on rank %d; set COMM_SHM_WINDOW alike on all hosts"
                .formatted(first, theirs, rank));
      }
    }
  }
}
