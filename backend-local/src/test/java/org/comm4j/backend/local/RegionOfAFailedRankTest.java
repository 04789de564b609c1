package org.comm4j.backend.local;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.SharedRegion;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.InMemorySessions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Whose memory a region is after a rank is gone that had it open, and may read on. Its process is
/// the one the others are told.
@Timeout(60)
class RegionOfAFailedRankTest {
  private static final int BYTES = 100_000;

  /// How rank 1 goes.
  private interface End {
    void of(InMemorySessions sessions, BackendCommunicator itsCommunicator);

    static End failed() {
      return (sessions, _) -> sessions.fail(1, new AssertionError("given up"));
    }

    static End left() {
      return (sessions, _) -> sessions.session(1).close();
    }

    static End leftWithAllClosed() {
      return (sessions, communicator) -> {
        communicator.close();
        sessions.session(1).close();
      };
    }
  }

  @Test
  void close_otherIsOnlySilent_keepsTheMemory() throws Exception {
    String evidence = "silent for 5.0 s (rank 1, process 2 on here)";
    assertThat(isTheNextOnes(End.failed(), evidence, another())).isFalse();
  }

  @Test
  void close_otherIsSilentAndItsProcessEnds_hasTheMemoryBack() throws Exception {
    String evidence = "silent for 5.0 s (rank 1, process 2 on here)";
    assertThat(isTheNextOnes(End.failed(), evidence, ended())).isTrue();
  }

  /// It does not hear the others, and lives.
  @Test
  void close_otherHasGivenUpTheHost_keepsTheMemory() throws Exception {
    String evidence = "it has given up the session's host: silent for 5.0 s";
    assertThat(isTheNextOnes(End.failed(), evidence, another())).isFalse();
  }

  /// Its thread has ended, or another one of its process has what it viewed.
  @Test
  void close_otherOfThisProcessHasFailed_keepsTheMemory() throws Exception {
    assertThat(isTheNextOnes(End.failed(), "threw an exception", own())).isFalse();
  }

  @Test
  void close_otherOfThisProcessHasLeft_keepsTheMemory() throws Exception {
    assertThat(isTheNextOnes(End.left(), Session.Failure.LEFT, own())).isFalse();
  }

  @Test
  void close_otherOfThisProcessHasLeftWithAllClosed_hasTheMemoryBack() throws Exception {
    assertThat(isTheNextOnes(End.leftWithAllClosed(), Session.Failure.LEFT, own())).isTrue();
  }

  @Test
  void close_otherProcessHasLeft_hasTheMemoryBack() throws Exception {
    assertThat(isTheNextOnes(End.left(), Session.Failure.LEFT, another())).isTrue();
  }

  @Test
  void close_otherProcessHasEnded_hasTheMemoryBack() throws Exception {
    assertThat(isTheNextOnes(End.failed(), "its control connection closed", ended())).isTrue();
  }

  /// Nobody has asked yet how it ended.
  @Test
  void close_otherProcessHasEndedAndIsAZombie_hasTheMemoryBack() throws Exception {
    Process parent = new ProcessBuilder("sh", "-c", "true & echo $!; exec cat").start();
    try (var lines = parent.inputReader()) {
      long child = Long.parseLong(lines.readLine());
      Path stat = Path.of("/proc/" + child + "/stat");
      while (!Files.readString(stat).contains(") Z ")) {
        Thread.onSpinWait();
      }
      String evidence = "its control connection closed";
      assertThat(isTheNextOnes(End.failed(), evidence, child)).isTrue();
    } finally {
      parent.destroyForcibly().waitFor();
    }
  }

  /// A network, a firewall or its session's thread has ended the connection, and it goes on.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "its control connection closed",
        "its control connection broke: Connection reset",
        "it sent what is not ours: a frame of 9 bytes"
      })
  void close_otherHasLostItsConnectionAndLives_keepsTheMemory(String evidence) throws Exception {
    assertThat(isTheNextOnes(End.failed(), evidence, another())).isFalse();
  }

  /// An interrupt of the calling thread does not keep it from looking.
  @Test
  void close_interruptedAndOtherProcessHasEnded_hasTheMemoryBack() throws Exception {
    End failed =
        (sessions, _) -> {
          sessions.fail(1, new AssertionError("given up"));
          Thread.currentThread().interrupt();
        };
    assertThat(isTheNextOnes(failed, "its control connection closed", ended())).isTrue();
    assertThat(Thread.interrupted()).isTrue();
  }

  private static long own() {
    return ProcessHandle.current().pid();
  }

  /// One that is there.
  private static long another() {
    return ProcessHandle.current().parent().orElseThrow().pid();
  }

  private static long ended() throws Exception {
    Process process = new ProcessBuilder("true").start();
    process.waitFor();
    return process.pid();
  }

  /// Rank 1 has a region open and goes; rank 0 closes it, and takes the next memory of that size.
  ///
  /// @param evidence of the end
  /// @param pid of its process
  /// @return whether that is what rank 1 has open
  private static boolean isTheNextOnes(End end, String evidence, long pid) throws Exception {
    var transports = LocalTransports.group(2, 4 << 20, NativeCalls.find(), Long.MAX_VALUE);
    try (var sessions = InMemorySessions.group(2);
        var threads = Executors.newCachedThreadPool()) {
      List<BackendCommunicator> comms =
          transports.stream()
              .map(each -> open(sessions.session(each.rank()), each, evidence, pid))
              .toList();
      List<Callable<SharedRegion<HostData>>> making =
          comms.stream()
              .map(each -> (Callable<SharedRegion<HostData>>) () -> fenced(each))
              .toList();
      List<Future<SharedRegion<HostData>>> regions = threads.invokeAll(making, 30, SECONDS);
      long address = regions.get(1).get().data().segment().address();

      end.of(sessions, comms.get(1));
      regions.get(0).get().close();
      BackendCommunicator survivor = comms.get(0).shrink().communicator();
      try (CommBuffer next = survivor.allocate(DataType.INT8, BYTES)) {
        return next.hostData().segment().address() == address;
      } finally {
        survivor.close();
        comms.forEach(BackendCommunicator::close);
      }
    } finally {
      transports.forEach(SharedMemoryTransport::close);
    }
  }

  private static BackendCommunicator open(
      Session session, SharedMemoryTransport transport, String evidence, long pid) {
    return EngineCommunicator.open(
        "test", told(session, evidence, pid), transport, transport, CommConfig.builder().build());
  }

  private static SharedRegion<HostData> fenced(BackendCommunicator comm) {
    SharedRegion<HostData> region = comm.sharedMemory().createRegion(DataType.INT8, BYTES);
    region.fence();
    return region;
  }

  /// The same session, but for what it says of failures and processes.
  private static Session told(Session session, String evidence, long pid) {
    var known = new ConcurrentHashMap<Session.News, Session.News>(); // the same until there is more
    return (Session)
        Proxy.newProxyInstance(
            Session.class.getClassLoader(),
            new Class<?>[] {Session.class},
            (_, method, arguments) -> {
              Object result;
              try {
                result = method.invoke(session, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
              return switch (result) {
                case Session.News news -> known.computeIfAbsent(news, each -> told(each, evidence));
                case Session.Member member when member.rank() == 1 -> ofProcess(member, pid);
                case null, default -> result;
              };
            });
  }

  private static Session.News told(Session.News news, String evidence) {
    List<Session.Failure> failures =
        news.failures().stream()
            .map(each -> new Session.Failure(each.rank(), evidence, each.cause()))
            .toList();
    return new Session.News(failures, news.aborts(), news.evicted());
  }

  private static Session.Member ofProcess(Session.Member member, long pid) {
    return new Session.Member(
        member.rank(), member.host(), pid, member.processors(), member.backends());
  }
}
