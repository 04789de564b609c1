package org.comm4j.api.spi;

import java.util.List;
import java.util.Optional;
import org.comm4j.api.Capabilities;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.Operation;
import org.comm4j.api.Received;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.StreamSync;
import org.comm4j.api.Topology;
import org.jspecify.annotations.Nullable;

/// One rank's end of a communicator, as a backend implements it.
///
/// The API calls it from one thread at a time, with operations that are legal for the rank and
/// group, and not after [#close()]. Exceptions are those of the public methods of the same names in
/// [org.comm4j.api.Communicator]. After a failure the backend breaks the communicator on every rank
/// and keeps its reason ([#failure()]): first writer wins.
public interface BackendCommunicator {
  /// This rank.
  int rank();

  /// How many ranks.
  int size();

  /// The same on every rank.
  String name();

  /// The provider's name.
  String backend();

  Capabilities capabilities();

  Topology topology();

  /// Starts an operation.
  ///
  /// @return its handle; for an operation that ended at once one that is done
  Pending submit(Operation operation);

  /// Runs an operation to its end. Backends override it to spare the handle.
  default @Nullable Received run(Operation operation) {
    Pending pending = submit(operation);
    pending.await(Long.MAX_VALUE);
    return pending.received();
  }

  /// Ends everything this rank has started.
  void sync();

  /// @param color 0 or more, or [org.comm4j.api.Communicator#NO_COLOR]
  Optional<BackendCommunicator> split(int color, int key);

  BackendCommunicator duplicate();

  BackendCommunicator splitLocal();

  Shrink shrink();

  CommBuffer allocate(DataType type, long count);

  SharedMemoryProvider sharedMemory();

  default Optional<StreamSync> streamSync() {
    return Optional.empty();
  }

  /// Breaks the communicator on every rank.
  ///
  /// @param failure what this rank throws from now on; the others get an
  ///   [org.comm4j.api.AbortedException] that names this rank and carries the message
  void abort(CommException failure);

  void abortProcess(int code);

  /// Why the communicator is broken; null while it is not. Cheap, and takes in news of failed
  /// peers.
  @Nullable CommException failure();

  /// Ends this rank's part within 2 s. Idempotent, never throws because of a peer.
  void close();

  /// What [#shrink()] made.
  ///
  /// @param communicator the survivors'
  /// @param oldRanks for each new rank the old one
  /// @param epoch how often the session has shrunk
  record Shrink(BackendCommunicator communicator, List<Integer> oldRanks, int epoch) {}
}
