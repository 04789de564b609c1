package org.comm4j.backend.aeron;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.stream.IntStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommException;
import org.comm4j.api.JoinException;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.MembersSession;
import org.comm4j.core.session.OpenFiles;
import org.comm4j.core.transport.HostTransport;
import org.comm4j.core.transport.HostTransports;
import org.comm4j.core.transport.Transport;
import org.comm4j.core.transport.TwoLevelTransport;
import org.jspecify.annotations.Nullable;

/// How the ranks of one host share memory: for all that they do, where others run elsewhere, and
/// for regions alone, where none do.
final class WithinHosts {
  private static final System.Logger LOG = System.getLogger(WithinHosts.class.getName());

  private static final String FAILED = "failed: ";
  private static final int MOST_TEXT = 2000;

  private final Session session;
  private final CommConfig config;
  private final Optional<HostTransports> shared;

  /// @param shared what to open shared memory with, if anything
  WithinHosts(Session session, CommConfig config, Optional<HostTransports> shared) {
    this.session = session;
    this.config = config;
    this.shared = shared;
  }

  /// What is on the class path to open shared memory with.
  static Optional<HostTransports> found() {
    try {
      return ServiceLoader.load(HostTransports.class, WithinHosts.class.getClassLoader())
          .findFirst();
    } catch (ServiceConfigurationError e) {
      throw new TransportFailedException(
          "what shares memory within hosts can't be loaded: %s%s".formatted(e, OpenFiles.remedy(e)),
          e);
    }
  }

  /// Opens shared memory on every host, if that is wanted, if there are ranks that share a host,
  /// and if all ranks have something to open it with. Where all ranks are on one host who asks for
  /// this backend gets UDP, and memory for regions, unless there is none.
  ///
  /// @param far of all ranks; closed if this fails
  Optional<HostTransport> open(Transport far) {
    int[] hosts = hosts();
    long count = Arrays.stream(hosts).distinct().count();
    if (!Options.of(config).sharesMemory() || count == hosts.length) {
      return Optional.empty();
    }
    HostTransport near = null;
    try {
      if (!allHave(shared.isPresent(), count == 1)) {
        return Optional.empty();
      }
      CommException failure = null;
      try {
        near = shared.orElseThrow().open(host(hosts), config, count > 1);
      } catch (CommException e) {
        failure = e; // the other hosts must hear of it
      }
      List<String> windows = windows(near, failure);
      if (count == 1) {
        return beside(far, near, windows);
      }
      checkAll(windows, failure);
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

  /// Regions are all that is missing where there is no memory: UDP needs none.
  private Optional<HostTransport> beside(
      Transport far, @Nullable HostTransport near, List<String> windows) {
    if (near != null && windows.stream().allMatch(windows.getFirst()::equals)) {
      return Optional.of(new RegionsBeside(near, far));
    }
    if (near != null) {
      near.close();
    }
    if (session.rank() == 0) {
      LOG.log(
          System.Logger.Level.WARNING,
          "there are no shared regions; by rank, the bytes of its window or why it has none: {0}",
          windows);
    }
    return Optional.empty();
  }

  private boolean allHave(boolean mine, boolean isOneHost) {
    byte[] answer = {(byte) (mine ? 1 : 0)};
    List<byte[]> all = session.exchange("aeron/shared", answer, config.joinTimeout());
    List<Integer> without =
        IntStream.range(0, all.size()).filter(rank -> all.get(rank)[0] == 0).boxed().toList();
    if (!without.isEmpty() && session.rank() == 0) {
      LOG.log(
          isOneHost ? System.Logger.Level.DEBUG : System.Logger.Level.WARNING,
          "ranks of one host go by UDP and have no shared regions: rank(s) {0} have no comm4j-backend-local on their class path; add it, or set COMM_AERON_SHARED=false",
          without);
    }
    return without.isEmpty();
  }

  /// By rank, how large windows are, or why there are none.
  private List<String> windows(@Nullable HostTransport near, @Nullable CommException failure) {
    String mine = near == null ? FAILED + failure : Long.toString(near.windowBytes());
    return session
        .exchange("aeron/windows", cut(mine).getBytes(StandardCharsets.UTF_8), config.joinTimeout())
        .stream()
        .map(bytes -> new String(bytes, StandardCharsets.UTF_8))
        .toList();
  }

  /// Whether all have opened it, and with windows of one size: plans go by what they hold.
  private static void checkAll(List<String> all, @Nullable CommException failure) {
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
            "shared memory has windows of %s bytes on rank 0 but of %s on rank %d; set COMM_SHM_WINDOW to the same value on all hosts"
                .formatted(all.getFirst(), theirs, rank));
      }
    }
  }

  private static String cut(String text) {
    return text.substring(0, Math.min(text.length(), MOST_TEXT));
  }
}
