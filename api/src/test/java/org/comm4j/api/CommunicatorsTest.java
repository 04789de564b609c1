package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.RankLauncher;
import org.comm4j.api.spi.Session;
import org.comm4j.api.spi.SessionFactory;
import org.comm4j.api.spi.ThreadRanks;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(20)
class CommunicatorsTest {
  private final FakeBackend local = new FakeBackend("local", RankKind.THREADS, 50);
  private final FakeBackend shm = new FakeBackend("shm", RankKind.PROCESSES, 60);
  private final FakeBackend net = new FakeBackend("net", RankKind.PROCESSES, 40);
  private final FakeSession.Factory factory = new FakeSession.Factory();
  private final AtomicInteger ended = new AtomicInteger();

  // --- a program that nothing launched ---

  @Test
  void open_noLauncher_isAGroupOfOneThread() {
    try (Communicator comm = open(config("auto"))) {
      assertThat(comm.size()).isEqualTo(1);
      assertThat(comm.backend()).isEqualTo("local");
    }
    assertThat(ended).hasValue(1);
    assertThat(factory.joined).isNull();
  }

  @Test
  void open_noLauncherButABackendOfProcesses_isAGroupOfOneProcess() {
    try (Communicator comm = open(config("shm"))) {
      assertThat(comm.size()).isEqualTo(1);
      assertThat(comm.backend()).isEqualTo("shm");
      assertThat(session().closed).isFalse();
    }
    assertThat(session().closed).isTrue();
  }

  @SuppressWarnings("try") // closes in the middle on purpose
  @Test
  void open_twice_isRefusedUntilClosed() {
    CommConfig config = CommConfig.builder().build();
    try (Communicator first = Communicators.open(config)) {
      assertThat(first.backend()).isEqualTo("fake-threads");
      assertThatIllegalStateException()
          .isThrownBy(() -> Communicators.open(config))
          .withMessageContaining("duplicate()");
      Communicator child = first.duplicate();
      first.close();
      assertThatIllegalStateException().isThrownBy(() -> Communicators.open(config));
      child.close();
    }
    Communicators.open().close();
  }

  @Test
  void open_failed_mayBeRepeated() {
    CommConfig wrong = config("nothing");
    for (int i = 0; i < 2; i++) {
      assertThatExceptionOfType(BackendUnavailableException.class)
          .isThrownBy(() -> Communicators.open(wrong));
    }
    Communicators.open(CommConfig.builder().build()).close();
  }

  // --- a launch of processes ---

  @Test
  void open_auto_takesTheBestThatAllCanUse() {
    factory.others.add(List.of("net", "shm", "mpi"));
    try (Communicator comm = open(rank(0, 2, "auto"))) {
      assertThat(comm.backend()).isEqualTo("shm");
      assertThat(session().answers.get(0)).containsExactly("shm", "net");
    }
    assertThat(session().closed).isTrue();
    assertThat(ended).hasValue(1);
  }

  @Test
  void open_auto_followsRankZerosOrder() {
    factory.others.add(List.of("net", "shm"));
    try (Communicator comm = open(rank(1, 2, "auto"))) {
      assertThat(comm.backend()).isEqualTo("net");
    }
  }

  @Test
  void open_autoOnSeveralHosts_passesOverWhatDoesNotReach() {
    shm.reach = Availability.unavailable("ranks are on 2 hosts", "use --backend net");
    factory.others.add(List.of("shm", "net"));
    try (Communicator comm = open(rank(0, 2, "auto"))) {
      assertThat(comm.backend()).isEqualTo("net");
    }
  }

  @Test
  void open_explicitThatDoesNotReach_isRefusedNotReplaced() {
    shm.reach = Availability.unavailable("ranks are on 2 hosts", "use --backend net");
    factory.others.add(List.of("shm"));
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> open(rank(0, 2, "shm")))
        .withMessage("backend 'shm' is not available: ranks are on 2 hosts; use --backend net");
    assertThat(session().closed).isTrue();
    assertThat(ended).hasValue(0);
  }

  @Test
  void open_mixedRequests_areAnErrorThatShowsThem() {
    factory.others.addAll(List.of(List.of("net"), List.of("shm"), List.of()));
    for (int rank = 0; rank < 4; rank++) {
      CommConfig config = rank(rank, 4, "shm");
      assertThatExceptionOfType(JoinException.class)
          .isThrownBy(() -> open(config))
          .satisfies(e -> assertThat(e.reason()).isEqualTo(JoinException.Reason.CONFIGURATION))
          .withMessageContaining(": net")
          .withMessageContaining(": shm")
          .withMessageContaining(": none")
          .withMessageContaining("COMM_BACKEND");
      assertThat(session().closed).isTrue();
    }
  }

  @Test
  void open_unusableHere_tellsTheOthersAndThrowsItsOwnReason() {
    shm.availability = Availability.unavailable("/dev/shm is missing", "mount it");
    factory.others.add(List.of("shm"));

    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> open(rank(1, 2, "shm")))
        .satisfies(e -> {
          assertThat(e.reason()).isEqualTo("/dev/shm is missing");
          assertThat(e.remedy()).isEqualTo("mount it");
        });

    assertThat(session().answers.get(1)).isEmpty();
    assertThat(session().closed).isTrue();
  }

  @Test
  void open_unusableHereAndNobodyToTell_stillThrowsItsOwnReason() {
    factory.failure = new JoinException(JoinException.Reason.ADDRESS, "no such host");
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> open(rank(1, 2, "nothing")))
        .satisfies(e -> assertThat(e.getSuppressed()).containsExactly(factory.failure));
  }

  @Test
  void open_threadsInALaunchOfProcesses_isRefusedWithTheRemedy() {
    factory.others.addAll(List.of(List.of("local"), List.of("local"), List.of("local")));
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> open(rank(1, 4, "local")))
        .withMessageContaining("threads of one JVM")
        .withMessageContaining("rank 1 of a launch of 4 processes")
        .withMessageContaining("(shm, net)")
        .withMessageContaining("comm-cli run --backend local");
  }

  @Test
  void open_unknownBackend_listsTheKnownAndGuesses() {
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> open(config("smh")))
        .withMessageContaining("found: shm, local, net")
        .withMessageContaining("did you mean");
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> open(config("infiniband")))
        .withMessageContaining("name another one")
        .withMessageNotContaining("comm4j-backend");
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> open(config("aeron")))
        .withMessageContaining("add comm4j-backend-aeron");
  }

  @Test
  void open_nothingUsable_showsEveryReason() {
    shm.availability = Availability.unavailable("/dev/shm is missing", "mount it");
    net.availability = Availability.unavailable("no network", "plug it in");
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> open(rank(0, 1, "net")));
    factory.others.add(List.of());
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> open(rank(0, 2, "auto")))
        .withMessageContaining("shm: /dev/shm is missing")
        .withMessageContaining("net: no network")
        .withMessageEndingWith("; shm: mount it; net: plug it in; or use --backend local");
  }

  @Test
  void open_nothingOfTheKindThere_namesWhatToAdd() {
    factory.others.add(List.of());
    var opening =
        new Opening(
            rank(0, 2, "auto"), List.of(local.found()), List.of(factory), CallListeners.NONE);
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> opening.open(ended::incrementAndGet))
        .withMessageContaining("add one to the class path")
        .withMessageEndingWith("; or use --backend local");
  }

  @Test
  void open_unknownOption_isRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> open(config("auto").toBuilder().option("COMM_SHM_SPED", "1").build()))
        .withMessageContaining("COMM_SHM_SPED");
    open(config("auto").toBuilder().option("COMM_SHM_SPEED", "1").build()).close();
  }

  @Test
  void open_backendCanNotBeLoaded_isUnavailableWithTheCause() {
    var broken =
        new FakeBackend("shm", RankKind.PROCESSES, 60) {
          @Override
          public BackendCommunicator open(Session session, CommConfig config) {
            throw new UnsatisfiedLinkError("libshm.so");
          }
        };
    factory.others.add(List.of("shm"));
    var opening =
        new Opening(
            rank(0, 2, "shm"), List.of(broken.found()), List.of(factory), CallListeners.NONE);

    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> opening.open(ended::incrementAndGet))
        .withMessageContaining("libshm.so")
        .withCauseInstanceOf(UnsatisfiedLinkError.class);
    assertThat(session().closed).isTrue();
  }

  /// A name is a place on one host; an address needs a secret, which only who is asked for by name
  /// is trusted to have.
  @ParameterizedTest
  @CsvSource({
    "'', 1, '', openmpi, '', auto, true",
    "job, 2, '', openmpi, '', auto, false",
    "job, 1, '', openmpi, '', auto, true",
    "job, 1, 10.0.0.1, slurm, '', auto, false",
    "job, 1, 10.0.0.1, slurm, '', net, true",
    "job, 1, 10.0.0.1, slurm, secret, net, false",
    "job, 1, 10.0.0.1, openmpi, '', net, true",
    "job, 0, '', pmi, '', auto, true",
    "job, 0, '', openmpi, '', auto, false",
  })
  void open_placeIsNotWhole_backendIsAsked(
      String session,
      int ranksHere,
      String address,
      String launcher,
      String secret,
      String backend,
      boolean isAsked) {
    List<CommConfig> opened = new ArrayList<>();
    var knowing =
        new FakeBackend("net", RankKind.PROCESSES, 40) {
          @Override
          public Optional<CommConfig> meet(CommConfig launch) {
            return Optional.of(launch.toBuilder().session("place").build());
          }

          @Override
          public BackendCommunicator open(Session session, CommConfig config) {
            opened.add(config);
            return super.open(session, config);
          }
        };
    factory.others.add(List.of("net"));
    var config = rank(0, 2, backend).toBuilder().launcher(launcher, List.of());
    if (ranksHere > 0) {
      config.localWorldSize(ranksHere).localRank(0);
    }
    if (!session.isEmpty()) {
      config.session(session);
    }
    if (!address.isEmpty()) {
      config.masterAddress(address).masterPort(4000);
    }
    if (!secret.isEmpty()) {
      config.secret(Secret.of(secret));
    }

    new Opening(config.build(), List.of(knowing.found()), List.of(factory), CallListeners.NONE)
        .open(ended::incrementAndGet)
        .close();

    assertThat(opened)
        .singleElement()
        .satisfies(it -> assertThat(it.session()).hasValue(isAsked ? "place" : session));
  }

  @Test
  void open_noOrTwoSessionFactories_saysSo() {
    for (List<SessionFactory> factories :
        List.<List<SessionFactory>>of(List.of(), List.of(factory, factory))) {
      var opening =
          new Opening(rank(0, 2, "shm"), List.of(shm.found()), factories, CallListeners.NONE);
      assertThatExceptionOfType(JoinException.class)
          .isThrownBy(() -> opening.open(ended::incrementAndGet))
          .withMessageContaining("class path");
    }
  }

  // --- why ---

  @Test
  void select_auto_explains() {
    assertThat(Choice.of(found(), rank(0, 2, "auto")).selection())
        .isEqualTo(
            new Backends.Selection(
                "shm",
                "'shm' has the highest priority (60) of what is usable for a launch of 2 processes;"
                    + " besides there is local (nobody, priority 50); net (nobody, priority 40)"));
    assertThat(Choice.of(found(), config("auto")).selection().why())
        .isEqualTo(
            "'local' has the highest priority (50) of what has threads as ranks, which a group of one"
                + " needs no more than; besides there is shm (nobody, priority 60); net (nobody,"
                + " priority 40)");
    assertThat(Backends.select(CommConfig.builder().backend("fake-net").build()).why())
        .isEqualTo("'fake-net' was asked for by name");
  }

  @Test
  void agree_backendsArePassedOver_explainsWhy() {
    shm.reach = Availability.unavailable("ranks are on 2 hosts", "use --backend net");
    factory.others.add(List.of("shm", "net"));
    assertThat(agreed().why())
        .isEqualTo(
            "'net' has the highest priority (40) of what is usable for a launch of 2 processes;"
                + " besides there is shm (ranks are on 2 hosts); local (nobody, priority 50)");
    factory.others.set(0, List.of("net"));
    assertThat(agreed().why()).contains("shm (not all ranks can use it)");
  }

  private Backends.Selection agreed() {
    CommConfig config = rank(0, 2, "auto");
    Choice mine = Choice.of(found(), config);
    return mine.agree(factory.join(config, mine.names())).selection();
  }

  @Test
  void select_unknownOption_isRefusedAsByOpen() {
    CommConfig config = CommConfig.builder().option("COMM_TIMOUT", "5s").build();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Backends.select(config))
        .withMessageContaining("did you mean COMM_TIMEOUT?");
  }

  // --- a launcher of the backend's ---

  @Test
  void launcher_askedForByName_isTheBackends() {
    CommConfig config = CommConfig.builder().backend("fake-net").build();
    assertThat(Backends.launcher(3, config).orElseThrow().command())
        .containsExactly("start", "-n", "3");
    assertThat(Backends.launcher(3, config.toBuilder().backend("fake-threads").build())).isEmpty();
    assertThat(Backends.launcher(3, config.toBuilder().backend("auto").build())).isEmpty();
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> Backends.launcher(3, config.toBuilder().backend("fake-nett").build()))
        .withMessageContaining("did you mean 'fake-net'?");
  }

  @Test
  void rankLauncher_wrong_isRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new RankLauncher(List.of(), Map.of(), "RANK"))
        .withMessageContaining("expected: a program");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new RankLauncher(List.of("start"), Map.of(), "a rank"))
        .withMessageContaining("rankVariable: 'a rank'");
  }

  // --- ranks that are threads ---

  @SuppressWarnings("try") // closes in the middle on purpose
  @Test
  void open_classLoaderOfARank_isThatRank() throws Exception {
    try (LocalGroup group = LocalGroup.open(2);
        ThreadRanks.Launch launch = ThreadRanks.begin(group.communicators());
        var loader = new URLClassLoader(new URL[0], getClass().getClassLoader());
        var child = new URLClassLoader(new URL[0], loader)) {
      launch.identify(1, loader);

      assertThat(openOnThread(child)).isSameAs(group.communicator(1));
      assertThatThrownBy(() -> openOnThread(getClass().getClassLoader()))
          .cause()
          .isInstanceOf(IllegalStateException.class);
      assertThat((Object) launch.call(0, () -> openedHere())).isSameAs(group.communicator(0));
      launch.close();
      launch.close();
      assertThat(ThreadRanks.isHosting()).isFalse();
      assertThat(ThreadRanks.current()).isEmpty();
      assertThatIllegalStateException().isThrownBy(() -> launch.identify(0, loader));
    }
  }

  private static Communicator openedHere() {
    return Communicators.open();
  }

  private static Communicator openOnThread(ClassLoader context) throws Exception {
    var task = new FutureTask<>(CommunicatorsTest::openedHere);
    Thread thread = Thread.ofPlatform().unstarted(task);
    thread.setContextClassLoader(context);
    thread.start();
    return task.get();
  }

  // --- tools ---

  private Communicator open(CommConfig config) {
    return new Opening(config, found(), List.of(factory), CallListeners.NONE)
        .open(ended::incrementAndGet);
  }

  private List<Discovery.Found> found() {
    return new ArrayList<>(Stream.of(shm, local, net).map(FakeBackend::found).toList());
  }

  private FakeSession session() {
    return Objects.requireNonNull(factory.joined);
  }

  private static CommConfig config(String backend) {
    return CommConfig.builder().backend(backend).build();
  }

  private static CommConfig rank(int rank, int size, String backend) {
    return CommConfig.builder().backend(backend).rank(rank).worldSize(size).build();
  }
}
