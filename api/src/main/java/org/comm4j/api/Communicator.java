package org.comm4j.api;

import static java.util.Objects.requireNonNull;

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
/// Only [#abort], [#abortProcess], [#failure()], [#isClosed()] and [#close()] may come from any
/// thread at any time; the first two and the last end a call in progress. Different communicators
/// are independent.
///
/// **Memory.** The caller owns all data. Memory of a confined arena is fine in blocking calls on
/// its own thread and refused in asynchronous ones.
///
/// **Errors.** A wrong argument is an [IllegalArgumentException] on this rank alone, before any
/// peer is involved, and changes nothing; null where none is allowed is a [NullPointerException]
/// with the parameter's name. After a failure ([CommException]) inputs are as they were and outputs
/// undefined; after most the communicator is broken (which, is the table F of `docs/contract.md`):
/// each later call throws the same exception at once, only [#shrink()], [#close()] and what merely
/// asks about the communicator work.
///
/// **Waiting.** No call waits longer than its deadline (`COMM_TIMEOUT`, 5 minutes unless set). An
/// interrupt ends a call's wait, or a request's, and breaks the communicator on all ranks
/// ([InterruptedCallException]), since peers count on the call.
///
/// **Exceptions to this.** What a backend can't keep its [#capabilities()] say
/// ([Capabilities#deviations()]). On `mpi` a dead rank ends all processes of the job, and so does a
/// deadline where calls wait in the library, as they usually do.
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

  /// {@return a name for people, for example `world` or `world/split-3`; the same on every rank}
  String name();

  /// {@return the backend's name, for example `shm`}
  String backend();

  /// {@return what this communicator can do}
  Capabilities capabilities();

  /// {@return where its ranks are}
  Topology topology();

  // --- any operation ---

  /// Runs an operation and waits until this rank's part is done.
  ///
  /// @param operation what to do; may be used again
  /// @return what a receive, a sendReceive or a probe got; null for every other operation
  /// @throws IllegalArgumentException if the operation does not fit this rank and group
  @Nullable Received run(Operation operation);

  /// Starts an operation.
  ///
  /// @param operation what to do; may be used again
  /// @return what to await
  /// @throws IllegalArgumentException if the operation does not fit this rank and group
  Request start(Operation operation);

  /// Checks an operation once, for any number of starts.
  ///
  /// @param operation what to do; may be used again
  /// @return what to start, as often as needed
  /// @throws IllegalArgumentException if the operation does not fit this rank and group
  PersistentRequest prepare(Operation operation);

  // --- collectives; shapes and rules stand with the records ---

  /// [Collective.AllReduce] in place.
  ///
  /// @param data this rank's elements, overwritten with the result; the same count on every rank
  /// @param op how elements are combined; legal for the type
  default void allReduce(CommData data, ReduceOp op) {
    run(new Collective.AllReduce(data, data, op));
  }

  /// [Collective.AllReduce].
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output becomes the result; as many elements, apart from the input or the same memory
  /// @param op how elements are combined; legal for the type
  default void allReduce(CommData input, CommData output, ReduceOp op) {
    run(new Collective.AllReduce(input, output, op));
  }

  /// [Collective.AllReduce] with an epilogue.
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output becomes the function of the result; as many elements, apart from the input or
  ///   the same memory, perhaps of another floating-point type
  /// @param op SUM or AVERAGE, of a floating-point type
  /// @param epilogue what this rank does to each element of its result
  default void allReduce(CommData input, CommData output, ReduceOp op, Epilogue epilogue) {
    run(new Collective.AllReduce(input, output, op, epilogue));
  }

  /// [Collective.AllReduce] of FLOAT32, in place.
  ///
  /// @param data this rank's elements, overwritten with the result; the same count on every rank
  /// @param op how elements are combined; legal for the type
  default void allReduce(float[] data, ReduceOp op) {
    allReduce(CommData.of(requireNonNull(data, "data")), op);
  }

  /// [Collective.AllReduce] of FLOAT64, in place.
  ///
  /// @param data this rank's elements, overwritten with the result; the same count on every rank
  /// @param op how elements are combined; legal for the type
  default void allReduce(double[] data, ReduceOp op) {
    allReduce(CommData.of(requireNonNull(data, "data")), op);
  }

  /// [Collective.AllReduce] of INT32, in place.
  ///
  /// @param data this rank's elements, overwritten with the result; the same count on every rank
  /// @param op how elements are combined; legal for the type
  default void allReduce(int[] data, ReduceOp op) {
    allReduce(CommData.of(requireNonNull(data, "data")), op);
  }

  /// [Collective.AllReduce] of INT64, in place.
  ///
  /// @param data this rank's elements, overwritten with the result; the same count on every rank
  /// @param op how elements are combined; legal for the type
  default void allReduce(long[] data, ReduceOp op) {
    allReduce(CommData.of(requireNonNull(data, "data")), op);
  }

  /// [Collective.AllReduce] of one number.
  ///
  /// @param value this rank's number
  /// @param op how elements are combined; legal for the type
  /// @return the reduction of all ranks' values
  default double allReduce(double value, ReduceOp op) {
    double[] data = {value};
    allReduce(data, op);
    return data[0];
  }

  /// [Collective.AllReduce] of one number.
  ///
  /// @param value this rank's number
  /// @param op how elements are combined; legal for the type
  /// @return the reduction of all ranks' values
  default long allReduce(long value, ReduceOp op) {
    long[] data = {value};
    allReduce(data, op);
    return data[0];
  }

  /// [Collective.Reduce].
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output on the root as many elements as the input; elsewhere ignored, may be null
  /// @param op how elements are combined; legal for the type
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void reduce(CommData input, @Nullable CommData output, ReduceOp op, int root) {
    run(new Collective.Reduce(input, output, op, root));
  }

  /// [Collective.Reduce] of FLOAT32, in place on the root.
  ///
  /// @param data this rank's elements, on the root overwritten with the result; the same count
  ///   everywhere
  /// @param op how elements are combined; legal for the type
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void reduce(float[] data, ReduceOp op, int root) {
    CommData whole = CommData.of(requireNonNull(data, "data"));
    reduce(whole, whole, op, root);
  }

  /// [Collective.Reduce] of FLOAT64, in place on the root.
  ///
  /// @param data this rank's elements, on the root overwritten with the result; the same count
  ///   everywhere
  /// @param op how elements are combined; legal for the type
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void reduce(double[] data, ReduceOp op, int root) {
    CommData whole = CommData.of(requireNonNull(data, "data"));
    reduce(whole, whole, op, root);
  }

  /// [Collective.Reduce] of INT32, in place on the root.
  ///
  /// @param data this rank's elements, on the root overwritten with the result; the same count
  ///   everywhere
  /// @param op how elements are combined; legal for the type
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void reduce(int[] data, ReduceOp op, int root) {
    CommData whole = CommData.of(requireNonNull(data, "data"));
    reduce(whole, whole, op, root);
  }

  /// [Collective.Reduce] of INT64, in place on the root.
  ///
  /// @param data this rank's elements, on the root overwritten with the result; the same count
  ///   everywhere
  /// @param op how elements are combined; legal for the type
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void reduce(long[] data, ReduceOp op, int root) {
    CommData whole = CommData.of(requireNonNull(data, "data"));
    reduce(whole, whole, op, root);
  }

  /// [Collective.Broadcast].
  ///
  /// @param data read on the root, written elsewhere; the same count on every rank
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void broadcast(CommData data, int root) {
    run(new Collective.Broadcast(data, root));
  }

  /// [Collective.Broadcast] of FLOAT32.
  ///
  /// @param data read on the root, written elsewhere; the same count on every rank
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void broadcast(float[] data, int root) {
    broadcast(CommData.of(requireNonNull(data, "data")), root);
  }

  /// [Collective.Broadcast] of FLOAT64.
  ///
  /// @param data read on the root, written elsewhere; the same count on every rank
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void broadcast(double[] data, int root) {
    broadcast(CommData.of(requireNonNull(data, "data")), root);
  }

  /// [Collective.Broadcast] of INT32.
  ///
  /// @param data read on the root, written elsewhere; the same count on every rank
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void broadcast(int[] data, int root) {
    broadcast(CommData.of(requireNonNull(data, "data")), root);
  }

  /// [Collective.Broadcast] of INT64.
  ///
  /// @param data read on the root, written elsewhere; the same count on every rank
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void broadcast(long[] data, int root) {
    broadcast(CommData.of(requireNonNull(data, "data")), root);
  }

  /// [Collective.Broadcast] of INT8, that is of bytes.
  ///
  /// @param data read on the root, written elsewhere; the same count on every rank
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void broadcast(byte[] data, int root) {
    broadcast(CommData.of(requireNonNull(data, "data")), root);
  }

  /// [Collective.AllGather].
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output `size()` times as many, rank 0's first
  default void allGather(CommData input, CommData output) {
    run(new Collective.AllGather(input, output));
  }

  /// [Collective.AllGather] of FLOAT32.
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output `size()` times as many, rank 0's first
  default void allGather(float[] input, float[] output) {
    allGather(
        CommData.of(requireNonNull(input, "input")), CommData.of(requireNonNull(output, "output")));
  }

  /// [Collective.AllGather] of FLOAT64.
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output `size()` times as many, rank 0's first
  default void allGather(double[] input, double[] output) {
    allGather(
        CommData.of(requireNonNull(input, "input")), CommData.of(requireNonNull(output, "output")));
  }

  /// [Collective.AllGather] of INT32.
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output `size()` times as many, rank 0's first
  default void allGather(int[] input, int[] output) {
    allGather(
        CommData.of(requireNonNull(input, "input")), CommData.of(requireNonNull(output, "output")));
  }

  /// [Collective.AllGather] of INT64.
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output `size()` times as many, rank 0's first
  default void allGather(long[] input, long[] output) {
    allGather(
        CommData.of(requireNonNull(input, "input")), CommData.of(requireNonNull(output, "output")));
  }

  /// [Collective.AllGather] of INT8.
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output `size()` times as many, rank 0's first
  default void allGather(byte[] input, byte[] output) {
    allGather(
        CommData.of(requireNonNull(input, "input")), CommData.of(requireNonNull(output, "output")));
  }

  /// [Collective.AllGatherV], parts one behind the other.
  ///
  /// @param input as many elements as the counts give this rank
  /// @param output holds the parts of all ranks
  /// @param counts for each rank how many elements it has; the same on every rank
  default void allGatherV(CommData input, CommData output, long[] counts) {
    run(new Collective.AllGatherV(input, output, Partition.of(counts)));
  }

  /// [Collective.AllGatherV].
  ///
  /// @param input as many elements as the counts give this rank
  /// @param output holds the parts of all ranks
  /// @param counts for each rank how many elements it has; the same on every rank
  /// @param displacements for each rank where its part starts in this output, in elements
  default void allGatherV(CommData input, CommData output, long[] counts, long[] displacements) {
    run(new Collective.AllGatherV(input, output, Partition.of(counts, displacements)));
  }

  /// [Collective.AllGatherV].
  ///
  /// @param input as many elements as the partition gives this rank
  /// @param output at least the extent of the partition
  /// @param parts where each rank's elements go; the same counts on every rank, at places of its
  ///   choice
  default void allGatherV(CommData input, CommData output, Partition parts) {
    run(new Collective.AllGatherV(input, output, parts));
  }

  /// [Collective.Gather].
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output on the root `size()` times as many; elsewhere ignored, may be null
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void gather(CommData input, @Nullable CommData output, int root) {
    run(new Collective.Gather(input, output, root));
  }

  /// [Collective.GatherV].
  ///
  /// @param input as many elements as the root's partition gives this rank
  /// @param output on the root at least the extent of the partition; elsewhere ignored, may be null
  /// @param parts on the root where each rank's elements go; elsewhere ignored, may be null
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void gatherV(
      CommData input, @Nullable CommData output, @Nullable Partition parts, int root) {
    run(new Collective.GatherV(input, output, parts, root));
  }

  /// [Collective.Scatter].
  ///
  /// @param input on the root `size()` times as many elements as the output; elsewhere ignored, may
  ///   be null
  /// @param output becomes this rank's part; the same count on every rank
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void scatter(@Nullable CommData input, CommData output, int root) {
    run(new Collective.Scatter(input, output, root));
  }

  /// [Collective.ScatterV].
  ///
  /// @param input on the root at least the extent of the partition; elsewhere ignored, may be null
  /// @param parts on the root where each rank's elements are; elsewhere ignored, may be null
  /// @param output as many elements as the root's partition gives this rank
  /// @param root the root, in `0..size()-1`, the same on every rank
  default void scatterV(
      @Nullable CommData input, @Nullable Partition parts, CommData output, int root) {
    run(new Collective.ScatterV(input, parts, output, root));
  }

  /// [Collective.ReduceScatter].
  ///
  /// @param input `size()` times as many elements as the output
  /// @param output becomes this rank's part of the result; the same count on every rank
  /// @param op how elements are combined; legal for the type
  default void reduceScatter(CommData input, CommData output, ReduceOp op) {
    run(new Collective.ReduceScatter(input, output, op));
  }

  /// [Collective.ReduceScatter] with an epilogue.
  ///
  /// @param input `size()` times as many elements as the output
  /// @param output becomes the function of this rank's part of the result; the same count on every
  ///   rank, perhaps of another floating-point type
  /// @param op SUM or AVERAGE, of a floating-point type
  /// @param epilogue what this rank does to each element of its part
  default void reduceScatter(CommData input, CommData output, ReduceOp op, Epilogue epilogue) {
    run(new Collective.ReduceScatter(input, output, op, epilogue));
  }

  /// [Collective.ReduceScatter] of FLOAT32.
  ///
  /// @param input `size()` times as many elements as the output
  /// @param output becomes this rank's part of the result; the same count on every rank
  /// @param op how elements are combined; legal for the type
  default void reduceScatter(float[] input, float[] output, ReduceOp op) {
    reduceScatter(
        CommData.of(requireNonNull(input, "input")),
        CommData.of(requireNonNull(output, "output")),
        op);
  }

  /// [Collective.ReduceScatter] of FLOAT64.
  ///
  /// @param input `size()` times as many elements as the output
  /// @param output becomes this rank's part of the result; the same count on every rank
  /// @param op how elements are combined; legal for the type
  default void reduceScatter(double[] input, double[] output, ReduceOp op) {
    reduceScatter(
        CommData.of(requireNonNull(input, "input")),
        CommData.of(requireNonNull(output, "output")),
        op);
  }

  /// [Collective.ReduceScatter] of INT32.
  ///
  /// @param input `size()` times as many elements as the output
  /// @param output becomes this rank's part of the result; the same count on every rank
  /// @param op how elements are combined; legal for the type
  default void reduceScatter(int[] input, int[] output, ReduceOp op) {
    reduceScatter(
        CommData.of(requireNonNull(input, "input")),
        CommData.of(requireNonNull(output, "output")),
        op);
  }

  /// [Collective.ReduceScatter] of INT64.
  ///
  /// @param input `size()` times as many elements as the output
  /// @param output becomes this rank's part of the result; the same count on every rank
  /// @param op how elements are combined; legal for the type
  default void reduceScatter(long[] input, long[] output, ReduceOp op) {
    reduceScatter(
        CommData.of(requireNonNull(input, "input")),
        CommData.of(requireNonNull(output, "output")),
        op);
  }

  /// [Collective.ReduceScatterV], parts one behind the other.
  ///
  /// @param input the parts of all ranks, one behind the other
  /// @param counts for each rank how many elements its part has; the same on every rank
  /// @param output as many elements as the counts give this rank
  /// @param op how elements are combined; legal for the type
  default void reduceScatterV(CommData input, long[] counts, CommData output, ReduceOp op) {
    run(new Collective.ReduceScatterV(input, Partition.of(counts), output, op));
  }

  /// [Collective.ReduceScatterV].
  ///
  /// @param input at least the extent of the partition
  /// @param parts where each rank's part is; the same counts on every rank, at places of its choice
  /// @param output as many elements as the partition gives this rank
  /// @param op how elements are combined; legal for the type
  default void reduceScatterV(CommData input, Partition parts, CommData output, ReduceOp op) {
    run(new Collective.ReduceScatterV(input, parts, output, op));
  }

  /// [Collective.AllToAll].
  ///
  /// @param input a part for each rank, all of one length; the same count on every rank
  /// @param output a part from each rank; as many elements as the input, apart from it
  default void allToAll(CommData input, CommData output) {
    run(new Collective.AllToAll(input, output));
  }

  /// [Collective.AllToAllV], parts one behind the other.
  ///
  /// @param input the parts for all ranks
  /// @param sendCounts how many elements go to each rank
  /// @param output the parts from all ranks, apart from the input
  /// @param receiveCounts how many elements come from each rank
  default void allToAllV(CommData input, long[] sendCounts, CommData output, long[] receiveCounts) {
    allToAllV(input, Partition.of(sendCounts), output, Partition.of(receiveCounts));
  }

  /// [Collective.AllToAllV].
  ///
  /// @param input at least the extent of `sendParts`
  /// @param sendParts which elements go to which rank
  /// @param output at least the extent of `receiveParts`, apart from the input
  /// @param receiveParts where each rank's elements go
  default void allToAllV(
      CommData input, Partition sendParts, CommData output, Partition receiveParts) {
    run(new Collective.AllToAllV(input, sendParts, output, receiveParts));
  }

  /// [Collective.Scan].
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output becomes the reduction over ranks `0..rank()`; as many elements
  /// @param op how elements are combined; legal for the type
  default void scan(CommData input, CommData output, ReduceOp op) {
    run(new Collective.Scan(input, output, op));
  }

  /// [Collective.ExclusiveScan].
  ///
  /// @param input this rank's elements; the same count on every rank
  /// @param output becomes the reduction over ranks `0..rank()-1`, not written on rank 0; as many
  ///   elements
  /// @param op how elements are combined; legal for the type
  default void exclusiveScan(CommData input, CommData output, ReduceOp op) {
    run(new Collective.ExclusiveScan(input, output, op));
  }

  /// [Collective.Barrier], after everything that this rank started has ended. A started receive
  /// that no message matches keeps it waiting, until its deadline breaks the communicator: take it
  /// back first ([Request#cancel()]), or run the record, which waits for nothing else.
  @Override
  void barrier();

  // --- messages between two ranks ---

  /// [PointToPoint.Send].
  ///
  /// @param data what to send
  /// @param destination the receiving rank
  /// @param tag `0..`[#MAX_TAG]
  default void send(CommData data, int destination, int tag) {
    run(new PointToPoint.Send(data, destination, tag));
  }

  /// [PointToPoint.Receive].
  ///
  /// @param data where the message goes; at least as long as it
  /// @param source the sending rank or [#ANY_SOURCE]
  /// @param tag the message's tag or [#ANY_TAG]
  /// @return where the message came from and how long it is
  Received receive(CommData data, int source, int tag);

  /// [PointToPoint.SendReceive], both with one tag.
  ///
  /// @param output what to send
  /// @param destination the receiving rank
  /// @param input where the received message goes; apart from the output
  /// @param source the sending rank or [#ANY_SOURCE]
  /// @param tag `0..`[#MAX_TAG]
  /// @return where the received message came from and how long it is
  Received sendReceive(CommData output, int destination, CommData input, int source, int tag);

  /// [PointToPoint.Probe].
  ///
  /// @param source the sending rank or [#ANY_SOURCE]
  /// @param tag the message's tag or [#ANY_TAG]
  /// @return where the message comes from and how long it is
  Received probe(int source, int tag);

  /// Completes every operation that this rank started on the communicator; a started receive keeps
  /// it waiting as in [#barrier()].
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
  /// @return the new communicator, to be closed by the caller
  /// @throws UnsupportedException if the backend can't
  Communicator duplicate();

  /// Makes a communicator for the ranks of each host; a collective. Hosts are told apart by what
  /// they are, never by launcher variables.
  ///
  /// @return the communicator of this rank's host, to be closed by the caller
  /// @throws UnsupportedException if the backend can't
  Communicator splitLocal();

  /// Makes a communicator of the ranks that are still alive, after a failure or without one; a
  /// collective of the survivors. This communicator stays as it is; close it.
  ///
  /// A launcher may end the survivors: `comm-cli run` does, some seconds after the failure, unless
  /// it is told `--on-failure continue`.
  ///
  /// @return the new communicator, and which rank was which
  /// @throws UnsupportedException if the backend can't
  /// @throws CollectiveTimeoutException if survivors have not called it in time; this rank may call
  ///   it again to meet them, also after an interrupt
  /// @throws AbortedException if a rank that lives has closed this communicator
  /// @throws EvictedException if the others have given this rank up, or the launcher that hosts the
  ///   session is gone
  /// @throws PeerFailedException if this rank has lost rank 0 where that hosts the session: nobody
  ///   can tell who is still alive
  Shrunk shrink();

  // --- memory ---

  /// Allocates memory that this communicator moves without a copy. Local, not a collective; zeroed.
  ///
  /// @param type what the elements are
  /// @param count how many elements, 0 or more
  /// @return the memory, to be closed by the caller
  /// @throws TransportFailedException if there is no space; the message names the place and the
  ///   setting that limits it, and the communicator stays usable
  CommBuffer allocate(DataType type, long count);

  /// {@return memory shared by the ranks of a host}
  SharedMemoryProvider sharedMemory();

  /// {@return ordering with a device's streams; empty for backends in the host}
  Optional<StreamSync> streamSync();

  // --- the end ---

  /// Breaks the communicator on every rank: calls in progress and later ones throw
  /// [AbortedException] with this rank and reason. Returns at once.
  ///
  /// @param reason a sentence for the other ranks; where it is blank they hear that none was given,
  ///   since who aborts because of an exception without a message must not fail in that. On a
  ///   communicator that is closed it does nothing
  void abort(String reason);

  /// Ends the processes of all ranks, this one included, as soon as possible. Does not return.
  ///
  /// @param code the exit code
  /// @throws IllegalArgumentException if that is not in `1..255`
  /// @throws ClosedException if the communicator is closed
  void abortProcess(int code);

  /// {@return whether [#close()] was called on this rank}
  boolean isClosed();

  /// {@return why the communicator is broken; empty while it is not}
  Optional<CommException> failure();

  /// Ends this rank's part, within 2 s: up to 0.8 s of them it lets what was started go on, and
  /// ends the rest. Other ranks are not waited for. Never throws because of a peer; closing twice
  /// does nothing. Operations still pending end with a [ClosedException].
  ///
  /// Where ranks meet at an address (`COMM_MASTER_ADDR`) that no launcher serves rank 0 does, also
  /// once it has closed its last one: its process stays until the others have too. If it exits
  /// before, theirs break.
  ///
  /// @throws ConcurrentUseException if a user-defined operator closes it; it stays open
  @Override
  void close();
}
