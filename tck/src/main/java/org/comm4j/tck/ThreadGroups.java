package org.comm4j.tck;

import java.util.function.IntFunction;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.session.SessionGroup;

/// Groups whose ranks are threads of this JVM, also of backends whose ranks usually are processes:
/// their sessions are in memory then.
public final class ThreadGroups {
  private ThreadGroups() {}

  /// Opens a group of a provider, whatever its ranks are.
  ///
  /// @param provider need not be found by discovery
  /// @param size how many ranks
  /// @param config of all ranks
  /// @return the group; the caller closes it
  public static LocalGroup open(BackendProvider provider, int size, CommConfig config) {
    return provider.launchesThreads()
        ? LocalGroup.of(provider.launch(size, config))
        : open(size, session -> provider.open(session, config));
  }

  /// Opens a group rank by rank.
  ///
  /// @param size how many ranks
  /// @param opener opens each
  /// @return the group; the caller closes it
  public static LocalGroup open(int size, SessionGroup.Opener opener) {
    return open(InMemorySessions.group(size), opener);
  }

  /// Opens a group whose ranks pretend to be on several hosts.
  ///
  /// @param size how many ranks
  /// @param hosts where each rank is
  /// @param opener opens each
  /// @return the group; the caller closes it
  public static LocalGroup open(
      int size, IntFunction<HostIdentity> hosts, SessionGroup.Opener opener) {
    return open(InMemorySessions.group(size, hosts), opener);
  }

  private static LocalGroup open(InMemorySessions sessions, SessionGroup.Opener opener) {
    return LocalGroup.of(SessionGroup.open(sessions, opener, () -> {}));
  }
}
