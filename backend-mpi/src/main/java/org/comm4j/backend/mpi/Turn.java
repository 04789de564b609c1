package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/// The turn of some ranks to make something by a function of the library that waits for all of
/// them, where threads may be in it one at a time only ([ThreadLevel#SERIALIZED]).
///
/// A rank in such a function keeps its other threads out, which other ranks may wait for, in such a
/// function too. So each process has one turn, ranks take theirs in ascending order, which can't
/// end in a circle, and none begins before all have it.
final class Turn implements AutoCloseable {
  private static final ReentrantLock OF_THIS_PROCESS = new ReentrantLock();
  private static final int TAKEN = Tags.CLOSED + 3; // above those of collectives
  private static final int ALL_TAKEN = Tags.CLOSED + 4;

  private Turn() {}

  /// Takes the turns of all.
  ///
  /// @param group whose ranks these are; they have agreed to make something
  /// @param patience throws if it is not to be waited for any longer
  /// @return the caller, a thread of its own, closes it
  static Turn take(MpiGroup group, List<Integer> ranks, Runnable patience) {
    List<Integer> ordered =
        ranks.stream().sorted(Comparator.comparingInt(rank -> group.members()[rank])).toList();
    int mine = ordered.indexOf(group.rank());
    if (mine > 0) {
      receive(group, ordered.get(mine - 1), TAKEN, patience);
    }
    lock(patience);
    boolean isTaken = false;
    try {
      if (mine < ordered.size() - 1) {
        send(group, ordered.get(mine + 1), TAKEN, patience);
        receive(group, ordered.get(mine + 1), ALL_TAKEN, patience);
      }
      if (mine > 0) {
        send(group, ordered.get(mine - 1), ALL_TAKEN, patience);
      }
      isTaken = true;
      return new Turn();
    } finally {
      if (!isTaken) {
        OF_THIS_PROCESS.unlock();
      }
    }
  }

  private static void lock(Runnable patience) {
    try {
      while (!OF_THIS_PROCESS.tryLock(1, TimeUnit.MILLISECONDS)) {
        patience.run();
      }
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      patience.run(); // throws
      throw new IllegalStateException("interrupted, which was not said");
    }
  }

  /// A send or a receive without waiting.
  @FunctionalInterface
  interface Message {
    int start(
        MemorySegment data,
        long count,
        long type,
        int peer,
        int tag,
        long comm,
        MemorySegment request);
  }

  private static void send(MpiGroup group, int peer, int tag, Runnable patience) {
    await(Mpi::isend, "MPI_Isend", group, peer, tag, patience);
  }

  private static void receive(MpiGroup group, int peer, int tag, Runnable patience) {
    await(Mpi::irecv, "MPI_Irecv", group, peer, tag, patience);
  }

  private static void await(
      Message message, String function, MpiGroup group, int peer, int tag, Runnable patience) {
    Requests request = new Requests(1);
    long type = Functions.constants().byteType;
    long comm = group.collectives();
    Errors.check(
        message.start(MemorySegment.NULL, 0, type, peer, tag, comm, request.next()), function);
    Comms.await(request, patience);
  }

  @Override
  public void close() {
    OF_THIS_PROCESS.unlock();
  }
}
