package org.comm4j.core.engine;

import java.util.List;

/// How messages say what a call has waited for too long, and what to do about it.
final class Lacks {
  private static final String MORE_TIME = "raise COMM_TIMEOUT if they may take longer";

  private Lacks() {}

  /// @param absent ranks
  /// @param what they have not done: `come`
  /// @param advice what to do in the likeliest case; empty if nothing but more time helps
  static String ofRanks(List<Integer> absent, String what, String advice) {
    return "rank(s) %s, who are alive but have not %s; %s%s"
        .formatted(absent, what, advice.isEmpty() ? "" : advice + ", else ", MORE_TIME);
  }
}
