package org.comm4j.backend.local;

import static org.comm4j.backend.local.BlockLayout.LINE_BYTES;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.comm4j.core.kernel.StreamingCopy;
import org.comm4j.core.transport.Transport;

/// The writing end of a ring: one writer, one reader, messages in order.
///
/// A message is a slot of one cache line, and its payload, if that does not fit into the slot, lies in
/// the data area, contiguous, at a line of its own:
///
///     slot   word: 44 bits number + 1, 20 bits payload bytes | header, 40 bytes | payload, 16 bytes
///     data   payload of more than 16 bytes; what does not fit before the end goes to the beginning
///
/// The slot's word is stored last, with release. It says by itself that the slot is filled, because the
/// number differs from what the slot held one lap earlier, and no other byte is ever at its place; so
/// neither end reads a position of the other per message, and a small message costs the transfer of one
/// cache line. The reader computes where a payload is by the writer's own rule. It gives slots back in
/// batches by one count, which the writer reads only when it seems to be out of room.
final class RingWriter {
  static final int SLOT_HEADER = Long.BYTES;
  static final int SLOT_PAYLOAD = SLOT_HEADER + Transport.HEADER_BYTES;
  static final int INLINE_BYTES = LINE_BYTES - SLOT_PAYLOAD;
  static final int LENGTH_BITS = 20;
  private static final int AHEAD = 4;
  static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

  private final MemorySegment block;
  private final StreamingCopy copy;
  private final long consumedAt;
  private final long slotsAt;
  private final long dataAt;
  private final int slots;
  private final int dataBytes;

  /// For each slot the end of the data when it was filled, so that a count of slots tells how much
  /// data is free again.
  private final long[] dataEnds;

  private long next;
  private long dataTail;
  private long consumed;
  private long dataHead;
  private boolean full;

  /// @param block the writer's own block
  /// @param peer the reader
  RingWriter(MemorySegment block, BlockLayout layout, int peer, StreamingCopy copy) {
    this.block = block;
    this.copy = copy;
    this.consumedAt = layout.consumedAt(peer);
    this.slots = layout.slots();
    this.dataBytes = layout.dataBytes();
    this.slotsAt = layout.ringAt(peer);
    this.dataAt = slotsAt + (long) slots * LINE_BYTES;
    this.dataEnds = new long[slots];
  }

  /// Adds a message. The reader may be asleep.
  ///
  /// @return false when there is no room
  boolean offer(long[] header, MemorySegment payload) {
    long bytes = payload.byteSize();
    boolean inline = bytes <= INLINE_BYTES;
    long start = inline ? dataTail : dataStart(dataTail, bytes, dataBytes);
    long end = inline ? start : start + BlockLayout.roundUp(bytes, LINE_BYTES);
    if (!hasRoom(end) && !(refresh() && hasRoom(end))) {
      full = true;
      return false;
    }
    int index = (int) next & (slots - 1);
    long slot = slotsAt + (long) index * LINE_BYTES;
    long target = inline ? slot + SLOT_PAYLOAD : dataAt + (start & (dataBytes - 1));
    copy.copy(payload, 0, block, target, bytes);
    for (int i = 0; i < Transport.HEADER_LONGS; i++) {
      LONG.set(block, slot + SLOT_HEADER + (long) i * Long.BYTES, header[i]);
    }
    dataEnds[index] = end;
    dataTail = end;
    next++;
    LONG.setRelease(block, slot, next << LENGTH_BITS | bytes);
    if ((next & (AHEAD - 1)) == 0) {
      fetchAhead();
    }
    return true;
  }

  /// Takes the lines of several slots from the reader's cache at once: fetched one by one, each
  /// would be waited for at the next fence. Not that of the next slot, at which the reader looks.
  private void fetchAhead() {
    if (next + AHEAD + 1 - consumed < slots) {
      for (int i = 1; i <= AHEAD; i++) {
        long slot = slotsAt + ((next + i) & (slots - 1)) * LINE_BYTES;
        LONG.set(block, slot + SLOT_HEADER, 0L);
      }
    }
  }

  /// Whether an offer has failed and there is room since; says so once. On the thread that parks,
  /// maybe while another one offers and fails: if that is overlooked, this rank sleeps until the
  /// reader has made room and wakes it.
  boolean hasNewRoom() {
    if (!full || (long) LONG.getAcquire(block, consumedAt) == consumed) {
      return false;
    }
    full = false;
    return true;
  }

  private boolean hasRoom(long end) {
    return next - consumed < slots && end - dataHead <= dataBytes;
  }

  private boolean refresh() {
    full = false;
    long now = (long) LONG.getAcquire(block, consumedAt);
    if (now == consumed) {
      return false;
    }
    consumed = now;
    dataHead = dataEnds[(int) (now - 1) & (slots - 1)];
    return true;
  }

  /// Where a payload goes that does not fit into a slot: to the next line, or to the beginning of
  /// the data when it would pass the end.
  static long dataStart(long tail, long bytes, int dataBytes) {
    long before = dataBytes - (tail & (dataBytes - 1));
    return before < bytes ? tail + before : tail;
  }
}
