package org.comm4j.backend.mpi;

import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.OptionText;

/// How this process's threads may call the library, `COMM_MPI_THREADS`.
enum ThreadLevel {
  /// At the same time.
  MULTIPLE,
  /// One at a time, for libraries that can't do more: each call waits for the one before it, and
  /// none waits in the library for other ranks, but those that make something there, which take
  /// turns ([Turn]).
  SERIALIZED;

  static final String OPTION = "COMM_MPI_THREADS";

  /// {@return what is configured}
  ///
  /// @throws IllegalArgumentException if that is none of these, or does not go with how ranks wait
  static ThreadLevel of(CommConfig config) {
    ThreadLevel level =
        OptionText.of(config, OPTION)
            .map(text ->
                text.word(ThreadLevel.class, "serialized is for a library that has no more"))
            .orElse(MULTIPLE);
    if (level == SERIALIZED && Wait.of(config) == Wait.NATIVE) {
      throw new IllegalArgumentException(
          "%s: 'native' (expected: test or auto, as %s is serialized: a thread that waits in the library would keep all others out)"
              .formatted(Wait.OPTION, OPTION));
    }
    return level;
  }

  /// What MPI calls it, of the library that is loaded.
  int inLibrary() {
    Constants constants = Functions.constants();
    return this == MULTIPLE ? constants.threadMultiple : constants.threadSerialized;
  }

  /// In MPI's words.
  String shown() {
    return "MPI_THREAD_" + name();
  }
}
