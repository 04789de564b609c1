package org.comm4j.api;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.comm4j.api.spi.RankKind;

/// A backend as [Backends#availableBackends()] lists it, whether it can be used or not.
///
/// @param name the backend's name; for one so broken that it tells no name, its class
/// @param status whether it can be used on this host
/// @param kind what its ranks are; empty if it is too broken to tell
/// @param priority how much `auto` prefers it among usable backends; the larger one wins, 0..100
/// @param reaches what it reaches, in a few words
/// @param version its version
/// @param capabilities what its communicators can do when all is well
/// @param details what else it tells of itself on this host, in its own order, for example which
///   library it uses
/// @param advice what it would like to be otherwise on this host
/// @param reason why it can't be used; empty if it can
/// @param remedy what to do about it; empty if it can be used
public record BackendInfo(
    String name,
    Status status,
    Optional<RankKind> kind,
    int priority,
    String reaches,
    String version,
    Set<Capability> capabilities,
    Map<String, String> details,
    List<Advice> advice,
    Optional<String> reason,
    Optional<String> remedy) {

  /// Whether a backend can be used.
  public enum Status {
    /// It can be used on this host.
    READY,
    /// Something on this host is missing.
    UNAVAILABLE,
    /// The backend itself is at fault: it can't be loaded, breaks its contract, or has a name that
    /// another one has too.
    BROKEN
  }

  /// Copies the collections.
  public BackendInfo {
    capabilities = Set.copyOf(capabilities);
    details.forEach((key, text) -> Objects.requireNonNull(text, key));
    details = Collections.unmodifiableMap(new LinkedHashMap<>(details));
    advice = List.copyOf(advice);
  }

  /// The same, but this host lacks something.
  BackendInfo unavailable(String why, String whatToDo) {
    return new BackendInfo(
        name,
        Status.UNAVAILABLE,
        kind,
        priority,
        reaches,
        version,
        capabilities,
        details,
        advice,
        Optional.of(why),
        Optional.of(whatToDo));
  }

  /// The same with what only listings show.
  BackendInfo detailed(Map<String, String> itsDetails, List<Advice> itsAdvice) {
    return new BackendInfo(
        name,
        status,
        kind,
        priority,
        reaches,
        version,
        capabilities,
        itsDetails,
        itsAdvice,
        reason,
        remedy);
  }

  /// {@return whether it can be used on this host}
  public boolean isReady() {
    return status == Status.READY;
  }
}
