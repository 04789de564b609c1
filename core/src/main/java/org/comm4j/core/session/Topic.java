package org.comm4j.core.session;

import java.util.List;

/// What ranks contribute to: one exchange or one agreement.
///
/// @param kind which of the two
/// @param key as the caller gave it
/// @param members of an agreement, in the caller's order; empty for an exchange, which is
///   everyone's
record Topic(Kind kind, String key, List<Integer> members) {
  enum Kind {
    EXCHANGE,
    AGREEMENT
  }

  Topic {
    members = List.copyOf(members);
  }

  static Topic exchange(String key) {
    return new Topic(Kind.EXCHANGE, key, List.of());
  }

  static Topic agreement(String key, List<Integer> members) {
    return new Topic(Kind.AGREEMENT, key, members);
  }

  boolean includes(int rank) {
    return kind == Kind.EXCHANGE || members.contains(rank);
  }

  @Override
  public String toString() {
    return (kind == Kind.EXCHANGE ? "exchange '" : "agree '") + key + "'";
  }
}
