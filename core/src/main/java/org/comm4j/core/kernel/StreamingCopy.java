package org.comm4j.core.kernel;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Copies into memory that another processor reads, past the caches where that is faster.
///
/// An ordinary store takes a line away from the processors that have it in their caches, and waits
/// for that. Between processors that share a cache it costs little (9 to 40 GB/s were measured),
/// and what was stored is read from that cache, at 70. Between others it runs at 2 to 6 GB/s,
/// whatever the size; a non-temporal store, which takes nothing but writes whole lines to memory,
/// at 25, and what was stored is read at 30. A virtual machine's processors may be near at one
/// moment and far at the next. So ordinary copies are timed, and after two that took twice as long
/// as streaming would the next tenth of a second streams, where that is worth it.
///
/// Java has no such store (the virtual machine uses it for copies above 2.5 MiB only), so here is a
/// loop of 14 instructions for x86-64, all of which every such processor has. Elsewhere, and where
/// memory can't be made executable, copies are ordinary.
///
/// In memory order a copy is before everything that the thread does afterwards. One thread at a
/// time.
public final class StreamingCopy {
  private static final int LINE_BYTES = 64;

  /// Below, neither looking at the clock nor the call is worth it.
  private static final long LEAST_BYTES = 4096;

  /// The virtual machine can't stop a thread in the loop; so many take 50 µs.
  private static final long MOST_BYTES = 1 << 20;

  /// Copies of less cost more a byte.
  private static final long LEAST_MEASURED_BYTES = 16 << 10;

  private static final int MEASUREMENTS = 9; // of which the median counts: some are disturbed
  private static final long STREAMING_NS = 100_000_000;

  /// Of a streaming copy, besides its bytes: the call, both ends, and that all has been written.
  private static final long STREAM_NS = 300;

  private static final int SLOWER = 2; // since readers fetch what was streamed from memory
  private static final int TRIAL_BYTES = 64 << 10;
  private static final int TRIALS = 20;

  /// `void copy(target, source, bytes, targetOffset, sourceOffset)` in the System V convention:
  /// `rdi + rcx` at a whole line and `rsi + r8` anywhere, `rdx` a positive multiple of 64. The
  /// offsets are added here, since a slice would be an object in each call.
  private static final String CODE =
      """
      4801cf      add     rdi, rcx
      4c01c6      add     rsi, r8
      f30f6f06    movdqu  xmm0, [rsi]
      f30f6f4e10  movdqu  xmm1, [rsi + 16]
      f30f6f5620  movdqu  xmm2, [rsi + 32]
      f30f6f5e30  movdqu  xmm3, [rsi + 48]
      660fe707    movntdq [rdi], xmm0
      660fe74f10  movntdq [rdi + 16], xmm1
      660fe75720  movntdq [rdi + 32], xmm2
      660fe75f30  movntdq [rdi + 48], xmm3
      4883c640    add     rsi, 64
      4883c740    add     rdi, 64
      4883ea40    sub     rdx, 64
      75cc        jnz     -52
      0faef8      sfence
      c3          ret
      """;

  private final @Nullable Loop loop;

  private final long[] recent = new long[MEASUREMENTS]; // ns for a MiB
  private final long[] sorted = new long[MEASUREMENTS];
  private int measured;
  private long streamNsPerMib; // 0 until it is known
  private long slowNsPerMib; // of the latest slow copy
  private boolean slow;
  private boolean streaming;
  private long slowAtNs;

  /// The machine code as a function in the System V convention. Calling one takes native access,
  /// which backends have.
  @FunctionalInterface
  public interface Loop {
    /// Copies whole lines.
    ///
    /// @param target with its offset at the start of a line
    /// @param source anywhere, in an array too
    /// @param bytes a positive multiple of 64
    /// @param targetOffset in bytes
    /// @param sourceOffset in bytes
    void copy(
        MemorySegment target,
        MemorySegment source,
        long bytes,
        long targetOffset,
        long sourceOffset);
  }

  /// Has measured nothing yet.
  ///
  /// @param loop null where there is none: copies are ordinary then
  public StreamingCopy(@Nullable Loop loop) {
    this.loop = loop;
  }

  /// Copies; the target is native.
  public void copy(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long bytes) {
    if (bytes < LEAST_BYTES) {
      MemorySegment.copy(source, sourceOffset, target, targetOffset, bytes);
      return;
    }
    long startNs = System.nanoTime();
    boolean isDecided = streaming && startNs - slowAtNs < STREAMING_NS;
    if (isDecided && isSlow(bytes, (slowNsPerMib * bytes) >> 20)) {
      stream(source, sourceOffset, target, targetOffset, bytes);
      measured(bytes, SLOWER * (System.nanoTime() - startNs));
      return;
    }
    MemorySegment.copy(source, sourceOffset, target, targetOffset, bytes);
    long endNs = System.nanoTime();
    measured(bytes, endNs - startNs);
    if (loop == null || isDecided) {
      return;
    }
    boolean wasSlow = slow;
    slow = isSlow(bytes, endNs - startNs);
    streaming = slow && wasSlow;
    if (slow) {
      slowAtNs = endNs;
      slowNsPerMib = ((endNs - startNs) << 20) / bytes;
    }
  }

  /// Whether an ordinary copy that takes so long takes clearly longer than streaming.
  private boolean isSlow(long bytes, long ns) {
    if (streamNsPerMib == 0) {
      streamNsPerMib = streamNsPerMib();
    }
    return ns > SLOWER * (STREAM_NS + ((streamNsPerMib * bytes) >> 20));
  }

  /// What streaming takes, wherever the processors are: the least of some copies.
  private long streamNsPerMib() {
    long least = Long.MAX_VALUE;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment source = arena.allocate(TRIAL_BYTES, LINE_BYTES).fill((byte) 1);
      MemorySegment target = arena.allocate(TRIAL_BYTES, LINE_BYTES);
      for (int i = 0; i < TRIALS; i++) {
        long startNs = System.nanoTime();
        stream(source, 0, target, 0, TRIAL_BYTES);
        least = Math.min(least, System.nanoTime() - startNs);
      }
    }
    return Math.max(1, (least << 20) / TRIAL_BYTES);
  }

  private void measured(long bytes, long ns) {
    if (bytes >= LEAST_MEASURED_BYTES) {
      recent[measured++ % MEASUREMENTS] = (ns << 20) / bytes;
      if (measured == 2 * MEASUREMENTS) {
        measured = MEASUREMENTS; // so that it does not overflow
      }
    }
  }

  /// {@return what the latest copies of some length took as a rule, in nanoseconds for a MiB, those
  /// that streamed with what it costs their readers; 0 where there were too few}
  public long nsPerMib() {
    if (measured < MEASUREMENTS) {
      return 0;
    }
    System.arraycopy(recent, 0, sorted, 0, MEASUREMENTS);
    Arrays.sort(sorted);
    return sorted[MEASUREMENTS / 2];
  }

  /// Copies with non-temporal stores, but for less than a line at both ends.
  public void stream(
      MemorySegment source,
      long sourceOffset,
      MemorySegment target,
      long targetOffset,
      long bytes) {
    if (loop == null || bytes < 2 * LINE_BYTES) {
      MemorySegment.copy(source, sourceOffset, target, targetOffset, bytes);
      return;
    }
    long head = -(target.address() + targetOffset) & (LINE_BYTES - 1);
    long lines = (bytes - head) & -LINE_BYTES;
    long done = head + lines;
    Objects.checkFromIndexSize(sourceOffset, bytes, source.byteSize());
    Objects.checkFromIndexSize(targetOffset, bytes, target.byteSize());
    MemorySegment.copy(source, sourceOffset, target, targetOffset, head);
    MemorySegment.copy(source, sourceOffset + done, target, targetOffset + done, bytes - done);
    for (long at = head; at < done; at += MOST_BYTES) {
      loop.copy(
          target, source, Math.min(MOST_BYTES, done - at), targetOffset + at, sourceOffset + at);
    }
  }

  /// {@return the machine code, to be put into executable memory; null where the processor is
  /// another}
  public static byte @Nullable [] code() {
    return MachineCode.ofX86(CODE);
  }
}
