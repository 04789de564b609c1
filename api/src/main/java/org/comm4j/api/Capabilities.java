package org.comm4j.api;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;

/// What a communicator can do, and which rules of `docs/contract.md` it can't keep.
///
/// @param supported what it can do
/// @param deviations rules it can't keep, by number, each with the reason; only rules that the
///   contract's closed list names may stand here
public record Capabilities(Set<Capability> supported, Map<String, String> deviations) {
  /// Copies the collections.
  public Capabilities {
    supported =
        supported.isEmpty()
            ? Set.of()
            : java.util.Collections.unmodifiableSet(EnumSet.copyOf(supported));
    deviations = Map.copyOf(deviations);
  }

  /// {@return whether the communicator can do this}
  ///
  /// @param capability what is asked for
  public boolean supports(Capability capability) {
    return supported.contains(capability);
  }
}
