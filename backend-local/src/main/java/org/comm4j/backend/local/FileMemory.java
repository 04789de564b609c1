package org.comm4j.backend.local;

import static java.nio.channels.FileChannel.MapMode.READ_WRITE;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.stream.IntStream;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.kernel.StreamingCopy;
import org.comm4j.core.transport.PeerMemory;
import org.jspecify.annotations.Nullable;

/// Blocks in files that all ranks map, one sparse file per rank. The names are needed only until
/// everybody has mapped them.
///
/// What is touched is reserved first, by its owner: a page that the file system can't provide is an
/// exception here, and never a fault of some load or store. Without `posix_fallocate` zeros are
/// written, but only where nothing was reserved before, since there may be data.
final class FileMemory implements RankMemory {
  private static final Set<OpenOption> CREATE =
      Set.of(
          StandardOpenOption.READ,
          StandardOpenOption.WRITE,
          StandardOpenOption.CREATE_NEW,
          LinkOption.NOFOLLOW_LINKS);
  private static final int ZEROS_BYTES = 1 << 20;

  private final int rank;
  private final BlockLayout layout;
  private final SharedPlace place;
  private final @Nullable NativeCalls calls;
  private final @Nullable SingleCopy singleCopy; // with native access
  private final FileChannel channel; // of the own file
  private final OptionalInt descriptor;
  private final Arena arena = Arena.ofShared();
  private final @Nullable MemorySegment[] blocks;

  /// Of peers' files, without native access, where parts of them are mapped when they are asked
  /// for.
  private final Map<Integer, FileChannel> channels = new HashMap<>();

  /// The pages of the own block that have memory.
  private final BitSet reserved = new BitSet();

  private FileMemory(
      int rank,
      BlockLayout layout,
      SharedPlace place,
      @Nullable NativeCalls calls,
      @Nullable SingleCopy singleCopy,
      FileChannel channel,
      OptionalInt descriptor) {
    this.rank = rank;
    this.layout = layout;
    this.place = place;
    this.calls = calls;
    this.singleCopy = singleCopy;
    this.channel = channel;
    this.descriptor = descriptor;
    this.blocks = new @Nullable MemorySegment[layout.ranks()];
  }

  /// Creates this rank's file, readable for this user alone, and reserves its control lines and
  /// what peers look at in its window.
  ///
  /// @param calls null where there is no native access
  /// @param singleCopy null where peers' memory may not be read
  /// @throws TransportFailedException if there is no space
  static FileMemory create(
      int rank,
      Path file,
      BlockLayout layout,
      SharedPlace place,
      @Nullable NativeCalls calls,
      @Nullable SingleCopy singleCopy)
      throws IOException {
    var permissions =
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    FileChannel channel = FileChannel.open(file, CREATE, permissions);
    OptionalInt descriptor = calls == null ? OptionalInt.empty() : calls.open(file);
    var memory = new FileMemory(rank, layout, place, calls, singleCopy, channel, descriptor);
    try {
      // Mapping makes the file as large as the mapping.
      memory.blocks[rank] = memory.mapBlock(rank, channel);
      memory.reserve(0, layout.controlBytes());
      memory.reserve(layout.windowAt(), Math.min(PeerMemory.READY_BYTES, layout.windowBytes()));
      if (singleCopy != null) {
        singleCopy.introduce(memory.block(rank));
      }
      return memory;
    } catch (Throwable e) {
      memory.close();
      throw e;
    }
  }

  /// Maps a peer's block; this rank's own is.
  void attach(int peer, Path file) throws IOException {
    if (peer == rank) {
      return;
    }
    FileChannel theirs =
        FileChannel.open(
            file, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
    try {
      if (theirs.size() != layout.storageBytes()) {
        throw new FileSystemException(
            file.toString(),
            null,
            "%d bytes (expected: %d)".formatted(theirs.size(), layout.storageBytes()));
      }
      blocks[peer] = mapBlock(peer, theirs);
      if (calls == null) {
        channels.put(peer, theirs);
      }
    } finally {
      if (!channels.containsKey(peer)) {
        theirs.close();
      }
    }
  }

  /// When all are attached, on all ranks.
  void meet() {
    if (singleCopy != null) {
      singleCopy.meet(all());
    }
  }

  /// When all have met.
  void decide() {
    if (singleCopy != null) {
      singleCopy.decide(all());
    }
  }

  private MemorySegment[] all() {
    return IntStream.range(0, layout.ranks()).mapToObj(this::block).toArray(MemorySegment[]::new);
  }

  @Override
  public boolean lend(
      int loan,
      MemorySegment memory,
      long bytes,
      int readers,
      PeerMemory.Lender lender,
      StreamingCopy instead) {
    return singleCopy != null
        && singleCopy.lend(block(rank), loan, memory, bytes, readers, lender, instead);
  }

  @Override
  public void endLoan(int loan) {
    if (singleCopy != null) {
      singleCopy.endLoan(loan);
    }
  }

  @Override
  public boolean copiesLoans() {
    return true;
  }

  @Override
  public boolean copyLent(
      int peer, int loan, long offset, MemorySegment target, long targetOffset, long bytes) {
    return singleCopy != null
        && singleCopy.copy(block(peer), peer, loan, offset, target, targetOffset, bytes);
  }

  @Override
  public MemorySegment block(int peer) {
    MemorySegment block = blocks[peer];
    if (block == null) {
      throw new IllegalStateException("the memory of rank " + peer + " is not attached");
    }
    return block;
  }

  @Override
  public synchronized void reserve(long offset, long bytes) {
    checkOpen();
    if (bytes == 0) {
      return;
    }
    long start = BlockLayout.blockAt(rank) + offset;
    int end = page(start + bytes - 1) + 1;
    int from = reserved.nextClearBit(page(start));
    while (from < end) {
      int until = reserved.nextSetBit(from);
      until = until < 0 ? end : Math.min(until, end);
      fill(from * BlockLayout.PAGE_BYTES, (until - from) * BlockLayout.PAGE_BYTES);
      reserved.set(from, until);
      from = reserved.nextClearBit(until);
    }
  }

  @Override
  public synchronized MemorySegment view(int peer, long offset, long bytes, Arena owner) {
    checkOpen();
    if (calls != null) {
      return block(peer).asSlice(offset, bytes).reinterpret(owner, null);
    }
    FileChannel file = channels.getOrDefault(peer, channel);
    try {
      return undisturbed(
          () -> file.map(READ_WRITE, BlockLayout.blockAt(peer) + offset, bytes, owner));
    } catch (IOException e) {
      throw place.notMapped("mapping %d bytes".formatted(bytes), e);
    }
  }

  @Override
  public synchronized void close() {
    if (!arena.scope().isAlive()) {
      return;
    }
    arena.close();
    if (calls != null) {
      descriptor.ifPresent(calls::close);
    }
    try {
      channel.close();
      for (FileChannel theirs : channels.values()) {
        theirs.close();
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// With native access a block is a segment of the class that the users' native memory has: where
  /// both meet in one loop of the JDK, each turn of the loop costs virtual calls.
  private MemorySegment mapBlock(int peer, FileChannel file) {
    MemorySegment block = mapStorage(file).asSlice(BlockLayout.blockAt(peer), layout.blockBytes());
    return calls == null
        ? block
        : MemorySegment.ofAddress(block.address()).reinterpret(layout.blockBytes(), arena, null);
  }

  private MemorySegment mapStorage(FileChannel file) {
    long bytes = layout.storageBytes();
    try {
      return file.map(READ_WRITE, 0, bytes, arena);
    } catch (IOException e) {
      throw place.notMapped("mapping %d × %d bytes".formatted(layout.ranks(), bytes), e);
    }
  }

  /// The descriptor must not be used after it was closed: it may be another file's.
  private void checkOpen() {
    if (!arena.scope().isAlive()) {
      throw new IllegalStateException("rank %d's shared memory is closed".formatted(rank));
    }
  }

  private void fill(long offset, long bytes) {
    if (calls != null && descriptor.isPresent()) {
      int error = calls.fallocate(descriptor.getAsInt(), offset, bytes);
      if (error != 0) {
        String reason = error == NativeCalls.ENOSPC ? "no space left" : "error number " + error;
        throw place.noSpace(reserving(bytes), reason, null);
      }
      return;
    }
    try {
      undisturbed(() -> {
        writeZeros(offset, bytes);
        return true;
      });
    } catch (IOException e) {
      throw place.noSpace(reserving(bytes), String.valueOf(e.getMessage()), e);
    }
  }

  private static String reserving(long bytes) {
    return "reserving %d bytes of shared memory".formatted(bytes);
  }

  private void writeZeros(long offset, long bytes) throws IOException {
    var zeros = ByteBuffer.allocate((int) Math.min(bytes, ZEROS_BYTES));
    for (long done = 0; done < bytes; ) {
      zeros.position(0).limit((int) Math.min(bytes - done, zeros.capacity()));
      done += channel.write(zeros, offset + done);
    }
  }

  private static int page(long offset) {
    return Math.toIntExact(offset / BlockLayout.PAGE_BYTES);
  }

  /// Runs on a thread of its own, since an interrupt of the caller would close its channels for
  /// good.
  static <T> T undisturbed(Callable<T> action) throws IOException {
    var task = new FutureTask<T>(action);
    Thread.ofPlatform().daemon().name("comm4j-file").start(task);
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return task.get();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } catch (ExecutionException e) {
      switch (e.getCause()) {
        case IOException failure -> throw failure;
        case RuntimeException failure -> throw failure;
        case Error failure -> throw failure;
        case null, default -> throw new IOException(e.getCause());
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
