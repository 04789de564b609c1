package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.CommException;
import org.comm4j.api.JoinException;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PeerMemory;
import org.comm4j.tck.ChildJvm;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What can go wrong when ranks bring their memory together: all of them say so, none hangs, and no
/// file stays.
class ShmRendezvousTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final long WINDOW_BYTES = 1 << 20;
  private static final long HALF_OF_THE_ADDRESSES = 1L << 46; // that a process has

  @TempDir Path elsewhere;
  private Path root;

  @BeforeEach
  void makeRoot() throws IOException {
    root = Files.createTempDirectory(Path.of("/dev/shm"), "comm4j-test-");
  }

  @AfterEach
  void nothingIsLeft() throws IOException {
    try (var left = Files.list(root)) {
      assertThat(left).isEmpty();
    }
    Files.delete(root);
  }

  @Test
  void connects_ranksOnDifferentHosts_namesThem() {
    var session =
        new MeetingSession(elsewhere, 0, 2, "0123456789abcdef") {
          @Override
          public Member member(int peer) {
            return new Member(
                peer, new HostIdentity("host" + peer, "" + peer), 1, Set.of(), List.of());
          }
        };
    assertThat(new ShmProvider().connects(session))
        .isInstanceOfSatisfying(
            Availability.Unavailable.class,
            refusal -> {
              assertThat(refusal.reason()).contains("'host0' and 'host1'");
              assertThat(refusal.remedy()).contains("comm4j-backend-aeron");
            });
  }

  @Test
  void open_windowsDiffer_failsOnAllRanks() throws Exception {
    assertThat(failures(rank -> WINDOW_BYTES * (1 + rank)))
        .hasSize(3)
        .allSatisfy(failure ->
            assertThat(failure)
                .isInstanceOf(JoinException.class)
                .hasMessageContaining("COMM_SHM_WINDOW is 1048576 bytes on rank 0 but 2097152"));
  }

  @Test
  void open_tooLittleAddressSpace_namesSizeAndRemedy() throws Exception {
    assertThat(failures(rank -> HALF_OF_THE_ADDRESSES))
        .hasSize(3)
        .allSatisfy(failure ->
            assertThat(failure)
                .isInstanceOf(TransportFailedException.class)
                .hasMessageContaining("mapping 3 × ")
                .hasMessageContaining("address space")
                .hasMessageContaining("ulimit -v")
                .hasMessageContaining("COMM_SHM_WINDOW (%d bytes)", HALF_OF_THE_ADDRESSES));
  }

  @Test
  void open_noSharedMemory_saysHowToGetIt() {
    try (var sessions = InMemorySessions.group(1)) {
      Path missing = elsewhere.resolve("missing");
      assertThatThrownBy(() ->
              new ShmRendezvous(sessions.session(0), missing, TIMEOUT, true)
                  .open(WINDOW_BYTES, NativeCalls.find(), SingleCopyOption.AUTO, Long.MAX_VALUE))
          .isInstanceOf(BackendUnavailableException.class)
          .hasMessageContaining(missing + " is not there")
          .hasMessageContaining("mount -m -t tmpfs tmpfs " + missing)
          .hasMessageNotContaining("vanished");
    }
  }

  @Test
  void open_directoryIsOpenToOthers_isRefusedAndLeftAlone() throws Exception {
    Path base = ShmDirectory.base(root);
    Files.createDirectory(base);
    var open = PosixFilePermissions.fromString("rwxrwxrwx");
    Files.setPosixFilePermissions(base, open);
    assertThat(failures(rank -> WINDOW_BYTES))
        .hasSize(3)
        .allSatisfy(failure -> assertThat(failure).hasMessageContaining("has mode 40777"));
    assertThat(Files.getPosixFilePermissions(base)).isEqualTo(open);
    Files.delete(base);
  }

  @Test
  void open_directoryIsALink_isNotFollowed() throws Exception {
    Path base = ShmDirectory.base(root);
    Files.createSymbolicLink(base, elsewhere);
    assertThat(failures(rank -> WINDOW_BYTES))
        .hasSize(3)
        .allSatisfy(failure -> assertThat(failure).hasMessageContaining("expected: a directory"));
    assertThat(elsewhere).isEmptyDirectory();
    Files.delete(base);
  }

  /// The last one to leave takes the user's directory away, while others come.
  @Test
  void open_sessionsComeAndGo_allFindTheDirectory() throws Exception {
    var tasks = new ArrayList<Callable<Object>>();
    for (int each = 0; each < 4; each++) {
      String session = "0123456789abcde" + each;
      tasks.add(() -> {
        for (int i = 0; i < 1000; i++) {
          ShmDirectory.enter(root, session, 0).close();
        }
        return session;
      });
    }
    try (var threads = Executors.newFixedThreadPool(tasks.size())) {
      for (Future<Object> each : threads.invokeAll(tasks)) {
        assertThat(each.get()).isNotNull();
      }
    }
  }

  @Test
  void enter_remainsCanNotBeRemoved_goesOn() throws Exception {
    Path base = ShmDirectory.base(root);
    var ownerOnly =
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
    Files.createDirectory(base, ownerOnly);
    Path dead = Files.createDirectory(base.resolve("0123456789abcdef"), ownerOnly);
    Path foreign = Files.createDirectories(dead.resolve("not/ours"));
    Files.setLastModifiedTime(dead, FileTime.fromMillis(0)); // nobody starts there
    ShmDirectory.enter(root, "fedcba9876543210", 0).close();
    assertThat(foreign).isDirectory();
    Files.delete(foreign);
    Files.delete(foreign.getParent());
    Files.delete(dead);
    Files.delete(base);
  }

  @Test
  void open_fileIsThere_isNotUsed() throws Exception {
    try (var sessions = InMemorySessions.group(1)) {
      Path base = ShmDirectory.base(root);
      var ownerOnly =
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
      Files.createDirectory(base, ownerOnly);
      Path directory = base.resolve(sessions.session(0).id());
      Files.createDirectory(directory, ownerOnly);
      Files.createSymbolicLink(directory.resolve("rank-0"), elsewhere.resolve("target"));
      assertThatThrownBy(() -> open(sessions.session(0), WINDOW_BYTES))
          .isInstanceOf(TransportFailedException.class)
          .hasMessageContaining("rank-0");
      assertThat(elsewhere).isEmptyDirectory();
    }
  }

  /// Peers read the flags of a rank that has come no further yet.
  @Test
  void create_memoryIsBehindWhatPeersLookAt() throws Exception {
    var layout = new BlockLayout(2, WINDOW_BYTES);
    Path file = root.resolve("rank-1");
    FileMemory memory = create(file, layout);
    try {
      assertThat(bytesBehind(file))
          .isGreaterThanOrEqualTo(layout.controlBytes() + PeerMemory.READY_BYTES);
    } finally {
      memory.close();
      Files.delete(file);
    }
  }

  /// What `docs/tuning.md` says rings take, where a rank talks to all others.
  @ParameterizedTest
  @ValueSource(ints = {3, 16, 63, 64, 128})
  void reserve_allRings_takesLessThan5MiB(int peers) throws Exception {
    var layout = new BlockLayout(peers + 1, WINDOW_BYTES);
    Path file = root.resolve("rank-1");
    FileMemory memory = create(file, layout);
    try {
      long before = bytesBehind(file);
      for (int peer = 0; peer <= peers; peer++) {
        if (peer != 1) {
          memory.reserve(layout.ringAt(peer), layout.ringBytes());
        }
      }
      assertThat(bytesBehind(file) - before)
          .isBetween(peers * layout.ringBytes() - BlockLayout.PAGE_BYTES, (5L << 20) - 1);
    } finally {
      memory.close();
      Files.delete(file);
    }
  }

  private FileMemory create(Path file, BlockLayout layout) throws IOException {
    var place = new SharedPlace(root, WindowOption.SHM.variable(), WINDOW_BYTES);
    return FileMemory.create(1, file, layout, place, NativeCalls.find().orElse(null), null);
  }

  private static long bytesBehind(Path file) throws Exception {
    String blocks = ChildJvm.run(List.of("stat", "--format=%b", file.toString()));
    return 512 * Long.parseLong(blocks.strip().replace("0: ", ""));
  }

  @Test
  void reserve_noSpace_namesPlaceSizeAndRemedy() throws Exception {
    var calls = NativeCalls.find();
    assumeTrue(calls.isPresent(), "no native access");
    long total = Files.getFileStore(root).getTotalSpace();
    try (var sessions = InMemorySessions.group(1);
        var transport = open(sessions.session(0), 4 * (1L << 40))) {
      assumeTrue(total < transport.windowBytes(), "/dev/shm is unlimited");
      assertThatThrownBy(() -> transport.reserve(0, total + (1L << 30)))
          .isInstanceOf(TransportFailedException.class)
          .hasMessageContaining(root.toString())
          .hasMessageContaining("no space left")
          .hasMessageContaining("of %d bytes are free".formatted(total))
          .hasMessageContaining("COMM_SHM_WINDOW");
      transport.reserve(0, 4096);
      transport.window(0).asSlice(0, 4096).fill((byte) 1);
    }
  }

  /// Between two exchanges, which would say so.
  @Test
  void open_interruptedMeanwhile_opens() {
    var session =
        new MeetingSession(elsewhere, 0, 1, "0123456789abcdef") {
          @Override
          public List<byte[]> exchange(String key, byte[] mine, Duration timeout) {
            var _ = Thread.interrupted();
            List<byte[]> all = super.exchange(key, mine, timeout);
            Thread.currentThread().interrupt();
            return all;
          }
        };
    try (var transport = open(session, WINDOW_BYTES)) {
      assertThat(Thread.interrupted()).as("left as it was").isTrue();
      transport.reserve(0, 4096);
    } finally {
      var _ = Thread.interrupted();
    }
  }

  @Test
  void open_error_leavesNothing() {
    var error = new Error("on purpose");
    var session =
        new MeetingSession(elsewhere, 0, 1, "0123456789abcdef") {
          @Override
          public List<byte[]> exchange(String key, byte[] mine, Duration timeout) {
            if (key.equals("shm.map")) {
              throw error;
            }
            return super.exchange(key, mine, timeout);
          }
        };
    assertThatThrownBy(() -> open(session, WINDOW_BYTES)).isSameAs(error);
  }

  private interface WindowBytes {
    long ofRank(int rank);
  }

  private List<CommException> failures(WindowBytes windowBytes) throws Exception {
    var failures = new ArrayList<CommException>();
    try (var sessions = InMemorySessions.group(3);
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      var opening = new ArrayList<Future<SharedMemoryTransport>>();
      for (int rank = 0; rank < 3; rank++) {
        int each = rank;
        Callable<SharedMemoryTransport> part =
            () -> open(sessions.session(each), windowBytes.ofRank(each));
        opening.add(threads.submit(part));
      }
      for (Future<SharedMemoryTransport> each : opening) {
        try {
          each.get().close();
        } catch (ExecutionException e) {
          failures.add((CommException) e.getCause());
        }
      }
    }
    return failures;
  }

  private SharedMemoryTransport open(Session session, long windowBytes) {
    return new ShmRendezvous(session, root, TIMEOUT, true)
        .open(windowBytes, NativeCalls.find(), SingleCopyOption.AUTO, Long.MAX_VALUE);
  }
}
