package org.comm4j.core.sim;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.SplittableRandom;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.PeerMemory;
import org.comm4j.core.transport.Transport;

/// Connects ranks with random delays in virtual time. Payloads of one pair stay in order; those of
/// different pairs overtake each other. The same seed gives the same run.
///
/// Single-threaded: whoever drives it moves ranks along and calls [#step()] when nothing moves.
public final class SimNetwork implements AutoCloseable {
  private final int size;
  private final Link link;
  private final SplittableRandom random;
  private final Arena arena = Arena.ofShared();
  private final SimTransport[] transports;
  private final PriorityQueue<Event> events = new PriorityQueue<>();
  private final Map<Long, Pair> pairs = new HashMap<>();
  private final BitSet dead = new BitSet();
  private long nowNs;
  private long nextEvent;

  /// What every link is like.
  ///
  /// @param leastNs the shortest delay of a payload
  /// @param mostNs the longest, at least `leastNs`
  /// @param payloadBytes the largest payload, at least 256
  /// @param inFlight how many payloads of a pair may be on their way, at least 1
  /// @param windowBytes of each rank's window; 0 for ranks that can't read each other's memory
  /// @param hosts on how many hosts the ranks take turns; those of one host read each other's
  ///   windows
  /// @param messageNs how long a sender is busy with each payload, and
  /// @param picosPerByte with each of its bytes, before the delay begins
  public record Link(
      long leastNs,
      long mostNs,
      int payloadBytes,
      int inFlight,
      long windowBytes,
      int hosts,
      long messageNs,
      long picosPerByte) {
    /// Delays of 1 to 50 µs, payloads of 1 KiB, 8 on their way, no windows.
    public static final Link USUAL = varied(50_000, 1024, 8, 0, 1);

    /// As UDP on one host carries it, and as the built-in choice of algorithms expects it: 4 µs for
    /// a message, half of one for each further one, 3 GB/s.
    public static final Link UDP = new Link(3_500, 3_500, 8 << 10, 32, 0, 1, 500, 333);

    public Link {
      if (leastNs < 0
          || mostNs < leastNs
          || payloadBytes < 256
          || inFlight < 1
          || windowBytes < 0
          || hosts < 1
          || messageNs < 0
          || picosPerByte < 0) {
        throw new IllegalArgumentException(
            "%s (expected: 0 <= leastNs <= mostNs, payloadBytes at least 256, inFlight and hosts at least 1, the rest at least 0)"
                .formatted(this));
      }
    }

    /// Delays of 1 µs up to `mostNs`, and senders that take no time.
    ///
    /// @param windowBytes as above
    /// @param hosts as above
    public static Link varied(
        long mostNs, int payloadBytes, int inFlight, long windowBytes, int hosts) {
      return new Link(
          Math.min(1_000, mostNs), mostNs, payloadBytes, inFlight, windowBytes, hosts, 0, 0);
    }
  }

  private static final long[] NO_HEADER = {};

  /// What happens at a time: a payload arrives, or, without one, a rank wakes.
  private record Event(
      long atNs, long number, int from, int to, long[] header, MemorySegment payload)
      implements Comparable<Event> {
    @Override
    public int compareTo(Event other) {
      int byTime = Long.compare(atNs, other.atNs);
      return byTime != 0 ? byTime : Long.compare(number, other.number);
    }
  }

  /// One direction between two ranks.
  private static final class Pair {
    private int inFlight;
    private boolean hasRefused;
    private long lastNs;
  }

  /// @param size how many ranks
  /// @param seed decides every delay
  public SimNetwork(int size, Link link, long seed) {
    this.size = size;
    this.link = link;
    this.random = new SplittableRandom(seed);
    this.transports = new SimTransport[size];
    for (int rank = 0; rank < size; rank++) {
      transports[rank] = new SimTransport(rank);
    }
  }

  /// A rank's end.
  public Transport transport(int rank) {
    return transports[rank];
  }

  /// A rank's view of all windows.
  ///
  /// @throws IllegalStateException if the link has none
  public PeerMemory memory(int rank) {
    if (link.windowBytes() == 0) {
      throw new IllegalStateException("these ranks have no windows");
    }
    return new SimMemory(rank);
  }

  /// The virtual time.
  public long nowNs() {
    return nowNs;
  }

  /// Lets virtual time pass without anything arriving.
  public void pass(long nanos) {
    nowNs += nanos;
  }

  /// Nothing leaves or reaches this rank any more; what is on its way from it still arrives.
  public void kill(int rank) {
    dead.set(rank);
  }

  /// Goes to the next arrival.
  ///
  /// @return the rank where something arrived, or -1 if nothing is on its way
  public int step() {
    while (true) {
      Event event = events.poll();
      if (event == null) {
        return -1;
      }
      nowNs = Math.max(nowNs, event.atNs());
      if (event.from() >= 0) {
        taken(event);
      }
      if (!dead.get(event.to())) {
        if (event.from() >= 0) {
          transports[event.to()].inbox.add(event);
        }
        return event.to();
      }
    }
  }

  /// Makes room; who found none hears of it.
  private void taken(Event event) {
    Pair pair = pair(event.from(), event.to());
    pair.inFlight--;
    if (pair.hasRefused) {
      pair.hasRefused = false;
      transports[event.from()].wakeUp();
    }
  }

  /// Whether anything is on its way.
  public boolean isBusy() {
    return !events.isEmpty();
  }

  private Pair pair(int from, int to) {
    return pairs.computeIfAbsent((long) from * size + to, _ -> new Pair());
  }

  private long delay() {
    return link.leastNs() + random.nextLong(link.mostNs() - link.leastNs() + 1);
  }

  @Override
  public void close() {
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }

  private final class SimTransport implements Transport {
    private final int rank;
    private final ArrayDeque<Event> inbox = new ArrayDeque<>();
    private MemorySegment window = MemorySegment.NULL;
    private long busyUntilNs;
    private boolean closed;

    private SimTransport(int rank) {
      this.rank = rank;
    }

    @Override
    public int rank() {
      return rank;
    }

    @Override
    public int size() {
      return size;
    }

    @Override
    public int maxPayloadBytes(int peer) {
      return link.payloadBytes();
    }

    @Override
    public boolean offer(int peer, long[] header, MemorySegment payload) {
      if (closed) {
        throw new TransportFailedException("simulated rank " + rank + " has closed", null);
      }
      Pair pair = pair(rank, peer);
      if (pair.inFlight >= link.inFlight()) {
        pair.hasRefused = true;
        return false;
      }
      if (!dead.get(rank)) {
        pair.inFlight++;
        busyUntilNs =
            Math.max(busyUntilNs, nowNs)
                + link.messageNs()
                + payload.byteSize() * link.picosPerByte() / 1000;
        pair.lastNs = Math.max(pair.lastNs, busyUntilNs + delay());
        events.add(new Event(pair.lastNs, nextEvent++, rank, peer, header.clone(), copy(payload)));
      }
      return true;
    }

    @Override
    public int poll(PayloadHandler handler, int limit) {
      int count = 0;
      for (Event event = inbox.poll(); event != null; event = count < limit ? inbox.poll() : null) {
        handler.onPayload(event.from(), event.header(), event.payload());
        count++;
      }
      return count;
    }

    /// Virtual time does not pass by waiting.
    @Override
    public void park(long nanos) {}

    @Override
    public void wakeUp() {
      events.add(new Event(nowNs, nextEvent++, -1, rank, NO_HEADER, MemorySegment.NULL));
    }

    @Override
    public void close() {
      closed = true;
    }

    private MemorySegment window() {
      if (window.byteSize() == 0) {
        window = arena.allocate(link.windowBytes(), 4096);
      }
      return window;
    }
  }

  private static MemorySegment copy(MemorySegment segment) {
    return MemorySegment.ofArray(segment.toArray(JAVA_BYTE));
  }

  /// Windows in the memory of this process; a wake-up takes as long as a payload.
  private final class SimMemory implements PeerMemory {
    private final int rank;

    private SimMemory(int rank) {
      this.rank = rank;
    }

    @Override
    public long windowBytes() {
      return link.windowBytes();
    }

    @Override
    public int host(int peer) {
      return peer % link.hosts();
    }

    @Override
    public MemorySegment window(int peer) {
      if (host(peer) != host(rank)) {
        throw new IllegalArgumentException(
            "window of rank %d (expected: one of rank %d's host)".formatted(peer, rank));
      }
      return transports[peer].window();
    }

    @Override
    public void reserve(long offset, long bytes) {}

    @Override
    public Extent map(long offset, long bytes) {
      return Extent.lasting(window(rank).asSlice(offset, bytes));
    }

    @Override
    public void wake(int peer) {
      events.add(new Event(nowNs + delay(), nextEvent++, -1, peer, NO_HEADER, MemorySegment.NULL));
    }
  }
}
