package org.comm4j.tck;

import java.util.List;

/// What [LiveVerification] found, the same on all ranks.
///
/// @param seed repeats it
/// @param rows one for each rule that a check is about, in the order of `docs/contract.md`
public record LiveReport(long seed, List<Row> rows) {
  /// How a rule was found.
  public enum Status {
    /// Every check of it passed.
    PASSED,
    /// A check of it failed.
    FAILED,
    /// The backend says that it can't keep it.
    DECLARED,
    /// No check of it could run here.
    NOT_RUN
  }

  /// One rule.
  ///
  /// @param rule its id
  /// @param status how it was found
  /// @param detail why it is not passed; empty if it is
  public record Row(String rule, Status status, String detail) {}

  /// Copies the collections.
  public LiveReport {
    rows = List.copyOf(rows);
  }

  /// {@return whether no rule failed}
  public boolean passed() {
    return rows.stream().noneMatch(row -> row.status() == Status.FAILED);
  }

  /// {@return how many rules have a status}
  ///
  /// @param status the status
  public long count(Status status) {
    return rows.stream().filter(row -> row.status() == status).count();
  }
}
