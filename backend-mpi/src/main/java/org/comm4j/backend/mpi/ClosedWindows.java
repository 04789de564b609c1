package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.comm4j.core.engine.CallSignature;

/// The library's windows of regions that this rank has closed, whatever became of their
/// communicators. The library frees a window when all its ranks call it, and waits for them; a
/// region is closed by each rank for itself, which must not wait. So a window is freed where all
/// its ranks meet anyway and tell each other that they have closed it: when a communicator that has
/// them all makes another one or a region, or the next launch in this process opens. Thread-safe.
final class ClosedWindows {
  private final List<Window> windows = new ArrayList<>();

  /// A window of the library's.
  ///
  /// @param number by which its ranks know it; no other one of this MPI job has it, nor is it 0
  /// @param members its ranks in the MPI job
  record Window(long number, List<Integer> members, long handle) {
    private void free() {
      try (Arena arena = Arena.ofConfined()) {
        Errors.check(Mpi.winUnlockAll(handle), "MPI_Win_unlock_all");
        MemorySegment window = arena.allocate(JAVA_LONG);
        Handles.set(window, 0, handle);
        Errors.check(Mpi.winFree(window), "MPI_Win_free");
      }
    }
  }

  /// Takes one that this rank has closed.
  synchronized void add(Window window) {
    windows.add(window);
  }

  private synchronized void putBack(List<Window> left) {
    windows.addAll(left);
  }

  /// What these ranks can free; meanwhile no other thread of this one does.
  ///
  /// @param members their ranks in the MPI job
  synchronized Chosen choose(int... members) {
    List<Integer> ranks = IntStream.of(members).boxed().toList();
    List<Window> chosen =
        windows.stream()
            .filter(window -> ranks.containsAll(window.members()))
            .sorted(Comparator.comparingLong(Window::number)) // the same order on all ranks
            .collect(Collectors.toCollection(ArrayList::new));
    windows.removeAll(chosen);
    return new Chosen(chosen);
  }

  /// Some of them; what has not been freed goes back.
  final class Chosen implements AutoCloseable {
    private final List<Window> chosen;

    private Chosen(List<Window> chosen) {
      this.chosen = chosen;
    }

    int count() {
      return chosen.size();
    }

    /// Frees what all have chosen; a collective of the communicator's ranks.
    ///
    /// @param most the largest count of its ranks
    /// @param label what they meet for
    void free(MpiCommunicator meeting, int most, CallSignature.Purpose purpose, String label) {
      if (most == 0) {
        return;
      }
      long[] mine = chosen.stream().mapToLong(Window::number).toArray();
      long[][] all = meeting.gather(purpose, Arrays.copyOf(mine, most));
      for (Window window : List.copyOf(chosen)) {
        List<Integer> ranks = ranks(window, meeting.group());
        if (ranks.stream().allMatch(rank -> contains(all[rank], window.number()))) {
          chosen.remove(window); // whatever becomes of it, it is not freed again
          meeting.group().make(label, ranks, () -> free(window));
        }
      }
    }

    private static boolean free(Window window) {
      window.free();
      return true;
    }

    @Override
    public void close() {
      putBack(chosen);
    }
  }

  private static List<Integer> ranks(Window window, MpiGroup group) {
    int[] members = group.members();
    return IntStream.range(0, members.length)
        .filter(rank -> window.members().contains(members[rank]))
        .boxed()
        .toList();
  }

  private static boolean contains(long[] numbers, long number) {
    return LongStream.of(numbers).anyMatch(each -> each == number);
  }
}
