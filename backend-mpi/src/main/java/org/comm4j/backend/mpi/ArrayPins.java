package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// The arrays that a communicator's blocking call has lent to the library: it reads and writes them
/// where they are, and the collector leaves them there meanwhile. One thread at a time, and never a
/// virtual one: who lends takes back.
final class ArrayPins {
  /// Shorter arrays are copied in less time than it takes to pin them.
  private static final long LEAST_BYTES = 8 << 10;

  private static final int MOST = 2; // an input and an output

  private static final LongAdder LENT = new LongAdder();
  private static final LongAdder TAKEN_BACK = new LongAdder();

  private final long[] references = new long[MOST];
  private final long[] addresses = new long[MOST];
  private int count;
  private long thread; // the last one that pinned, by its id
  private long environment; // its; 0 where it can't be had

  /// Memory where it is, for the library, until [#release]; null where that works with a copy.
  ///
  /// @param elementBytes the size of an element, which may have to stand at a multiple of it
  @Nullable MemorySegment here(MemorySegment segment, int elementBytes) {
    if (!isAligned(segment, elementBytes)) {
      return null;
    }
    return segment.isNative() ? segment : pin(segment, elementBytes);
  }

  /// Whether elements may stand there, if its array, where it is one's, begins at a multiple of 8
  /// bytes.
  static boolean isAligned(MemorySegment segment, int elementBytes) {
    return segment.address() % Math.min(elementBytes, Long.BYTES) == 0;
  }

  /// Null for an array that is to be copied: little, memory that may only be read (which hides its
  /// array), a third array, a virtual machine that can't pin, or whose headers of objects end where
  /// such elements may not stand.
  private @Nullable MemorySegment pin(MemorySegment segment, int elementBytes) {
    if (segment.byteSize() < LEAST_BYTES || count == MOST || !Pinning.isPossible()) {
      return null;
    }
    Object array = segment.heapBase().orElse(null);
    if (array == null) {
      return null;
    }
    long environment = environment();
    long reference = environment == 0 ? 0 : Pinning.reference(environment, array);
    long address = reference == 0 ? 0 : Pinning.pin(environment, reference);
    if (address == 0) {
      if (reference != 0) {
        Pinning.forget(environment, reference);
      }
      return null;
    }
    MemorySegment here =
        MemorySegment.ofAddress(address + segment.address()).reinterpret(segment.byteSize());
    if (!isAligned(here, elementBytes)) {
      takeBack(reference, address);
      return null;
    }
    references[count] = reference;
    addresses[count] = address;
    count++;
    LENT.increment();
    return here;
  }

  private long environment() {
    long caller = Thread.currentThread().threadId();
    if (caller != thread) {
      environment = Pinning.environment();
      thread = caller;
    }
    return environment;
  }

  /// Gives all arrays back to the collector.
  void release() {
    while (count > 0) {
      count--;
      TAKEN_BACK.increment();
      takeBack(references[count], addresses[count]);
    }
  }

  private void takeBack(long reference, long address) {
    Pinning.unpin(environment, reference, address);
    Pinning.forget(environment, reference);
  }

  /// How many arrays this process has lent.
  static long lent() {
    return LENT.sum();
  }

  /// How many of them it has back.
  static long takenBack() {
    return TAKEN_BACK.sum();
  }

  /// Leaves all arrays pinned for as long as the process lives: the library may still use them.
  void keep() {
    count = 0;
  }
}
