package org.comm4j.backend.cuda;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;

/// Streams that are used again, so that those in use are in as many queues of a device as can be:
/// what waits in a queue holds up all behind it, and the driver deals streams to the queues like
/// cards, as they are made. So an idle one's queue is no fuller than a new one's would be. What
/// others make, such as the program, is dealt too and not known here. Thread-safe.
///
/// @param <S> a stream
final class StreamPool<S> {
  private final Supplier<S> create;
  private final int[] inUse; // streams, by queue
  private final Map<S, Integer> queues = new HashMap<>(); // of all streams
  private final List<S> idle = new ArrayList<>();
  private final Object making = new Object(); // held in the driver, without this one's lock
  private int made;

  /// @param create makes one
  /// @param queues how many there are
  StreamPool(Supplier<S> create, int queues) {
    this.create = create;
    this.inUse = new int[queues];
  }

  S take() {
    synchronized (this) {
      if (!idle.isEmpty()) {
        S stream = idle.stream().min(Comparator.comparingInt(each -> inUse[queue(each)])).get();
        idle.remove(stream);
        inUse[queue(stream)]++;
        return stream;
      }
    }
    synchronized (making) {
      S stream = create.get();
      synchronized (this) {
        int queue = made++ % inUse.length;
        queues.put(stream, queue);
        inUse[queue]++;
      }
      return stream;
    }
  }

  private int queue(S stream) {
    return Objects.requireNonNull(queues.get(stream));
  }

  /// Gives a stream back in which nothing is any more.
  synchronized void giveBack(S stream) {
    inUse[queue(stream)]--;
    idle.add(stream);
  }

  /// Forgets a stream that was taken and is destroyed.
  synchronized void remove(S stream) {
    inUse[queue(stream)]--;
    queues.remove(stream);
  }

  /// {@return those that are idle, which nobody takes any more}
  synchronized List<S> drain() {
    List<S> drained = List.copyOf(idle);
    idle.clear();
    queues.keySet().removeAll(drained);
    return drained;
  }

  /// {@return how many were made} Not more than were in use at once.
  synchronized int made() {
    return made;
  }
}
