package org.comm4j.tck;

import java.util.List;

/// Rules of `docs/contract.md` that were not kept.
public final class RuleViolation extends AssertionError {
  private static final long serialVersionUID = 1L;
  private final String rules;

  /// Makes the error.
  ///
  /// @param rule the rule's id; several ones are separated by a blank
  /// @param message what was done, what came, what was expected
  public RuleViolation(String rule, String message) {
    this(rule, message, null);
  }

  /// Makes the error.
  ///
  /// @param rule the rule's id; several ones are separated by a blank
  /// @param message what was done, what came, what was expected
  /// @param cause what was thrown, or null
  public RuleViolation(
      String rule, String message, @org.jspecify.annotations.Nullable Throwable cause) {
    super(rule + ": " + message, cause);
    this.rules = rule;
  }

  /// {@return the rules' ids, for example `O1`}
  public List<String> rules() {
    return List.of(rules.split(" ", -1));
  }
}
