package org.comm4j.core.engine;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.function.LongSupplier;
import org.comm4j.api.TransportFailedException;
import org.jspecify.annotations.Nullable;

/// Which lanes of this rank's window are free, and who gets them. Guarded by the engine's lock.
final class Lanes {
  private static final System.Logger LOG = System.getLogger(Lanes.class.getName());

  /// Before memory is asked for again: so that each of many communicators does not wait for all
  /// ranks to find out that there is none.
  private static final long NO_SPACE_NS = 1_000_000_000;

  private final @Nullable Windows windows;
  private final boolean isWindowRead;
  private final IntPredicate mayRead;
  private final LongSupplier clock;
  private final List<Context> zombies = new ArrayList<>(); // closed, and peers may still look
  private long free;
  private long backed; // that have memory
  private long flags;
  private @Nullable TransportFailedException noSpace; // for more lanes, when last tried
  private long triedNs;
  private boolean toldOfNone;

  /// @param windows null without shared memory: there are no lanes
  /// @param isWindowRead by any other rank; else lanes need no memory
  /// @param mayRead whether a world rank can still read this one's window
  /// @param clock in nanoseconds
  Lanes(@Nullable Windows windows, boolean isWindowRead, IntPredicate mayRead, LongSupplier clock) {
    this.windows = windows;
    this.isWindowRead = isWindowRead;
    this.mayRead = mayRead;
    this.clock = clock;
    this.free = hasLanes() ? -1 : 0;
  }

  private boolean hasLanes() {
    return windows != null && windows.layout().hasLanes();
  }

  /// Lanes that this rank could use, as bits.
  long free() {
    for (int i = 0; i < zombies.size(); i++) {
      Context zombie = zombies.get(i);
      if (isQuiet(zombie)) {
        giveBack(zombie.lane().number());
        flags = Math.max(flags, zombie.laneEnd());
        zombies.remove(i--);
      }
    }
    if (noSpace != null && clock.getAsLong() - triedNs >= NO_SPACE_NS) {
      noSpace = null; // the user may have made some
    }
    return noSpace == null ? free : free & backed;
  }

  private boolean isQuiet(Context context) {
    return context.lane().isQuiet(peer -> mayRead.test(context.worldRank(peer)));
  }

  /// At least as great as any flag that stands in a free lane of this rank.
  long flags() {
    return flags;
  }

  /// Takes a lane for a communicator to come.
  ///
  /// @param base on which its ranks have agreed
  /// @return false if another one has it, or has left flags in it that are above the base, or there
  ///   is no memory for it
  boolean take(int number, long base) {
    if (windows == null || (free() >>> number & 1) == 0 || base < flags) {
      return false;
    }
    try {
      if (isWindowRead) {
        windows.reserveLane(number);
      }
    } catch (TransportFailedException failure) {
      noSpace = failure;
      triedNs = clock.getAsLong();
      return false;
    }
    backed |= 1L << number;
    free &= ~(1L << number);
    return true;
  }

  /// Gives a lane back that was taken and not used.
  void giveBack(int number) {
    free |= 1L << number;
  }

  /// Gives the lane of a closed communicator back, once no peer looks at it any more.
  void retire(Context closed) {
    if (closed.hasLane()) {
      zombies.add(closed);
      free();
    }
  }

  /// A communicator has got no lane; says so the first time.
  void tellOfNone(String name) {
    if (hasLanes() && !toldOfNone) {
      toldOfNone = true;
      LOG.log(
          System.Logger.Level.WARNING,
          "communicator ''{0}'' goes by messages, which are slower than memory: of {1} lanes none is free and has memory on all its ranks; close communicators{2}",
          name,
          WindowLayout.LANES,
          noSpace == null ? "" : "; " + noSpace.getMessage());
    }
  }

  /// The lane of the first communicator: who has no memory for it can't open.
  void useFirst(Context context) {
    if (context.size() == 1 || free() == 0) {
      return;
    }
    if (!take(0, 0) && noSpace != null) {
      throw noSpace;
    }
    use(context, 0, 0);
  }

  /// Lets a communicator use a lane that was taken.
  void use(Context context, int number, long base) {
    if (windows != null) {
      context.use(
          new Lane(windows, number, context.members(), context.rank(), base, context.id()),
          windows);
    }
  }

  /// Whether any two of these world ranks read each other's windows: without, a lane is of no use.
  boolean areOfUse(int[] members) {
    return windows != null && windows.hosts(members).mostRanks() > 1;
  }
}
