package org.comm4j.tck;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.time.Duration;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Reduction;

/// What a check needs beyond a communicator; without it the check is not run and the report says
/// why.
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
@interface Needs {
  /// How many ranks at least.
  int ranks() default 1;

  /// Whether all ranks are to be on one host.
  boolean oneHost() default false;

  /// What the communicator can do.
  Capability[] capabilities() default {};

  /// How the launch is configured.
  Setting setting() default Setting.ANY;

  /// Whether a rank is to die.
  boolean death() default false;

  /// A configuration that a check is about.
  enum Setting {
    /// Whatever it is.
    ANY("") {
      @Override
      CommConfig apply(CommConfig config) {
        return config;
      }

      @Override
      boolean holds(CommConfig config) {
        return true;
      }
    },
    /// A deadline that can be waited for.
    SHORT_TIMEOUT("COMM_TIMEOUT=30s or less") {
      @Override
      CommConfig apply(CommConfig config) {
        return config.toBuilder().timeout(Duration.ofSeconds(2)).build();
      }

      @Override
      boolean holds(CommConfig config) {
        return config.timeout().compareTo(Duration.ofSeconds(30)) <= 0;
      }
    },
    /// Sends that wait for their receives.
    SYNCHRONOUS_SEND("COMM_SYNC_SEND=true") {
      @Override
      CommConfig apply(CommConfig config) {
        return config.toBuilder().synchronousSend(true).build();
      }

      @Override
      boolean holds(CommConfig config) {
        return config.synchronousSend();
      }
    },
    /// Reductions in the order of the ranks.
    ORDERED("COMM_REDUCTION=ordered") {
      @Override
      CommConfig apply(CommConfig config) {
        return config.toBuilder().reduction(Reduction.ORDERED).build();
      }

      @Override
      boolean holds(CommConfig config) {
        return config.reduction() == Reduction.ORDERED;
      }
    };

    private final String variable;

    Setting(String variable) {
      this.variable = variable;
    }

    /// How a user sets it: a variable and its value.
    String variable() {
      return variable;
    }

    /// The configuration with this in it.
    abstract CommConfig apply(CommConfig config);

    /// Whether a configuration has it.
    abstract boolean holds(CommConfig config);
  }
}
