package org.comm4j.api.spi;

/// Whether a backend can be used on this host.
public sealed interface Availability {
  /// It can.
  record Ready() implements Availability {}

  /// It can't.
  ///
  /// @param reason what is missing, a sentence without a full stop
  /// @param remedy what to do about it, the same
  record Unavailable(String reason, String remedy) implements Availability {}

  /// It can.
  ///
  /// @return that it can
  static Availability ready() {
    return new Ready();
  }

  /// It can't.
  ///
  /// @param reason what is missing, a sentence without a full stop
  /// @param remedy what to do about it, the same
  /// @return that it can't
  static Availability unavailable(String reason, String remedy) {
    return new Unavailable(reason, remedy);
  }
}
