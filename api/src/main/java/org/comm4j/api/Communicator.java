package org.comm4j.api;

import static org.comm4j.api.CommData.of;

import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// A group of ranks that call the same operations.
///
/// **Calls.** Every operation comes in three forms: a method that blocks until this rank's part is
/// done (`allReduce(…)`), [#start] which returns a [Request], and [#prepare] for one that is
/// started often. Shapes, in-place rules and errors stand with the records in [Collective] and
/// [PointToPoint]. All ranks start the same collectives in the same order.
///
/// **Threads.** One thread at a time: a second one that calls in the meantime gets a
/// [ConcurrentUseException]. Handing a communicator from thread to thread between calls is free.
/// Different communicators are independent.
///
/// **Memory.** The caller owns all data. Memory of a confined arena is fine in blocking calls on
/// its own thread and refused in asynchronous ones.
///
/// **Errors.** A wrong argument is an [IllegalArgumentException] on this rank alone, before any
/// peer is involved, and changes nothing. After a failure ([CommException]) inputs are as they
/// were, outputs undefined, and the communicator is broken: each later call throws the same
/// exception at once, only [#shrink()] and [#close()] work.
///
/// **Waiting.** No call waits longer than its deadline (`COMM_TIMEOUT`, 5 minutes unless set).
public interface Communicator extends NodeCommunicator, AutoCloseable {
  /// Receive from whichever rank sends.
  int ANY_SOURCE = -1;

  /// Receive whatever tag a message has.
  int ANY_TAG = -1;

  /// The largest tag of a message.
  int MAX_TAG = 32767;

  /// The colour of ranks that want no part of a [#split].
  int NO_COLOR = -1;

  // --- who and what ---

  /// A name for people, for example `world` or `world/split-3`; the same on every rank.
  String name();

  /// The backend's name, for example `shm`.
  String backend();

  /// What this communicator can do.
  Capabilities capabilities();

  /// Where its ranks are.
  Topology topology();

  // --- any operation ---

  /// Runs an operation and waits until this rank's part is done.
  ///
  /// @return what a receive or probe got, null for every other operation
  /// @throws IllegalArgumentException if the operation does not fit this rank and group
  @Nullable Received run(Operation operation);

  /// Starts an operation.
  ///
  /// @throws IllegalArgumentException if the operation does not fit this rank and group
  Request start(Operation operation);

  /// Checks an operation once, for any number of starts.
  ///
  /// @throws IllegalArgumentException if the operation does not fit this rank and group
  PersistentRequest prepare(Operation operation);

  // --- collectives; shapes and rules stand with the records ---

  /// [Collective.AllReduce] in place.
  default void allReduce(CommData data, ReduceOp op) {
    run(new Collective.AllReduce(data, data, op));
  }

  /// [Collective.AllReduce].
  default void allReduce(CommData input, CommData output, ReduceOp op) {
    run(new Collective.AllReduce(input, output, op));
  }

  /// [Collective.AllReduce] of FLOAT32, in place.
  default void allReduce(float[] data, ReduceOp op) {
    allReduce(of(data), op);
  }

  /// [Collective.AllReduce] of FLOAT64, in place.
  default void allReduce(double[] data, ReduceOp op) {
    allReduce(of(data), op);
  }

  /// [Collective.AllReduce] of INT32, in place.
  default void allReduce(int[] data, ReduceOp op) {
    allReduce(of(data), op);
  }

  /// [Collective.AllReduce] of INT64, in place.
  default void allReduce(long[] data, ReduceOp op) {
    allReduce(of(data), op);
  }

  /// [Collective.AllReduce] of one number.
  ///
  /// @return the reduction of all ranks' values
  default double allReduce(double value, ReduceOp op) {
    double[] data = {value};
    allReduce(data, op);
    return data[0];
  }

  /// [Collective.AllReduce] of one number.
  ///
  /// @return the reduction of all ranks' values
  default long allReduce(long value, ReduceOp op) {
    long[] data = {value};
    allReduce(data, op);
    return data[0];
  }

  /// [Collective.Reduce].
  default void reduce(CommData input, @Nullable CommData output, ReduceOp op, int root) {
    run(new Collective.Reduce(input, output, op, root));
  }

  /// [Collective.Reduce] of FLOAT32, in place on the root.
  default void reduce(float[] data, ReduceOp op, int root) {
    reduce(of(data), of(data), op, root);
  }

  /// [Collective.Reduce] of FLOAT64, in place on the root.
  default void reduce(double[] data, ReduceOp op, int root) {
    reduce(of(data), of(data), op, root);
  }

  /// [Collective.Broadcast].
  default void broadcast(CommData data, int root) {
    run(new Collective.Broadcast(data, root));
  }

  /// [Collective.Broadcast] of FLOAT32.
  default void broadcast(float[] data, int root) {
    broadcast(of(data), root);
  }

  /// [Collective.Broadcast] of FLOAT64.
  default void broadcast(double[] data, int root) {
    broadcast(of(data), root);
  }

  /// [Collective.Broadcast] of INT32.
  default void broadcast(int[] data, int root) {
    broadcast(of(data), root);
  }

  /// [Collective.Broadcast] of INT64.
  default void broadcast(long[] data, int root) {
    broadcast(of(data), root);
  }

  /// [Collective.Broadcast] of INT8, that is of bytes.
  default void broadcast(byte[] data, int root) {
    broadcast(of(data), root);
  }

  /// [Collective.AllGather].
  default void allGather(CommData input, CommData output) {
    run(new Collective.AllGather(input, output));
  }

  /// [Collective.AllGather] of FLOAT32.
  default void allGather(float[] input, float[] output) {
    allGather(of(input), of(output));
  }

  /// [Collective.AllGather] of FLOAT64.
  default void allGather(double[] input, double[] output) {
    allGather(of(input), of(output));
  }

  /// [Collective.AllGather] of INT32.
  default void allGather(int[] input, int[] output) {
    allGather(of(input), of(output));
  }

  /// [Collective.AllGather] of INT64.
  default void allGather(long[] input, long[] output) {
    allGather(of(input), of(output));
  }

  /// [Collective.AllGatherV], parts one behind the other.
  default void allGatherV(CommData input, CommData output, long[] counts) {
    run(new Collective.AllGatherV(input, output, Partition.of(counts)));
  }

  /// [Collective.AllGatherV].
  default void allGatherV(CommData input, CommData output, long[] counts, long[] displacements) {
    run(new Collective.AllGatherV(input, output, Partition.of(counts, displacements)));
  }

  /// [Collective.Gather].
  default void gather(CommData input, @Nullable CommData output, int root) {
    run(new Collective.Gather(input, output, root));
  }

  /// [Collective.GatherV].
  default void gatherV(
      CommData input, @Nullable CommData output, @Nullable Partition parts, int root) {
    run(new Collective.GatherV(input, output, parts, root));
  }

  /// [Collective.Scatter].
  default void scatter(@Nullable CommData input, CommData output, int root) {
    run(new Collective.Scatter(input, output, root));
  }

  /// [Collective.ScatterV].
  default void scatterV(
      @Nullable CommData input, @Nullable Partition parts, CommData output, int root) {
    run(new Collective.ScatterV(input, parts, output, root));
  }

  /// [Collective.ReduceScatter].
  default void reduceScatter(CommData input, CommData output, ReduceOp op) {
    run(new Collective.ReduceScatter(input, output, op));
  }

  /// [Collective.ReduceScatter] of FLOAT32.
  default void reduceScatter(float[] input, float[] output, ReduceOp op) {
    reduceScatter(of(input), of(output), op);
  }

  /// [Collective.ReduceScatter] of FLOAT64.
  default void reduceScatter(double[] input, double[] output, ReduceOp op) {
    reduceScatter(of(input), of(output), op);
  }

  /// [Collective.ReduceScatterV], parts one behind the other.
  default void reduceScatterV(CommData input, long[] counts, CommData output, ReduceOp op) {
    run(new Collective.ReduceScatterV(input, Partition.of(counts), output, op));
  }

  /// [Collective.AllToAll].
  default void allToAll(CommData input, CommData output) {
    run(new Collective.AllToAll(input, output));
  }

  /// [Collective.AllToAllV].
  default void allToAllV(
      CommData input, Partition sendParts, CommData output, Partition receiveParts) {
    run(new Collective.AllToAllV(input, sendParts, output, receiveParts));
  }

  /// [Collective.Scan].
  default void scan(CommData input, CommData output, ReduceOp op) {
    run(new Collective.Scan(input, output, op));
  }

  /// [Collective.ExclusiveScan].
  default void exclusiveScan(CommData input, CommData output, ReduceOp op) {
    run(new Collective.ExclusiveScan(input, output, op));
  }

  /// [Collective.Barrier], after everything that this rank started has ended.
  @Override
  void barrier();

  // --- messages between two ranks ---

  /// [PointToPoint.Send].
  default void send(CommData data, int destination, int tag) {
    run(new PointToPoint.Send(data, destination, tag));
  }

  /// [PointToPoint.Receive].
  Received receive(CommData data, int source, int tag);

  /// [PointToPoint.SendReceive], both with one tag.
  Received sendReceive(CommData output, int destination, CommData input, int source, int tag);

  /// [PointToPoint.Probe].
  Received probe(int source, int tag);

  /// Completes every operation that this rank started on the communicator.
  ///
  /// @throws CommException why the first that failed did
  void sync();

  // --- groups ---

  /// Makes one communicator for every colour; a collective.
  ///
  /// @param color ranks of one colour come together; 0 or more, or [#NO_COLOR]
  /// @param key orders the ranks of a colour; equal keys keep their order in this communicator
  /// @return the communicator of this rank's colour, to be closed by the caller; empty only for
  ///   [#NO_COLOR]
  /// @throws UnsupportedException if the backend can't
  Optional<Communicator> split(int color, int key);

  /// Makes another communicator of the same ranks, independent of this one; a collective.
  ///
  /// @throws UnsupportedException if the backend can't
  Communicator duplicate();

  /// Makes a communicator for the ranks of each host; a collective. Hosts are told apart by what
  /// they are, never by launcher variables.
  ///
  /// @throws UnsupportedException if the backend can't
  Communicator splitLocal();

  /// Makes a communicator of the ranks that are still alive, after a failure or without one; a
  /// collective of the survivors. This communicator stays as it is; close it.
  ///
  /// @throws UnsupportedException if the backend can't
  /// @throws EvictedException if the others have given this rank up
  Shrunk shrink();

  // --- memory ---

  /// Allocates memory that this communicator moves without a copy. Local, not a collective; zeroed.
  ///
  /// @param count how many elements, 0 or more
  /// @throws TransportFailedException if there is no space; the message names the place and the
  ///   setting that limits it, and the communicator stays usable
  CommBuffer allocate(DataType type, long count);

  /// Memory shared by the ranks of a host.
  SharedMemoryProvider sharedMemory();

  /// Ordering with a device's streams; empty for backends in the host.
  Optional<StreamSync> streamSync();

  // --- the end ---

  /// Breaks the communicator on every rank: calls in progress and later ones throw
  /// [AbortedException] with this rank and reason. Returns at once.
  void abort(String reason);

  /// Ends the processes of all ranks, this one included, as soon as possible. Does not return.
  ///
  /// @param code the exit code, `1..255`
  void abortProcess(int code);

  /// Whether [#close()] was called on this rank.
  boolean isClosed();

  /// Why the communicator is broken; empty while it is not.
  Optional<CommException> failure();

  /// Ends this rank's part, after trying for at most 2 s to complete what it started. Other ranks
  /// are not waited for. Never throws because of a peer; closing twice does nothing. Operations
  /// still pending end with a [ClosedException].
  @Override
  void close();
}
