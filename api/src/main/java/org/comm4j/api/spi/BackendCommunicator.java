package org.comm4j.api.spi;

import java.util.List;
import java.util.Optional;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Capabilities;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.Operation;
import org.comm4j.api.Received;
import org.comm4j.api.Reduction;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.StreamSync;
import org.comm4j.api.Topology;
import org.jspecify.annotations.Nullable;

/// One rank's end of a communicator, as a backend implements it.
///
/// The API calls it from one thread at a time, with operations that are legal for the rank and
/// group, and not after [#close()]. Only [#failure()], [#abort], [#leaveCall] and [#abortProcess]
/// may come from any thread while another one is in a call; an abort makes that call end. What it
/// has made is used beside its calls too: any number of [Pending]s at once, each by one thread at a
/// time and none after [#close()]; buffers, regions and registered memory by any thread, also after
/// it, but for a region's fence, which comes as calls here do.
///
/// Exceptions are those of the public methods of the same names in [org.comm4j.api.Communicator].
/// After a failure the backend breaks the communicator on every rank and keeps its reason
/// ([#failure()]): first writer wins.
public interface BackendCommunicator {
  /// {@return this rank}
  int rank();

  /// {@return how many ranks}
  int size();

  /// {@return a name for people, the same on every rank}
  String name();

  /// {@return the provider's name}
  String backend();

  /// {@return what it can do, and which rules it can't keep}
  Capabilities capabilities();

  /// {@return where its ranks are}
  Topology topology();

  /// Reduces otherwise from now on: a rank of a launch of threads has asked for it. Called before
  /// this communicator's first operation; communicators that are made from it do the same.
  ///
  /// @param reduction the same on all ranks, else calls are a mismatch
  /// @return whether it can; if not, the rank is refused
  default boolean useReduction(Reduction reduction) {
    return false;
  }

  /// Starts an operation.
  ///
  /// @param operation legal for this rank and group
  /// @return its handle; for an operation that ended at once one that is done
  Pending submit(Operation operation);

  /// Runs an operation to its end. Backends override it to spare the handle.
  ///
  /// @param operation legal for this rank and group
  /// @return what a receive, a sendReceive or a probe got; null for every other operation
  default @Nullable Received run(Operation operation) {
    Pending pending = submit(operation);
    pending.await(Long.MAX_VALUE);
    return pending.received();
  }

  /// Ends everything this rank has started.
  void sync();

  /// Makes one communicator for every colour; a collective.
  ///
  /// @param color 0 or more, or [org.comm4j.api.Communicator#NO_COLOR]
  /// @param key orders the ranks of a colour; equal keys keep their order
  /// @return this rank's end; empty only for `NO_COLOR`
  Optional<BackendCommunicator> split(int color, int key);

  /// Makes another communicator of the same ranks; a collective.
  ///
  /// @return this rank's end of it
  BackendCommunicator duplicate();

  /// Makes a communicator for the ranks of each host, by [HostIdentity#id()]; a collective.
  ///
  /// @return this rank's end of its host's communicator
  BackendCommunicator splitLocal();

  /// Makes a communicator of the ranks that are still alive; a collective of the survivors, also
  /// when this communicator is broken.
  ///
  /// @return what it made; this communicator stays as it is
  Shrink shrink();

  /// Allocates zeroed memory that this communicator moves without a copy. Local.
  ///
  /// @param type what the elements are
  /// @param count how many, 0 or more
  /// @return the memory; closing it twice does nothing
  CommBuffer allocate(DataType type, long count);

  /// {@return memory shared by the ranks of a host} The same object at every call.
  SharedMemoryProvider sharedMemory();

  /// {@return ordering with a device's streams; empty unless the backend has
  /// [org.comm4j.api.Capability#STREAMS]}
  default Optional<StreamSync> streamSync() {
    return Optional.empty();
  }

  /// Breaks the communicator on every rank.
  ///
  /// @param failure what this rank throws from now on; the others get an
  ///   [org.comm4j.api.AbortedException] that names this rank and carries the message
  void abort(CommException failure);

  /// Ends the call that another thread is in, as an abort does: this rank is about to close the
  /// communicator. The call may reach the backend only now, since its thread is past the API's
  /// checks already, as does the barrier behind a [#sync()]: it throws then, a
  /// [org.comm4j.api.ClosedException] or why the communicator is broken, and waits for nobody.
  /// Besides, [#failure()], [#abort], [#abortProcess] and calls on [Pending]s may come until
  /// [#close()]. Ranks that have no part in the call (a receive or probe that nothing has matched)
  /// are not concerned; a backend that does not know breaks the communicator on all.
  ///
  /// @param reason what the others get if they are concerned
  default void leaveCall(AbortedException reason) {
    abort(reason);
  }

  /// Ends the processes of all ranks, this one included. Does not return.
  ///
  /// @param code the exit code, `1..255`
  void abortProcess(int code);

  /// {@return why the communicator is broken; null while it is not} Cheap, and takes in news of
  /// failed peers.
  @Nullable CommException failure();

  /// Ends this rank's part. Idempotent, never throws because of a peer. The API has let what was
  /// started go on for up to 0.4 s; what is pending still, nobody will ask for. Takes at most 0.8
  /// s. Communicators that were made from this one live on; what they share ends with the last.
  void close();

  /// What [#shrink()] made.
  ///
  /// @param communicator the survivors'
  /// @param oldRanks for each new rank the old one
  /// @param epoch how often the session has shrunk
  record Shrink(BackendCommunicator communicator, List<Integer> oldRanks, int epoch) {}
}
