package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
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
    var member =
        new Member(rank, LocalHost.identity(), ProcessHandle.current().pid(), Set.of(), List.of());
    return FileSession.start(
        root.resolve("sessions"),
        new JoinRequest("1", "job", 0, member, 3, 60_000, 10_000, ""),
        System::nanoTime,
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
}
