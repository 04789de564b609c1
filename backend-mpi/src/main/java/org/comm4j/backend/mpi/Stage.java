package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.MismatchedCallException;

/// A part of a call: what the library does, then what we do with it. The stages of a call run one
/// after the other.
interface Stage {
  /// How many requests it has at most.
  default int requests() {
    return 1;
  }

  /// Starts it with the library's non-blocking functions.
  void start(Requests requests);

  /// Runs it with the library's blocking function, where there is one.
  default void run(Requests requests) {
    start(requests);
    requests.await();
  }

  /// Does our part, when the library has done its.
  ///
  /// @throws MismatchedCallException if what has come is not what this rank expected
  default void end(Requests requests) {}

  /// This, and when the library has done its part, something of ours.
  default Stage then(Runnable ours) {
    Stage library = this;
    return new Stage() {
      @Override
      public int requests() {
        return library.requests();
      }

      @Override
      public void start(Requests requests) {
        library.start(requests);
      }

      @Override
      public void run(Requests requests) {
        library.run(requests);
      }

      @Override
      public void end(Requests requests) {
        library.end(requests);
        ours.run();
      }
    };
  }

  /// A function of the library that starts something.
  interface Start {
    int with(MemorySegment request);
  }

  /// A function of the library that returns when it is done.
  interface Run {
    int now();
  }

  /// One function of the library in its two forms.
  ///
  /// @param function its name, for messages
  /// @param amounts whose types were made for it
  static Stage of(String function, Start start, Run run, Amount... amounts) {
    return new Stage() {
      @Override
      public void start(Requests requests) {
        int code = start.with(requests.next());
        free();
        Errors.check(code, "MPI_I" + function.toLowerCase(java.util.Locale.ROOT));
      }

      @Override
      public void run(Requests requests) {
        int code = run.now();
        free();
        Errors.check(code, "MPI_" + function);
      }

      private void free() {
        for (Amount amount : amounts) {
          amount.free();
        }
      }
    };
  }

  /// Something of ours alone.
  static Stage ours(Runnable action) {
    return new Stage() {
      @Override
      public int requests() {
        return 0;
      }

      @Override
      public void start(Requests requests) {}

      @Override
      public void end(Requests requests) {
        action.run();
      }
    };
  }
}
