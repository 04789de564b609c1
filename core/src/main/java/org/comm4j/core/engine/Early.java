package org.comm4j.core.engine;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// A collective's message that came before its step was ready, as far as it has come.
final class Early {
  private final long what;
  private final long count;
  private final long detail;
  private final List<Payload> payloads = new ArrayList<>(1);
  private boolean requested;

  Early(long what, long count, long detail) {
    this.what = what;
    this.count = count;
    this.detail = detail;
  }

  /// Which message of a collective.
  record Key(int peer, int number) {}

  /// A copy of what came.
  @SuppressWarnings("ArrayRecordComponent") // never compared
  record Payload(byte[] bytes, boolean credited) {}

  void add(MemorySegment payload, boolean credited) {
    payloads.add(new Payload(payload.toArray(JAVA_BYTE), credited));
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

  List<Payload> payloads() {
    return payloads;
  }

  boolean isRequested() {
    return requested;
  }
}
