package org.comm4j.core.engine;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CommException;
import org.comm4j.api.TransportFailedException;
import org.jspecify.annotations.Nullable;

/// What is made of one communicator, as far as it breaks with that: what is being made, whose ranks
/// may wait there for some that can't come any more, and for ever what the library has made for its
/// own use. Guarded by the engine's lock.
final class Children {
  private final Context parent;
  private final List<Context> together = new ArrayList<>(); // the library's own
  private final List<Context> unfinished = new ArrayList<>(); // that are being made
  private @Nullable Context shrunk; // of these, the one that does not break when the parent does

  Children(Context parent) {
    this.parent = parent;
  }

  /// Lets one that is being made break when the parent does or is closed, until it is [#finished].
  void making(Context child) {
    unfinished.add(child);
    CommException failure = parent.failure();
    if (parent.isClosed()) {
      breakFor(child);
    } else if (failure != null) {
      breakUnfinished(child, failure);
    }
  }

  /// The same for one of the library's own, which breaks with the parent for ever: its ranks are
  /// told of that one.
  void makingTogether(Context child) {
    together.add(child);
    child.becomePart();
    CommException failure = parent.failure();
    if (failure != null) {
      child.breakWith(failure, false);
    }
    making(child);
  }

  /// The same for one of the parent's survivors, which is made where that is broken: it breaks when
  /// that is closed.
  void shrinkingTo(Context child) {
    shrunk = child;
    unfinished.add(child);
    if (parent.isClosed()) {
      breakFor(child);
    }
  }

  void finished(Context child) {
    unfinished.remove(child);
    if (shrunk == child) {
      shrunk = null;
    }
  }

  /// The parent has broken.
  void breakWith(CommException reason) {
    together.forEach(child -> child.breakWith(reason, false));
    unfinished.stream()
        .filter(child -> child != shrunk)
        .forEach(child -> breakUnfinished(child, reason));
  }

  /// The parent was closed on this rank: nobody gets any more what is being made.
  void parentClosed() {
    together.stream()
        .filter(child -> child.calls().stream().anyMatch(Call::concernsPeers))
        .forEach(this::breakFor);
    unfinished.forEach(this::breakFor);
  }

  /// Tells its ranks: for those that have it already, it does not break with the parent.
  private void breakUnfinished(Context child, CommException reason) {
    child.take(child.engine().session().news()); // of a death it knows more than that
    if (reason instanceof TransportFailedException) {
      child.breakWith(reason, true);
    }
    String message =
        "'%s' broke while '%s' was made of it: %s"
            .formatted(parent.name(), child.name(), reason.getMessage());
    child.breakWith(new AbortedException(child.rank(), message, reason), true);
  }

  private void breakFor(Context child) {
    String reason = "rank %d closed '%s'".formatted(child.rank(), parent.name());
    child.breakWith(new AbortedException(child.rank(), reason, null), true);
  }
}
