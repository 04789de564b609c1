package org.comm4j.core.engine;

import java.util.ArrayList;
import java.util.List;

/// A collective's message that came before its step was ready, as far as it has come.
final class Early {
  private final long what;
  private final long count;
  private final long detail;
  private final List<KeptPayloads.Payload> payloads = new ArrayList<>(1);
  private boolean requested;

  Early(long what, long count, long detail) {
    this.what = what;
    this.count = count;
    this.detail = detail;
  }

  /// Which message of a collective.
  record Key(int peer, int number) {}

  void add(KeptPayloads.Payload payload) {
    payloads.add(payload);
  }

  void request() {
    requested = true;
  }

  long what() {
    return what;
  }

  long count() {
    return count;
  }

  long detail() {
    return detail;
  }

  List<KeptPayloads.Payload> payloads() {
    return payloads;
  }

  boolean isRequested() {
    return requested;
  }
}
