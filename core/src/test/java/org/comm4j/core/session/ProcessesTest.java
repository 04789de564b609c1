package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Set;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session.Failure;
import org.comm4j.api.spi.Session.Member;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ProcessesTest {
  private static final HostIdentity HERE = new HostIdentity("here", "1");
  private static final HostIdentity ELSEWHERE = new HostIdentity("elsewhere", "2");

  @ParameterizedTest
  @CsvSource({
    "S, 1, true",
    "R, 9, true",
    "T, 1, true",
    "Z, 1, false",
    "Z, 0, false",
    "X, 1, false"
  })
  void mayRun_isNoZombie(String state, int threads, boolean expected) {
    assertThat(Processes.mayRun(stat("java", state, threads))).isEqualTo(expected);
  }

  /// The kernel says so of a process whose first thread has ended and whose others go on.
  @Test
  void mayRun_firstThreadHasEnded_isTrue() {
    assertThat(Processes.mayRun(stat("java", "Z", 2))).isTrue();
  }

  @Test
  void mayRun_nameHasBrackets_isNotTakenForTheState() {
    assertThat(Processes.mayRun(stat("a) Z 1 (b", "S", 1))).isTrue();
    assertThat(Processes.mayRun(stat("a) S 1 (b", "Z", 1))).isFalse();
  }

  @Test
  void mayRun_unknownFormat_isTrue() {
    assertThat(Processes.mayRun("")).isTrue();
    assertThat(Processes.mayRun("17 (java)")).isTrue();
  }

  private static String stat(String name, String state, int threads) {
    return "17 (%s) %s 1 17 17 0 -1 4194560 9 0 0 0 1 2 0 0 20 0 %d 0 55 1024 9\n"
        .formatted(name, state, threads);
  }

  @Test
  void mayGoOn_thisHost_goesByTheProcess() throws Exception {
    long here = ProcessHandle.current().pid();
    Process process = new ProcessBuilder("true").start();
    process.waitFor();

    assertThat(mayGoOn(HERE, here, "its control connection closed")).isTrue();
    assertThat(mayGoOn(HERE, process.pid(), "silent for 5.0 s")).isFalse();
  }

  @Test
  void mayGoOn_otherHost_goesByTheEvidence() {
    long here = ProcessHandle.current().pid();

    assertThat(mayGoOn(ELSEWHERE, here, "its control connection closed")).isFalse();
    assertThat(mayGoOn(ELSEWHERE, here, "silent for 5.0 s")).isTrue();
  }

  private static boolean mayGoOn(HostIdentity host, long pid, String evidence) {
    List<Member> members = List.of(member(0, HERE, 1), member(1, host, pid));
    var session =
        new ReplicatedSession(0, "0123456789abcdef", members, new NoHistory(), () -> 0, _ -> {});
    return Processes.mayGoOn(session, new Failure(1, evidence, null));
  }

  private static Member member(int rank, HostIdentity host, long pid) {
    return new Member(rank, host, pid, Set.of(), List.of());
  }

  private static final class NoHistory implements ReplicatedSession.History {
    @Override
    public void append(Event event) {}

    @Override
    public void close() {}
  }
}
