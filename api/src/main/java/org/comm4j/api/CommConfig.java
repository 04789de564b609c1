package org.comm4j.api;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;

/// PLACEHOLDER javadoc: the config author replaces this file; the accessors stay.
public record CommConfig(
    String backend,
    OptionalInt rank,
    OptionalInt worldSize,
    OptionalInt localRank,
    OptionalInt localWorldSize,
    OptionalInt nodeRank,
    Optional<String> masterAddress,
    OptionalInt masterPort,
    Optional<String> session,
    Optional<Path> secretFile,
    Duration timeout,
    Duration liveness,
    Duration joinTimeout,
    Reduction reduction,
    CheckLevel check,
    boolean synchronousSend,
    Optional<Path> tuning,
    Optional<String> pluginPath,
    Map<String, String> options,
    String launcher) {

  /// The backend name that stands for the best usable one.
  public static final String AUTO = "auto";

  /// How much ranks compare with each other before they communicate.
  public enum CheckLevel {
    BASIC,
    FULL
  }
}
