package org.comm4j.backend.mpi;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.comm4j.api.BackendException;

/// The library's communicators of groups that this rank has closed. A communicator is freed when
/// all its ranks have closed it, which a barrier that nobody waits for tells: freed earlier, its
/// number could be given to another one while a message of a slower rank is still on its way to it.
/// What it sent before has come by then, and is taken out where nobody has received it: MPICH keeps
/// that, and gives it to whoever gets the number next. Thread-safe.
final class Retired {
  private final List<Group> groups = new ArrayList<>();

  /// @param closing the barrier: on the communicator for messages, where no collective meets it
  private record Group(long collectives, long messages, Requests closing) {}

  /// Takes a closed group, in which nothing is in flight.
  synchronized void add(MpiGroup group) {
    Requests closing = new Requests(1);
    Errors.check(MpiCollectives.startBarrier(group.messages(), closing.next()), "MPI_Ibarrier");
    add(group.collectives(), group.messages(), closing);
    free();
  }

  /// Takes the library's communicators of one that is closed.
  ///
  /// @param closing ends when all its ranks have closed it
  synchronized void add(long collectives, long messages, Requests closing) {
    groups.add(new Group(collectives, messages, closing));
  }

  /// Frees what all ranks have closed. What fails there concerns no communicator that is open; it
  /// stays, since the library may be at it.
  ///
  /// @return whether nothing is left
  synchronized boolean free() {
    for (Iterator<Group> each = groups.iterator(); each.hasNext(); ) {
      if (tryFree(each.next())) {
        each.remove();
      }
    }
    return groups.isEmpty();
  }

  /// @return whether it is not to be tried again
  private static boolean tryFree(Group group) {
    try {
      if (!group.closing().test()) {
        return false;
      }
      dropMessages(group.messages());
      Comms.free(group.messages());
      Comms.free(group.collectives());
    } catch (BackendException _) {
      // as above
    }
    return true;
  }

  private static void dropMessages(long comm) {
    Constants constants = Functions.constants();
    Probe found = Probe.of(comm, constants.anySource, constants.anyTag);
    while (found != null) {
      try (Arena arena = Arena.ofConfined()) {
        int code =
            Mpi.recv(
                arena.allocate(found.bytes()),
                found.bytes(),
                constants.byteType,
                found.source(),
                found.tag(),
                comm,
                arena.allocate(constants.statusBytes, 8));
        Errors.check(code, "MPI_Recv");
      }
      found = Probe.of(comm, constants.anySource, constants.anyTag);
    }
  }
}
