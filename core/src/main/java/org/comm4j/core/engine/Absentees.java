package org.comm4j.core.engine;

import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntConsumer;

/// Finds out which ranks that are waited for in an agreement over the session won't come: they have
/// left, or have closed the communicator, which they say when they are asked.
///
/// What they say comes by the transport, and what they have given to the agreement by the session,
/// so that this may be still on its way; what this rank gives to the session itself comes back
/// behind it.
final class Absentees {
  private final Context context;
  private final Engine engine;
  private final String key;
  private final IntConsumer ask;
  private boolean hasAsked;
  private final Set<Integer> heard = new HashSet<>(); // world ranks: what they gave is here

  /// @param key the agreement's
  /// @param ask asks a rank whether it has closed the communicator
  Absentees(Context context, String key, IntConsumer ask) {
    this.context = context;
    this.engine = context.engine();
    this.key = key;
    this.ask = ask;
  }

  /// Looks for one that won't come.
  ///
  /// @param missing who has not come, as world ranks
  /// @return its world rank
  Optional<Integer> find(List<Integer> missing) {
    Optional<Integer> absent = missing.stream().filter(heard::contains).findFirst();
    if (absent.isPresent()) {
      return absent;
    }
    for (int each : haveLeft(missing)) {
      List<Integer> me = List.of(engine.worldRank());
      engine.session().agree(key + "/heard/" + each, me, new byte[0], engine.config().timeout());
      heard.add(each);
    }
    return Optional.empty(); // the next look finds those that have left
  }

  private List<Integer> haveLeft(List<Integer> missing) {
    try (var _ = engine.enter()) {
      if (context.isClosed()) {
        return List.of(); // by another thread, which the caller finds
      }
      if (!hasAsked) {
        hasAsked = true;
        missing.forEach(each -> ask.accept(context.rankOf(each)));
      }
      engine.advance();
      return missing.stream().filter(each -> context.hasLeft(context.rankOf(each))).toList();
    }
  }
}
