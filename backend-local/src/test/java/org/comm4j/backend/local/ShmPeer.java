package org.comm4j.backend.local;

import static org.comm4j.backend.local.RingWriter.LONG;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;

/// One rank of [ShmProcessTest], in a process of its own.
///
///     ShmPeer talk | stall | enter  <root> <meeting> <session> <rank> <size> <seed>
///
/// `talk` sends messages of random sizes to all and checks theirs, then passes a number round
/// through the windows, sleeping meanwhile. `stall` stops where all files are there. `enter` goes in
/// and out, many times.
final class ShmPeer {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final long BOUND_NANOS = TIMEOUT.toNanos();
  private static final int MESSAGES = 2_000;
  private static final int ROUNDS = 500;
  private static final int ENTRIES = 1_000;

  private final SharedMemoryTransport transport;
  private final int rank;
  private final int size;
  private final long seed;
  private final long end = System.nanoTime() + BOUND_NANOS;

  private ShmPeer(SharedMemoryTransport transport, long seed) {
    this.transport = transport;
    this.rank = transport.rank();
    this.size = transport.size();
    this.seed = seed;
  }

  public static void main(String[] args) throws IOException {
    Path root = Path.of(args[1]);
    int rank = Integer.parseInt(args[4]);
    int size = Integer.parseInt(args[5]);
    if (args[0].equals("enter")) {
      for (int i = 0; i < ENTRIES; i++) {
        ShmDirectory.enter(root, args[3], rank).close();
      }
      return;
    }
    var session =
        args[0].equals("stall")
            ? new StallingSession(Path.of(args[2]), rank, size, args[3])
            : new MeetingSession(Path.of(args[2]), rank, size, args[3]);
    try (var transport =
        new ShmRendezvous(session, root, TIMEOUT, true)
            .open(1 << 20, NativeCalls.find(), SingleCopyOption.AUTO, Long.MAX_VALUE)) {
      var peer = new ShmPeer(transport, Long.parseLong(args[6]));
      transport.reserve(0, 64);
      peer.talk();
      peer.passNumber();
      session.exchange("end", new byte[0], TIMEOUT);
    }
  }

  private void talk() {
    int[] received = new int[size];
    int[] sent = new int[size];
    sent[rank] = MESSAGES;
    received[rank] = MESSAGES;
    var random = new SplittableRandom(seed + rank);
    while (Arrays.stream(sent).sum() + Arrays.stream(received).sum() < 2 * size * MESSAGES) {
      checkTime();
      int moved =
          transport.poll(
              (peer, header, payload) -> check(peer, received[peer]++, header, payload), 8);
      int peer = random.nextInt(size);
      if (sent[peer] < MESSAGES) {
        byte[] payload = payload(rank, peer, sent[peer]);
        long[] header = {rank, peer, sent[peer], payload.length, seed};
        if (transport.offer(peer, header, MemorySegment.ofArray(payload))) {
          sent[peer]++;
          moved++;
        }
      }
      if (moved == 0 && Arrays.stream(sent).sum() == size * MESSAGES) {
        transport.park(BOUND_NANOS);
      }
    }
  }

  private void check(int peer, int number, long[] header, MemorySegment payload) {
    byte[] expected = payload(peer, rank, number);
    long[] expectedHeader = {peer, rank, number, expected.length, seed};
    if (payload.mismatch(MemorySegment.ofArray(expected)) >= 0
        || !Arrays.equals(header, expectedHeader)) {
      throw new AssertionError(
          "rank %d's message %d: %s %s (expected: %s, seed %d)"
              .formatted(
                  peer,
                  number,
                  Arrays.toString(header),
                  payload,
                  Arrays.toString(expectedHeader),
                  seed));
    }
  }

  private byte[] payload(int from, int to, int number) {
    var random = new SplittableRandom(seed ^ ((from * 64L + to) * 1_000_003 + number));
    int most = random.nextInt(4) == 0 ? transport.maxPayloadBytes(to) : 64;
    var payload = new byte[random.nextInt(most + 1)];
    random.nextBytes(payload);
    return payload;
  }

  private void passNumber() {
    int left = (rank + size - 1) % size;
    int right = (rank + 1) % size;
    for (long round = 1; round <= ROUNDS; round++) {
      if (rank != 0) {
        waitFor(left, round);
      }
      LONG.setRelease(transport.window(rank), 0L, round);
      transport.wake(right);
      if (rank == 0) {
        waitFor(left, round);
      }
    }
  }

  private void waitFor(int peer, long number) {
    while ((long) LONG.getAcquire(transport.window(peer), 0L) < number) {
      checkTime();
      transport.park(BOUND_NANOS);
    }
  }

  private void checkTime() {
    if (System.nanoTime() - end > 0) {
      throw new AssertionError("rank %d waited for too long".formatted(rank));
    }
  }

  /// Says so when all files are there, and waits for the end of its process.
  private static final class StallingSession extends MeetingSession {
    StallingSession(Path directory, int rank, int size, String id) {
      super(directory, rank, size, id);
    }

    @Override
    public List<byte[]> exchange(String key, byte[] mine, Duration timeout) {
      if (key.equals("shm.map")) {
        System.out.println("stalling");
        System.out.flush();
        for (long end = System.nanoTime() + BOUND_NANOS; System.nanoTime() - end < 0; ) {
          LockSupport.parkNanos(BOUND_NANOS); // which may return at once
        }
        throw new AssertionError("nobody has killed this process");
      }
      return super.exchange(key, mine, timeout);
    }
  }
}
