package org.comm4j.backend.local;

import static org.comm4j.backend.local.BlockLayout.LINE_BYTES;
import static org.comm4j.backend.local.RingWriter.INLINE_BYTES;
import static org.comm4j.backend.local.RingWriter.LENGTH_BITS;
import static org.comm4j.backend.local.RingWriter.LONG;
import static org.comm4j.backend.local.RingWriter.SLOT_HEADER;
import static org.comm4j.backend.local.RingWriter.SLOT_PAYLOAD;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;
import org.jspecify.annotations.Nullable;

/// The reading end of a ring; [RingWriter] describes it.
///
/// Segments that were handed out are kept and handed out again when a message has the same place
/// and size, so that steady traffic allocates nothing.
final class RingReader {
  private static final int KEPT = 64;

  private final int peer;
  private final MemorySegment block;
  private final long consumedAt;
  private final long slotsAt;
  private final long dataAt;
  private final int slots;
  private final int dataBytes;
  private final int maxPayloadBytes;
  private final long[] header = new long[Transport.HEADER_LONGS];
  private final @Nullable MemorySegment[] inlinePayloads;
  private final @Nullable MemorySegment[] dataPayloads = new @Nullable MemorySegment[KEPT];
  private final long[] dataPayloadsAt = new long[KEPT];

  private long next;
  private long dataTail;
  private long givenBack;
  private long dataGivenBack;

  /// @param peer the writer
  /// @param block its block
  /// @param rank the reader
  RingReader(int peer, MemorySegment block, BlockLayout layout, int rank) {
    this.peer = peer;
    this.block = block;
    this.consumedAt = layout.consumedAt(rank);
    this.slots = layout.slots();
    this.dataBytes = layout.dataBytes();
    this.maxPayloadBytes = layout.maxPayloadBytes();
    this.slotsAt = layout.ringAt(rank);
    this.dataAt = slotsAt + (long) slots * LINE_BYTES;
    this.inlinePayloads = new @Nullable MemorySegment[slots];
  }

  int peer() {
    return peer;
  }

  /// Whether there is a message.
  boolean isReady() {
    long slot = slotsAt + (next & (slots - 1)) * LINE_BYTES;
    return isFilled((long) LONG.getAcquire(block, slot));
  }

  /// Delivers messages until there are no more, or so many that [#giveBack] is worth it.
  ///
  /// @return how many
  int poll(PayloadHandler handler, int limit) {
    int delivered = 0;
    while (delivered < limit && !isWorthGivingBack()) {
      int index = (int) next & (slots - 1);
      long slot = slotsAt + (long) index * LINE_BYTES;
      long word = (long) LONG.getAcquire(block, slot);
      if (!isFilled(word)) {
        break;
      }
      for (int i = 0; i < Transport.HEADER_LONGS; i++) {
        header[i] = (long) LONG.get(block, slot + SLOT_HEADER + (long) i * Long.BYTES);
      }
      MemorySegment payload = payload(index, slot, (int) word & ((1 << LENGTH_BITS) - 1));
      // Taken before the call: a message is delivered once even if the handler throws.
      // Its memory is not given back before the call has ended.
      next++;
      delivered++;
      handler.onPayload(peer, header, payload);
    }
    return delivered;
  }

  /// Gives back what was read, if it is worth a cache line: a quarter of the ring. Afterwards the
  /// writer always sees room for the largest payload once all is read.
  ///
  /// @return whether it did; the writer may be waiting for it
  boolean giveBack() {
    if (!isWorthGivingBack()) {
      return false;
    }
    givenBack = next;
    dataGivenBack = dataTail;
    LONG.setRelease(block, consumedAt, next);
    return true;
  }

  private boolean isWorthGivingBack() {
    return next - givenBack >= slots >> 2 || dataTail - dataGivenBack >= dataBytes >> 2;
  }

  private boolean isFilled(long word) {
    return ((word >>> LENGTH_BITS) ^ (next + 1)) << LENGTH_BITS == 0;
  }

  private MemorySegment payload(int index, long slot, int bytes) {
    if (bytes <= INLINE_BYTES) {
      MemorySegment payload = inlinePayloads[index];
      if (payload == null || payload.byteSize() != bytes) {
        payload = block.asSlice(slot + SLOT_PAYLOAD, bytes).asReadOnly();
        inlinePayloads[index] = payload;
      }
      return payload;
    }
    if (bytes > maxPayloadBytes) {
      throw new TransportFailedException(
          "a message of rank %d has %d bytes (expected: at most %d): shared memory was overwritten"
              .formatted(peer, bytes, maxPayloadBytes),
          null);
    }
    long start = RingWriter.dataStart(dataTail, bytes, dataBytes);
    dataTail = start + BlockLayout.roundUp(bytes, LINE_BYTES);
    long at = dataAt + (start & (dataBytes - 1));
    int kept = (int) ((at / LINE_BYTES * 0x9E3779B97F4A7C15L) >>> 58);
    MemorySegment payload = dataPayloads[kept];
    if (payload == null || dataPayloadsAt[kept] != at || payload.byteSize() != bytes) {
      payload = block.asSlice(at, bytes).asReadOnly();
      dataPayloads[kept] = payload;
      dataPayloadsAt[kept] = at;
    }
    return payload;
  }
}
