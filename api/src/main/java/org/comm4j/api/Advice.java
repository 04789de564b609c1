package org.comm4j.api;

import java.util.Objects;

/// Something on this host that a backend would like to be otherwise, though it works: a limit of
/// the system, little space.
///
/// @param subject what it is about, in a few words, for example `socket buffers`
/// @param found how it is
/// @param remedy what that means, and what to do about it, sentences
public record Advice(String subject, String found, String remedy) {
  /// Refuses null, which strangers' backends may give.
  public Advice {
    Objects.requireNonNull(subject, "subject");
    Objects.requireNonNull(found, "found");
    Objects.requireNonNull(remedy, "remedy");
  }
}
