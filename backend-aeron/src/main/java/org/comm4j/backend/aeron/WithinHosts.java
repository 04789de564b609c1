package org.comm4j.backend.aeron;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.stream.IntStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommException;
import org.comm4j.api.JoinException;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.MembersSession;
import org.comm4j.core.transport.HostTransport;
import org.comm4j.core.transport.HostTransports;
import org.comm4j.core.transport.Transport;
import org.comm4j.core.transport.TwoLevelTransport;
import org.jspecify.annotations.Nullable;

/// How the ranks of one host share memory, where others run elsewhere.
final class WithinHosts {
  private static final System.Logger LOG = System.getLogger(WithinHosts.class.getName());

  private static final String FAILED = "failed: ";
  private static final int MOST_TEXT = 2000;

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
      CommException failure = null;
      try {
        near = found.orElseThrow().open(host(hosts), config);
      } catch (CommException e) {
        failure = e; // the other hosts must hear of it
      }
      checkAll(near, failure);
      return Optional.of(new TwoLevelTransport(Objects.requireNonNull(near), far, hosts));
    } catch (Throwable e) {
      try (far) {
        if (near != null) {
          near.close();
        }
      }
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

  /// Hears whether all have opened it, and with windows of one size: plans go by what they hold.
  private void checkAll(@Nullable HostTransport near, @Nullable CommException failure) {
    String mine = near == null ? FAILED + failure : Long.toString(near.windowBytes());
    List<String> all =
        session
            .exchange(
                "aeron/windows", cut(mine).getBytes(StandardCharsets.UTF_8), config.joinTimeout())
            .stream()
            .map(bytes -> new String(bytes, StandardCharsets.UTF_8))
            .toList();
    if (failure != null) {
      throw failure;
    }
    for (int rank = 0; rank < all.size(); rank++) {
      String theirs = all.get(rank);
      if (theirs.startsWith(FAILED)) {
        throw new TransportFailedException(
            "rank %d: %s; or set COMM_AERON_SHARED=false"
                .formatted(rank, theirs.substring(FAILED.length())),
            null);
      }
      if (!theirs.equals(all.getFirst())) {
        throw new JoinException(
            JoinException.Reason.CONFIGURATION,
            "shared memory has windows of %s bytes on rank 0 but of %s on rank %d; set COMM_SHM_WINDOW alike on all hosts"
                .formatted(all.getFirst(), theirs, rank));
      }
    }
  }

  private static String cut(String text) {
    return text.substring(0, Math.min(text.length(), MOST_TEXT));
  }
}
