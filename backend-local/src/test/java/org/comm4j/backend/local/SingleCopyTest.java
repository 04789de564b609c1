package org.comm4j.backend.local;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.nio.channels.FileChannel.MapMode.READ_WRITE;
import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.core.kernel.StreamingCopy;
import org.comm4j.core.transport.PeerMemory.Lender;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(60)
class SingleCopyTest {
  private static final BlockLayout LAYOUT = new BlockLayout(2, 1 << 20);
  private static final NativeCalls CALLS = NativeCalls.find().orElseThrow();
  private static final int BYTES = Long.BYTES * SingleCopyPeer.COUNT;
  private static final StreamingCopy NOTHING_MEASURED = new StreamingCopy(null);

  private final Arena arena = Arena.ofShared();
  private final MemorySegment[] blocks = {
    arena.allocate(LAYOUT.controlBytes(), 64), arena.allocate(LAYOUT.controlBytes(), 64)
  };

  /// Skips where the kernel forbids what this is about.
  static void assumePermitted() {
    assumeTrue(
        SingleCopy.readsItself(CALLS), "process_vm_readv is forbidden here, by a seccomp profile?");
  }

  @AfterEach
  void free() {
    arena.close();
  }

  private static SingleCopy rank(int rank, SingleCopyOption option) {
    return new SingleCopy(rank, LAYOUT, CALLS, option, false);
  }

  /// Two ranks that have met, and may read each other's memory.
  private List<SingleCopy> met(SingleCopyOption option) {
    assumePermitted();
    var ranks = List.of(rank(0, option), rank(1, option));
    for (int i = 0; i < 2; i++) {
      ranks.get(i).introduce(blocks[i]);
    }
    ranks.forEach(each -> each.meet(blocks));
    ranks.forEach(each -> each.decide(blocks));
    return ranks;
  }

  private boolean lends(SingleCopy rank, MemorySegment memory, boolean isAwaited) {
    var lender = isAwaited ? Lender.WAITS : Lender.GOES_ON;
    return rank.lend(blocks[0], 3, memory, memory.byteSize(), 1, lender, NOTHING_MEASURED);
  }

  @Test
  void outlook_isWhatIsKnownBeforeRanksMeet(@TempDir Path folder) throws IOException {
    assumePermitted();
    assertThat(outlook(SingleCopyOption.AUTO, folder)).isEqualTo("auto, permitted");
    Files.writeString(folder.resolve("scope"), "0\n");
    assertThat(outlook(SingleCopyOption.ON, folder)).isEqualTo("on, permitted");
    assertThat(outlook(SingleCopyOption.OFF, folder)).isEqualTo("off");
    Path none = folder.resolve("none");
    assertThat(SingleCopy.outlook(SingleCopyOption.ON, Optional.empty(), none, none))
        .startsWith("no: ")
        .contains("native access");
  }

  @ParameterizedTest
  @CsvSource({"1, 0", "2, 1ffff7ffff", "3, 1ffffffffff"}) // the second has all but that one
  void outlook_scopeForbidsThisProcess_isNo(String scope, String capabilities, @TempDir Path folder)
      throws IOException {
    assumePermitted();
    write(scope, capabilities, folder);
    assertThat(outlook(SingleCopyOption.ON, folder))
        .startsWith("no: ")
        .contains("kernel.yama.ptrace_scope is " + scope);
  }

  /// Root in a container that was given the capability, for example.
  @ParameterizedTest
  @CsvSource({"1, 80000", "2, 1ffffffffff"})
  void outlook_processMayTrace_isPermitted(String scope, String capabilities, @TempDir Path folder)
      throws IOException {
    assumePermitted();
    write(scope, capabilities, folder);
    assertThat(outlook(SingleCopyOption.ON, folder)).isEqualTo("on, permitted");
  }

  private static void write(String scope, String capabilities, Path folder) throws IOException {
    Files.writeString(folder.resolve("scope"), scope + "\n");
    Files.writeString(
        folder.resolve("status"), "Name:\tjava\nCapEff:\t%16s\n".formatted(capabilities));
  }

  private static String outlook(SingleCopyOption option, Path folder) {
    return SingleCopy.outlook(
        option, Optional.of(CALLS), folder.resolve("scope"), folder.resolve("status"));
  }

  @Test
  void lend_peersMayRead_onlyWhatTheyCan() {
    SingleCopy rank = met(SingleCopyOption.ON).getFirst();
    assertThat(lends(rank, arena.allocate(BYTES), true)).isTrue();
    assertThat(lends(rank, Arena.ofAuto().allocate(BYTES), false)).isTrue();
    assertThat(lends(rank, arena.allocate(BYTES), false)).as("may be closed unseen").isFalse();
    assertThat(lends(rank, MemorySegment.ofArray(new byte[BYTES]), true)).as("array").isFalse();
    assertThat(lends(rank, arena.allocate(64), true)).as("little").isFalse();
  }

  @Test
  void lend_off_isRefused() {
    assertThat(lends(met(SingleCopyOption.OFF).getFirst(), arena.allocate(BYTES), true)).isFalse();
  }

  /// As memory that a device's driver has mapped; this is a part of the kernel's own.
  @Test
  void lend_memoryThatTheKernelDoesNotCopy_isRefused() throws Exception {
    try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
      Optional<String> line = maps.filter(each -> each.endsWith("[vvar]")).findFirst();
      assumeThat(line).as("the kernel's own part of this process").isPresent();
      String[] bounds = line.orElseThrow().split("[ -]", 3);
      long from = Long.parseUnsignedLong(bounds[0], 16);
      long bytes = Long.parseUnsignedLong(bounds[1], 16) - from;
      assumeThat(bytes).as("its size").isGreaterThanOrEqualTo(8 << 10);
      MemorySegment memory = MemorySegment.ofAddress(from).reinterpret(bytes);
      assertThat(lends(met(SingleCopyOption.ON).getFirst(), memory, true)).isFalse();
    }
  }

  @Test
  void lend_memoryOfAFileThatIsShorterByNow_isRefused(@TempDir Path folder) throws IOException {
    try (var file = FileChannel.open(folder.resolve("memory"), CREATE_NEW, READ, WRITE)) {
      MemorySegment memory = file.map(READ_WRITE, 0, BYTES, arena);
      file.truncate(4096);
      assertThat(lends(met(SingleCopyOption.ON).getFirst(), memory, true)).isFalse();
    }
  }

  /// A policy may end a process for asking.
  @Test
  void meet_off_asksTheKernelForNothing() {
    for (int i = 0; i < 2; i++) {
      rank(i, SingleCopyOption.OFF).introduce(blocks[i]);
    }
    rank(0, SingleCopyOption.OFF).meet(blocks);
    assertThat(blocks[0].get(JAVA_LONG, LAYOUT.introductionAt() + 24)).isZero();
  }

  /// As where a peer has no native access, or its process has another number here.
  @Test
  void lend_peerCouldNotBeRead_isRefusedByAll() {
    var ranks = List.of(rank(0, SingleCopyOption.ON), rank(1, SingleCopyOption.ON));
    ranks.getFirst().introduce(blocks[0]);
    ranks.forEach(each -> each.meet(blocks));
    ranks.forEach(each -> each.decide(blocks));
    assertThat(lends(ranks.get(0), arena.allocate(BYTES), true)).isFalse();
    assertThat(lends(ranks.get(1), arena.allocate(BYTES), true)).isFalse();
  }

  @Test
  void meet_wordIsAnother_isNotTaken() {
    SingleCopy rank = rank(0, SingleCopyOption.ON);
    rank.introduce(blocks[0]);
    rank(1, SingleCopyOption.ON).introduce(blocks[1]);
    long wordAt = LAYOUT.introductionAt() + 16;
    blocks[1].set(JAVA_LONG, wordAt, ~blocks[1].get(JAVA_LONG, wordAt));
    rank.meet(blocks);
    assertThat(blocks[0].get(JAVA_LONG, LAYOUT.introductionAt() + 24)).isZero();
  }

  @Test
  void copy_otherProcess_readsItUntilItHasEnded() throws Exception {
    assumePermitted();
    Process child =
        new ProcessBuilder(ShmProcessTest.JVM.command(List.of(), SingleCopyPeer.class))
            .redirectErrorStream(true)
            .start();
    try {
      String[] said = child.inputReader().readLine().split(" ", 2);
      SingleCopy reader = rank(0, SingleCopyOption.ON);
      long at = LAYOUT.introductionAt();
      reader.introduce(blocks[0]);
      blocks[1].set(JAVA_LONG, at, Long.parseLong(said[0]));
      blocks[1].set(JAVA_LONG, at + 8, Long.parseLong(said[1]));
      reader.meet(blocks); // the first number is 0, as its word
      assertThat(blocks[0].get(JAVA_LONG, at + 24)).isEqualTo(1);
      blocks[1].set(JAVA_LONG, LAYOUT.loanAt(5), Long.parseLong(said[1]));

      for (MemorySegment target :
          List.of(arena.allocate(BYTES, 8), MemorySegment.ofArray(new long[BYTES / 8]))) {
        assertThat(reader.copy(blocks[1], 1, 5, 80, target, 8, BYTES - 80)).isTrue();
        assertThat(target.getAtIndex(JAVA_LONG, 0)).isZero();
        for (int i = 1; i < SingleCopyPeer.COUNT - 9; i++) {
          assertThat(target.getAtIndex(JAVA_LONG, i)).isEqualTo(i + 9);
        }
      }

      child.destroyForcibly();
      assertThat(child.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(reader.copy(blocks[1], 1, 5, 0, arena.allocate(BYTES), 0, BYTES)).isFalse();
    } finally {
      child.destroyForcibly();
    }
  }

  /// An address of nothing is no crash.
  @Test
  void copy_freedMemory_isRefused() {
    SingleCopy reader = met(SingleCopyOption.ON).getFirst();
    blocks[1].set(JAVA_LONG, LAYOUT.loanAt(0), 4096);
    assertThat(reader.copy(blocks[1], 1, 0, 0, arena.allocate(64), 0, 64)).isFalse();
  }

  @Test
  void isFaster_measuredMachines_isWhatWasFasterThere() {
    long kib128 = 128 << 10;
    // a server with a large cache that its processors are far from: 7 µs instead of 16
    assertThat(kernel(500, 37_000).isFaster(120_000, kib128)).isTrue();
    // processors with a common cache: 11 µs instead of 5
    assertThat(kernel(500, 56_000).isFaster(40_000, kib128)).isFalse();
    assertThat(kernel(500, 37_000).isFaster(120_000, 4096)).isFalse();
    assertThat(kernel(500, 37_000).isFaster(120_000, Long.MAX_VALUE)).isTrue();
    // where system calls are dear: 3.9 µs instead of 1.8, and 7.9 instead of 11
    assertThat(kernel(2400, 20_000).isFaster(200_000, 8192)).isFalse();
    assertThat(kernel(2400, 20_000).isFaster(84_000, kib128)).isTrue();
  }

  @Test
  void isFaster_firstMeasurementDisturbed_isAsOfTheNextOne() {
    SingleCopy.KernelCopies kernel = kernel(20_000, 1000); // its call took most of the time
    kernel.measured(2400, 12_400);
    assertThat(kernel.isFaster(80_000, 256 << 10)).isTrue();
    assertThat(kernel.isFaster(70_000, 256 << 10)).isFalse();
    assertThat(new SingleCopy.KernelCopies().isFaster(80_000, 1 << 30))
        .as("nothing measured")
        .isFalse();
  }

  private static SingleCopy.KernelCopies kernel(long callNs, long nsPerMib) {
    var kernel = new SingleCopy.KernelCopies();
    kernel.measured(callNs, callNs + nsPerMib * SingleCopy.SAMPLE_BYTES / (1 << 20));
    return kernel;
  }

  @Test
  void lend_auto_beginsWhenCopiesAreKnownToBeSlower() {
    SingleCopy rank = met(SingleCopyOption.AUTO).getFirst();
    assertThat(lends(rank, arena.allocate(BYTES), true)).as("nothing measured").isFalse();
  }

  @Test
  void option_anyCase_isRead() {
    CommConfig config = CommConfig.builder().option("COMM_SHM_SINGLE_COPY", "Off").build();
    assertThat(SingleCopyOption.of(config)).isEqualTo(SingleCopyOption.OFF);
    assertThat(SingleCopyOption.of(CommConfig.builder().build())).isEqualTo(SingleCopyOption.AUTO);
  }

  @Test
  void option_unknown_isRefused() {
    CommConfig config = CommConfig.builder().option("COMM_SHM_SINGLE_COPY", "cma").build();
    assertThatThrownBy(() -> new ShmProvider().checkOptions(config))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("COMM_SHM_SINGLE_COPY: 'cma' (expected: auto, on or off)");
  }
}
