package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.api.spi.Session.Failure;
import org.comm4j.api.spi.Session.Member;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FileSessionTest {
  @TempDir Path root;

  private FileSession start(int rank) {
    return start(rank, 3, System::nanoTime);
  }

  private FileSession start(int rank, int worldSize, LongSupplier nanoTime) {
    var member =
        new Member(rank, LocalHost.identity(), ProcessHandle.current().pid(), Set.of(), List.of());
    return FileSession.start(
        root.resolve("sessions"),
        new JoinRequest("1", "job", 0, member, worldSize, 60_000, 10_000, ""),
        nanoTime,
        _ -> {});
  }

  /// Once one of two that want to be a rank is refused the other one is in.
  private FileSession waiting(int rank) {
    FileSession one = start(rank);
    FileSession other = start(rank);
    CompletableFuture<?> refused =
        CompletableFuture.anyOf(
            one.joined().handle((_, _) -> one), other.joined().handle((_, _) -> other));
    return refused.orTimeout(20, TimeUnit.SECONDS).join().equals(one) ? other : one;
  }

  @Test
  void checkCanBeIn_noneThere_isFineWhereItCanBeMade() throws Exception {
    FileSession.checkCanBeIn(root.resolve("sessions"));
    Path file = Files.createFile(root.resolve("file"));
    for (Path parent : List.of(root.resolve("missing"), file)) {
      assertThatExceptionOfType(JoinException.class)
          .isThrownBy(() -> FileSession.checkCanBeIn(parent.resolve("sessions")))
          .withMessageContaining("can't meet in the directory " + parent)
          .withMessageContaining("COMM_SESSION_DIR");
    }
  }

  /// As it does where its thread is interrupted: those that have not come yet were not late.
  @Test
  void join_oneCloses_othersAreToldWho() {
    FileSession rank0 = waiting(0);
    FileSession rank1 = waiting(1);
    rank0.close();
    Throwable failure = catchThrowable(() -> rank1.joined().orTimeout(20, TimeUnit.SECONDS).join());
    rank1.close();
    assertThat(failure)
        .cause()
        .isInstanceOfSatisfying(
            JoinException.class,
            e -> {
              assertThat(e.reason()).isEqualTo(Reason.PEER_FAILED);
              assertThat(e).hasMessage("rank 0 closed the session while it was joined");
            });
  }

  @Test
  void put_aProcessIsStoppedInItsTurn_saysWhoseAndWhatToDo() throws Exception {
    var nowNs = new AtomicLong(1);
    var stops = new AtomicBoolean();
    var isStopped = new CompletableFuture<Boolean>();
    var goesOn = new CompletableFuture<Boolean>();
    FileSession running = start(0, 2, nowNs::get);
    FileSession stopped =
        start(
            1,
            2,
            () -> {
              if (stops.get()) {
                isStopped.complete(true);
                goesOn.join();
              }
              return nowNs.get();
            });
    ReplicatedSession session = running.joined().orTimeout(20, TimeUnit.SECONDS).join();
    stopped.joined().orTimeout(20, TimeUnit.SECONDS).join();
    LogFile file = Objects.requireNonNull(LogFile.open(root.resolve("sessions/job.session")));
    try {
      stops.set(true);
      isStopped.orTimeout(20, TimeUnit.SECONDS).join();
      while (!file.tryTurn()) { // as if rank 1 had it
        Thread.onSpinWait();
      }
      session.put("key", new byte[] {7});
      while (session.news().evicted() == null) {
        nowNs.addAndGet(TimeUnit.SECONDS.toNanos(1));
        Thread.yield();
      }
      assertThat(session.news().evicted())
          .contains("job.session is locked by rank 1 (pid ")
          .endsWith("which does not run; continue that process, or end it");
      file.endTurn();
    } finally {
      goesOn.complete(true);
      file.close();
      session.close();
      stopped.close();
    }
  }

  /// The machine was stopped, or both processes were: the turn is free by now.
  @Test
  void put_timeIsOverWhenTheTurnIsFree_goesOut() throws Exception {
    var looks = new AtomicLong(); // at the clock
    var nowNs = new AtomicLong(1);
    var stopped = new CompletableFuture<Boolean>();
    var goesOn = new CompletableFuture<Boolean>();
    FileSession alone =
        start(
            0,
            1,
            () -> {
              looks.incrementAndGet();
              if (nowNs.get() > 1 && stopped.complete(true)) {
                goesOn.join();
              }
              return nowNs.get();
            });
    ReplicatedSession session = alone.joined().orTimeout(20, TimeUnit.SECONDS).join();
    LogFile file = Objects.requireNonNull(LogFile.open(root.resolve("sessions/job.session")));
    try {
      while (!file.tryTurn()) {
        Thread.onSpinWait();
      }
      session.put("key", new byte[] {7});
      long before = looks.get();
      while (looks.get() < before + 5) { // it waits for its turn
        Thread.onSpinWait();
      }
      nowNs.set(TimeUnit.SECONDS.toNanos(60));
      stopped.orTimeout(20, TimeUnit.SECONDS).join();
      file.endTurn();
      goesOn.complete(true);
      assertThat(session.get("key", Duration.ofSeconds(20))).containsExactly(7);
    } finally {
      file.close();
      session.close();
    }
  }

  /// Its thread can't go on, while its process does.
  @Test
  void news_rankCannotFollow_isNotTakenForDead() {
    var fails = new AtomicBoolean();
    FileSession fine = start(0, 2, System::nanoTime);
    FileSession failing =
        start(
            1,
            2,
            () -> {
              if (fails.compareAndSet(true, false)) {
                throw new FullHeap();
              }
              return System.nanoTime();
            });
    ReplicatedSession session = fine.joined().orTimeout(20, TimeUnit.SECONDS).join();
    ReplicatedSession ofFailing = failing.joined().orTimeout(20, TimeUnit.SECONDS).join();
    var itself = new CompletableFuture<Boolean>();
    ofFailing.onNews(() -> itself.complete(true));
    var isTold = new CompletableFuture<Boolean>();
    session.onNews(() -> isTold.complete(true));
    fails.set(true);
    isTold.orTimeout(20, TimeUnit.SECONDS).join();
    Failure failure = session.news().failures().getFirst();
    assertThat(failure.evidence()).startsWith("its session failed");
    assertThat(failure.left()).isFalse();
    assertThat(failure.mayGoOn()).isTrue();
    itself.orTimeout(20, TimeUnit.SECONDS).join();
    assertThat(ofFailing.news().evicted())
        .isEqualTo("the session's thread failed: " + FullHeap.class.getName() + ": a test's");
    session.close();
    failing.close();
    assertThat(root.resolve("sessions/job.session")).doesNotExist();
  }
}
