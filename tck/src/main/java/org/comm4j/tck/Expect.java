package org.comm4j.tck;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// Assertions that name the rule they are about. They need no test framework, since checks run in
/// programs too.
final class Expect {
  /// How long anything may take that is expected to happen at all.
  static final Duration SOON = Duration.ofSeconds(30);

  private Expect() {}

  /// Something that may throw.
  @FunctionalInterface
  interface Action {
    void run() throws Exception;
  }

  static void that(String rule, boolean holds, String sentence, @Nullable Object... arguments) {
    if (!holds) {
      throw new RuleViolation(rule, sentence.formatted(arguments));
    }
  }

  static void equal(String rule, String what, @Nullable Object actual, @Nullable Object expected) {
    that(rule, Objects.equals(actual, expected), "%s is %s (expected: %s)", what, actual, expected);
  }

  /// That an action throws this.
  static <T extends Throwable> T thrown(String rule, Class<T> type, String what, Action action) {
    try {
      action.run();
    } catch (Throwable e) {
      if (type.isInstance(e)) {
        return type.cast(e);
      }
      throw new RuleViolation(
          rule, "%s threw %s (expected: %s)".formatted(what, text(e), type.getSimpleName()), e);
    }
    throw new RuleViolation(
        rule, "%s threw nothing (expected: %s)".formatted(what, type.getSimpleName()));
  }

  /// That an action throws nothing.
  static void fine(String rule, String what, Action action) {
    try {
      action.run();
    } catch (RuleViolation e) {
      throw e;
    } catch (Throwable e) {
      throw new RuleViolation(rule, "%s threw %s".formatted(what, text(e)), e);
    }
  }

  /// That something comes true, while this thread does nothing but look.
  static void eventually(String rule, String what, BooleanSupplier condition) {
    long start = System.nanoTime();
    while (!condition.getAsBoolean()) {
      that(rule, System.nanoTime() - start < SOON.toNanos(), "%s within %s: no", what, SOON);
      LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(200));
    }
  }

  /// That a message has some words.
  static void says(String rule, Throwable thrown, String... words) {
    String message = String.valueOf(thrown.getMessage());
    for (String word : words) {
      that(rule, message.contains(word), "'%s' says nothing of '%s'", message, word);
    }
  }

  static String text(Throwable e) {
    return e.getClass().getSimpleName() + ": " + e.getMessage();
  }
}
