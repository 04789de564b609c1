package org.comm4j.backend.local;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import org.comm4j.core.kernel.StreamingCopy;
import org.comm4j.core.transport.PeerMemory;
import org.comm4j.core.transport.Scopes;
import org.jspecify.annotations.Nullable;

/// Lets ranks that are processes copy from each other's memory by the kernel (`process_vm_readv`,
/// which MPI libraries call cross-memory attach): one copy instead of two through shared memory.
///
/// The kernel demands what a debugger needs: the same user, and that no policy (Yama, seccomp)
/// forbids it. So when the ranks open each one tries to read a word of every other, and where one
/// can't nobody lends. A rank introduces itself in a line of its block:
///
///     process │ address of a word │ the word │ 1 if this rank could read the words of all
///
/// **Which is faster** depends on the machine: the kernel takes time for each page, which two
/// processors with a common cache may need less of for a copy into shared memory; where a store takes
/// lines from a far processor's cache, it is two to four times as fast. Either way the reader fetches
/// each line once from the owner's cache. So the owner compares what its copies into shared memory
/// take with what the kernel adds to a copy, which it measures on memory of its own, and copies
/// again from time to time to see what that takes now. Of long data that a thread waits for it tries
/// both, since the readers' part may differ too ([LoanTrials]). Where ranks take turns on the
/// processors each of several readers pays the kernel for what one copy would do: one is lent to at
/// most.
///
/// One thread at a time.
final class SingleCopy {
  private static final long LEAST_BYTES = 8 << 10;

  private static final long LEAST_TRIED_BYTES = 128 << 10;

  private static final long MOST_COMPARED_BYTES = 1L << 30;

  /// More than any copy takes, and not too large to be multiplied.
  private static final long NEVER = 1L << 31;

  private static final int COPIED_ONE_IN = 64; // shorter loans that would be better, to measure
  private static final int TILE_BYTES = 64 << 10; // for arrays, which have no address
  static final int SAMPLE_BYTES = 256 << 10;
  private static final int SAMPLES = 5;

  private static final String CAPABILITIES = "CapEff:"; // hexadecimal bits
  private static final int CAP_SYS_PTRACE = 19;

  private static final long PROCESS = 0;
  private static final long ADDRESS = 8;
  private static final long WORD = 16;
  private static final long VERDICT = 24;

  private final int rank;
  private final BlockLayout layout;
  private final NativeCalls calls;
  private final SingleCopyOption option;
  private final boolean oversubscribed;
  private final MemorySegment word = Arena.ofAuto().allocate(JAVA_LONG);
  private final MemorySegment here = Arena.ofAuto().allocate(JAVA_LONG, 2);
  private final MemorySegment there = Arena.ofAuto().allocate(JAVA_LONG, 2);
  private final MemorySegment byteOfLent = Arena.ofAuto().allocate(1);
  private final @Nullable Lendable[] lendable = new @Nullable Lendable[PeerMemory.LOANS];
  private final @Nullable MemorySegment[] loans =
      new @Nullable MemorySegment[PeerMemory.LOANS]; // kept alive
  private final long[] processes; // of the ranks
  private @Nullable MemorySegment tile;
  private boolean permitted;
  private final KernelCopies kernel = new KernelCopies();
  private final @Nullable LoanTrials[] trials = new @Nullable LoanTrials[Long.SIZE]; // by length
  private long refusals;
  private long nextMeasurement; // when there are so many refusals
  private int turns;

  /// @param oversubscribed whether the host has fewer processors than ranks
  SingleCopy(
      int rank,
      BlockLayout layout,
      NativeCalls calls,
      SingleCopyOption option,
      boolean oversubscribed) {
    this.rank = rank;
    this.layout = layout;
    this.calls = calls;
    this.option = option;
    this.oversubscribed = oversubscribed;
    this.processes = new long[layout.ranks()];
  }

  /// What listings show of it: as far as one process can tell, since whether ranks may read each
  /// other is known when they [#meet].
  ///
  /// @param scope where Yama says who may (`/proc/sys/kernel/yama/ptrace_scope`), if it is there
  /// @param status of this process (`/proc/self/status`)
  static String outlook(
      SingleCopyOption option, Optional<NativeCalls> calls, Path scope, Path status) {
    if (option == SingleCopyOption.OFF) {
      return "off"; // not even tried: some policies end the process for that
    }
    if (calls.isEmpty()) {
      return "no: this JVM has no native access, or this processor's system calls are not known";
    }
    if (!readsItself(calls.get())) {
      return "no: the kernel refuses process_vm_readv, as seccomp profiles of containers do";
    }
    try {
      String who = Files.exists(scope) ? Files.readString(scope).strip() : "0";
      return who.equals("0") || (isOpenToTracers(who) && isTracer(status))
          ? "%s, permitted".formatted(option.name().toLowerCase(Locale.ROOT))
          : "no: processes may not read each other, kernel.yama.ptrace_scope is %s and not 0%s"
              .formatted(who, isOpenToTracers(who) ? ", and this one lacks CAP_SYS_PTRACE" : "");
    } catch (IOException e) {
      return "unknown: " + e;
    }
  }

  /// Whether the scope lets processes that have the capability read others.
  private static boolean isOpenToTracers(String scope) {
    return scope.equals("1") || scope.equals("2");
  }

  private static boolean isTracer(Path status) throws IOException {
    return Files.readAllLines(status, ISO_8859_1).stream()
        .filter(line -> line.startsWith(CAPABILITIES))
        .map(line -> Long.parseUnsignedLong(line.substring(CAPABILITIES.length()).strip(), 16))
        .anyMatch(bits -> (bits >>> CAP_SYS_PTRACE & 1) != 0);
  }

  /// Whether the kernel lets this process make the call at all.
  static boolean readsItself(NativeCalls calls) {
    MemorySegment word = Arena.ofAuto().allocate(JAVA_LONG);
    MemorySegment part = Arena.ofAuto().allocate(JAVA_LONG, 2);
    part.set(JAVA_LONG, 0, word.address());
    part.set(JAVA_LONG, 8, Long.BYTES);
    return calls.readProcess(ProcessHandle.current().pid(), part, part, word) == Long.BYTES;
  }

  /// Writes who this rank is, before peers [#meet] it.
  void introduce(MemorySegment own) {
    word.set(JAVA_LONG, 0, ThreadLocalRandom.current().nextLong());
    long at = layout.introductionAt();
    own.set(JAVA_LONG, at + PROCESS, ProcessHandle.current().pid());
    own.set(JAVA_LONG, at + ADDRESS, word.address());
    own.set(JAVA_LONG, at + WORD, word.get(JAVA_LONG, 0));
  }

  /// Tries to read what the others have introduced, and says whether it could; they may see that
  /// after the ranks have synchronised. With [SingleCopyOption#OFF] it does not try: some policies
  /// end the process for that.
  void meet(MemorySegment[] blocks) {
    if (option == SingleCopyOption.OFF) {
      return;
    }
    long at = layout.introductionAt();
    MemorySegment read = Arena.ofAuto().allocate(JAVA_LONG);
    for (int peer = 0; peer < blocks.length; peer++) {
      MemorySegment theirs = blocks[peer];
      processes[peer] = theirs.get(JAVA_LONG, at + PROCESS);
      long address = theirs.get(JAVA_LONG, at + ADDRESS);
      if (address == 0
          || !read(processes[peer], address, read, 0, Long.BYTES)
          || read.get(JAVA_LONG, 0) != theirs.get(JAVA_LONG, at + WORD)) {
        return;
      }
    }
    blocks[rank].set(JAVA_LONG, at + VERDICT, 1);
  }

  /// Hears what the others could.
  void decide(MemorySegment[] blocks) {
    permitted = true;
    for (MemorySegment block : blocks) {
      permitted &= block.get(JAVA_LONG, layout.introductionAt() + VERDICT) == 1;
    }
  }

  /// As [PeerMemory#lend].
  ///
  /// @param own this rank's block
  /// @param instead what copies it otherwise
  boolean lend(
      MemorySegment own,
      int loan,
      MemorySegment memory,
      long bytes,
      int readers,
      PeerMemory.Lender lender,
      StreamingCopy instead) {
    if (!permitted
        || bytes < LEAST_BYTES
        || !memory.isNative()
        || !memory.scope().isAlive()
        || (lender == PeerMemory.Lender.GOES_ON && Scopes.canBeClosed(memory))
        || !isBetterLent(bytes, readers, lender, instead)
        || !canBeRead(loan, memory)) {
      return false;
    }
    loans[loan] = memory;
    own.set(JAVA_LONG, layout.loanAt(loan), memory.address());
    return true;
  }

  void endLoan(int loan) {
    loans[loan] = null;
  }

  /// As [PeerMemory#copyLent].
  ///
  /// @param theirs the peer's block
  boolean copy(
      MemorySegment theirs,
      int peer,
      int loan,
      long offset,
      MemorySegment target,
      long targetOffset,
      long bytes) {
    long address = theirs.get(JAVA_LONG, layout.loanAt(loan)) + offset;
    if (target.isNative()) {
      return read(processes[peer], address, target, targetOffset, bytes);
    }
    MemorySegment between = tile();
    for (long done = 0; done < bytes; done += TILE_BYTES) {
      long part = Math.min(TILE_BYTES, bytes - done);
      if (!read(processes[peer], address + done, between, 0, part)) {
        return false;
      }
      MemorySegment.copy(between, 0, target, targetOffset + done, part);
    }
    return true;
  }

  private MemorySegment tile() {
    MemorySegment made = tile == null ? Arena.ofAuto().allocate(TILE_BYTES, 64) : tile;
    tile = made;
    return made;
  }

  private boolean read(long process, long address, MemorySegment target, long offset, long bytes) {
    for (long done = 0; done < bytes; ) {
      here.set(JAVA_LONG, 0, target.address() + offset + done);
      here.set(JAVA_LONG, 8, bytes - done);
      there.set(JAVA_LONG, 0, address + done);
      there.set(JAVA_LONG, 8, bytes - done);
      long got = calls.readProcess(process, here, there, target);
      if (got <= 0) {
        return false;
      }
      done += got;
    }
    return true;
  }

  /// Whether the kernel copies from it: not from what it has no pages for, such as a device or
  /// memory that a device's driver has mapped, nor from secret memory (`memfd_secret`), nor behind
  /// the end of a file, which is why the last byte is read too. A peer that failed to read it would
  /// wait to hear why.
  private boolean canBeRead(int loan, MemorySegment memory) {
    Lendable known = lendable[loan];
    if (known != null && known.is(memory)) {
      return true;
    }
    long last = memory.address() + memory.byteSize() - 1;
    if (!read(processes[rank], memory.address(), byteOfLent, 0, 1)
        || !read(processes[rank], last, byteOfLent, 0, 1)) {
      return false;
    }
    lendable[loan] = Lendable.of(memory);
    return true;
  }

  /// Whether it is to be lent, as far as time goes.
  private boolean isBetterLent(
      long bytes, int readers, PeerMemory.Lender lender, StreamingCopy instead) {
    if (option == SingleCopyOption.ON) {
      return true;
    }
    if (oversubscribed && readers > 1) {
      return false;
    }
    boolean expected = isExpectedToBeBetterLent(bytes, instead.nsPerMib());
    if (bytes >= LEAST_TRIED_BYTES && lender == PeerMemory.Lender.WAITS) {
      return trials(bytes).next(System.nanoTime(), expected);
    }
    if (expected) {
      turns = (turns + 1) % COPIED_ONE_IN;
    }
    return expected && turns != 0;
  }

  private boolean isExpectedToBeBetterLent(long bytes, long copyNsPerMib) {
    if (copyNsPerMib == 0) {
      return false;
    }
    boolean expected = kernel.isFaster(copyNsPerMib, bytes);
    if (!expected && refusals++ >= nextMeasurement) {
      nextMeasurement = 2 * refusals;
      measure();
    }
    return expected;
  }

  /// Those of data of about that length.
  private LoanTrials trials(long bytes) {
    int length = Long.numberOfLeadingZeros(bytes);
    LoanTrials known = trials[length];
    if (known == null) {
      known = new LoanTrials();
      trials[length] = known;
    }
    return known;
  }

  /// What the kernel takes for a call, and adds to a copy: the least that was measured, since the
  /// first measurements may be disturbed, and of code not yet compiled.
  static final class KernelCopies {
    private long callNs = NEVER;
    private long sampleNs = NEVER; // with the call

    /// @param callNs for a byte
    /// @param sampleNs for [#SAMPLE_BYTES], without what an ordinary copy of them takes
    void measured(long callNs, long sampleNs) {
      this.callNs = Math.min(this.callNs, callNs);
      this.sampleNs = Math.min(this.sampleNs, sampleNs);
    }

    /// Whether that is less than copying into shared memory once takes: clearly, since peers read
    /// what is there while more is copied.
    boolean isFaster(long copyNsPerMib, long bytes) {
      long compared = Math.min(bytes, MOST_COMPARED_BYTES);
      long ns = callNs + Math.max(0, sampleNs - callNs) * compared / SAMPLE_BYTES;
      return ns + ns / 2 < (copyNsPerMib * compared) >> 20;
    }
  }

  /// The least of some, on memory of this rank's.
  private void measure() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment source = arena.allocate(SAMPLE_BYTES, 64).fill((byte) 1);
      MemorySegment target = arena.allocate(SAMPLE_BYTES, 64);
      long byKernel = Long.MAX_VALUE;
      long plain = Long.MAX_VALUE;
      long call = Long.MAX_VALUE;
      for (int i = 0; i < SAMPLES; i++) {
        long start = System.nanoTime();
        MemorySegment.copy(source, 0, target, 0, SAMPLE_BYTES);
        long between = System.nanoTime();
        boolean done = read(processes[rank], source.address(), target, 0, SAMPLE_BYTES);
        long after = System.nanoTime();
        if (!done || !read(processes[rank], source.address(), target, 0, 1)) {
          return;
        }
        plain = Math.min(plain, between - start);
        byKernel = Math.min(byKernel, after - between);
        call = Math.min(call, System.nanoTime() - after);
      }
      kernel.measured(call, byKernel - plain);
    }
  }

  /// Memory that the kernel has copied from, as long as its scope lives: nothing else is mapped
  /// there meanwhile. Keeps neither alive.
  private record Lendable(WeakReference<MemorySegment.Scope> scope, long address, long bytes) {
    private static final MemorySegment.Scope GLOBAL = Arena.global().scope();

    /// Null for what no arena owns: something else may be mapped there at any time.
    static @Nullable Lendable of(MemorySegment memory) {
      MemorySegment.Scope scope = memory.scope();
      return scope.equals(GLOBAL)
          ? null
          : new Lendable(new WeakReference<>(scope), memory.address(), memory.byteSize());
    }

    boolean is(MemorySegment memory) {
      return address == memory.address()
          && bytes == memory.byteSize()
          && scope.refersTo(memory.scope());
    }
  }
}
