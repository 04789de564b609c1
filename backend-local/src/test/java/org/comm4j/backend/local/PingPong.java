package org.comm4j.backend.local;

import static org.comm4j.backend.local.RingWriter.LONG;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;

/// Measures the transport between two ranks: half a round trip of one message, a flag to and fro
/// through the windows, and a stream of payloads, all read by the receiver. The best of some batches, since the machine is never
/// quiet; together with what one line of cache costs at that moment (`flag`), without which the other
/// numbers say little.
///
///     PingPong threads | processes
final class PingPong {
  private static final int BATCHES = 40;
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private final SharedMemoryTransport transport;
  private final int peer;
  private final long[] header = new long[Transport.HEADER_LONGS];
  private int received;
  private final MemorySegment target = MemorySegment.ofArray(new byte[32 << 10]);
  private final PayloadHandler copy =
      (from, head, payload) -> {
        MemorySegment.copy(payload, 0, target, 0, payload.byteSize());
        received++;
      };
  private long flag;

  private PingPong(SharedMemoryTransport transport) {
    this.transport = transport;
    this.peer = 1 - transport.rank();
  }

  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "threads" -> threads();
      case "processes" -> processes();
      default -> child(Path.of(args[1]), Integer.parseInt(args[2]));
    }
  }

  private static void threads() throws Exception {
    var group = LocalTransports.group(2, 16 << 20, NativeCalls.find(), Long.MAX_VALUE);
    try (var threads = Executors.newFixedThreadPool(2)) {
      var both = new ArrayList<Future<?>>();
      group.forEach(each -> both.add(threads.submit(new PingPong(each)::measure)));
      for (Future<?> each : both) {
        each.get();
      }
    }
    group.forEach(Transport::close);
  }

  private static void processes() throws IOException, InterruptedException {
    Path meeting = Files.createTempDirectory("comm4j-pingpong-");
    var children = new ArrayList<Process>();
    for (int rank = 0; rank < 2; rank++) {
      children.add(
          new ProcessBuilder(
                  ShmProcessTest.JVM.command(
                      List.of(), PingPong.class, "child", meeting.toString(), String.valueOf(rank)))
              .inheritIO()
              .start());
    }
    for (Process child : children) {
      child.waitFor();
    }
    try (var files = Files.list(meeting)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
    }
    Files.delete(meeting);
  }

  private static void child(Path meeting, int rank) {
    var session = new MeetingSession(meeting, rank, 2, "0123456789abcdef");
    try (var transport =
        new ShmRendezvous(session, Path.of("/dev/shm"), TIMEOUT, true)
            .open(16 << 20, NativeCalls.find(), SingleCopyOption.AUTO, Long.MAX_VALUE)) {
      new PingPong(transport).measure();
    }
  }

  private void measure() {
    transport.reserve(0, 4096);
    for (int round = 0; round < 3; round++) {
      report("flag", 8, flags());
      for (int bytes : new int[] {0, 8, 16, 64, 1024, 16 << 10, 32 << 10}) {
        report("pingpong", bytes, pingPong(bytes));
      }
      report("flag", 8, flags());
      for (int bytes : new int[] {8, 1024, 8 << 10, 16 << 10, 32 << 10}) {
        report("stream", bytes, stream(bytes));
      }
    }
  }

  private void report(String what, int bytes, double nanos) {
    if (transport.rank() == 0) {
      System.out.printf(
          Locale.ROOT, "%-9s %6d B %9.3f us %7.2f GB/s%n", what, bytes, nanos / 1e3, bytes / nanos);
    }
  }

  private double flags() {
    return best(
        2000,
        () -> {
          flag++;
          if (transport.rank() == 0) {
            LONG.setRelease(transport.window(0), 64L, flag);
          }
          for (int tries = 1; (long) LONG.getAcquire(transport.window(peer), 64L) < flag; tries++) {
            pause(tries);
          }
          if (transport.rank() == 1) {
            LONG.setRelease(transport.window(1), 64L, flag);
          }
        },
        2);
  }

  private double pingPong(int bytes) {
    MemorySegment payload = MemorySegment.ofArray(new byte[bytes]);
    return best(
        1000,
        () -> {
          if (transport.rank() == 0) {
            send(payload);
          }
          receive(1);
          if (transport.rank() == 1) {
            send(payload);
          }
        },
        2);
  }

  private double stream(int bytes) {
    MemorySegment payload = MemorySegment.ofArray(new byte[bytes]);
    MemorySegment nothing = MemorySegment.ofArray(new byte[0]);
    int messages = 1000;
    return best(
            20,
            () -> {
              if (transport.rank() == 0) {
                for (int i = 0; i < messages; i++) {
                  send(payload);
                }
                receive(1);
              } else {
                receive(messages);
                send(nothing);
              }
            },
            1)
        / messages;
  }

  private void send(MemorySegment payload) {
    for (int tries = 1; !transport.offer(peer, header, payload); tries++) {
      pause(tries);
    }
  }

  private void receive(int messages) {
    received = 0;
    for (int tries = 1; received < messages; tries++) {
      if (transport.poll(copy, messages - received) == 0) {
        pause(tries);
      }
    }
  }

  private static void pause(int tries) {
    if (tries % 10_000 == 0) {
      Thread.yield();
    } else {
      Thread.onSpinWait();
    }
  }

  /// The best batch's nanoseconds per way.
  private static double best(int rounds, Runnable round, int ways) {
    long[] times = new long[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
      long start = System.nanoTime();
      for (int i = 0; i < rounds; i++) {
        round.run();
      }
      times[batch] = System.nanoTime() - start;
    }
    List<Long> sorted = Arrays.stream(times).sorted().boxed().toList();
    return (double) sorted.get(BATCHES / 10) / rounds / ways;
  }
}
