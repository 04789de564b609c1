package org.comm4j.cli;

import java.util.Locale;

/// One thing that [Doctor] looked at.
///
/// @param area what it belongs to
/// @param item what was looked at
/// @param status whether it is as it should be
/// @param value what was found
/// @param note what it means, and what to do where something is wrong
record Finding(String area, String item, Status status, String value, String note) {
  /// Whether something is as it should be.
  enum Status {
    /// As it should be.
    OK,
    /// Worth knowing, but nothing that must change.
    NOTE,
    /// The user must mend it.
    PROBLEM;

    String text() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  static Finding ok(String area, String item, String value, String note) {
    return new Finding(area, item, Status.OK, value, note);
  }

  static Finding note(String area, String item, String value, String note) {
    return new Finding(area, item, Status.NOTE, value, note);
  }

  static Finding problem(String area, String item, String value, String note) {
    return new Finding(area, item, Status.PROBLEM, value, note);
  }
}
