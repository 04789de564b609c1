package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class LaunchersTest {
  private static final Map<String, String> TORCHRUN =
      environment(
          "RANK=5 WORLD_SIZE=16 LOCAL_RANK=5 LOCAL_WORLD_SIZE=8 GROUP_RANK=0 GROUP_WORLD_SIZE=2"
              + " MASTER_ADDR=n1 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=j7"
              + " TORCHELASTIC_RESTART_COUNT=2");
  private static final Map<String, String> OPEN_MPI =
      environment(
          "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0"
              + " OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_NODE_RANK=0 PMIX_RANK=2"
              + " PMIX_NAMESPACE=prterun-n1-77@1");
  private static final Map<String, String> HYDRA =
      environment("PMI_RANK=3 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2");
  private static final Map<String, String> SRUN =
      environment(
          "SLURM_PROCID=9 SLURM_NTASKS=11 SLURM_STEP_NUM_TASKS=11 SLURM_LOCALID=1 SLURM_NODEID=2"
              + " SLURM_TASKS_PER_NODE=4(x2),3 SLURM_JOB_NODELIST=node[01-04,07]"
              + " SLURM_STEP_ID=0 SLURM_JOB_ID=4711");

  @Test
  void ours_addressWithoutPort_getsTheDefaultPort() {
    CommConfig config = read(environment("COMM_RANK=0 COMM_WORLD_SIZE=2 COMM_MASTER_ADDR=h"));

    assertThat(config.masterPort()).hasValue(29500);
    assertThat(config.launcher()).isEqualTo("comm4j");
  }

  @Test
  void torchrun_complete_isTheLaunch() {
    CommConfig config = read(TORCHRUN);

    assertThat(config.launcher()).isEqualTo("torchrun");
    assertThat(config.launchVariables()).contains("RANK", "WORLD_SIZE", "MASTER_ADDR");
    assertThat(config.rank()).hasValue(5);
    assertThat(config.worldSize()).hasValue(16);
    assertThat(config.localRank()).hasValue(5);
    assertThat(config.localWorldSize()).hasValue(8);
    assertThat(config.nodeRank()).hasValue(0);
    assertThat(config.masterAddress()).contains("n1");
    assertThat(config.masterPort()).hasValue(29500);
    assertThat(config.session()).contains("j7.2");
  }

  @Test
  void torchrun_agentListensOnThePort_nextPort() {
    assertThat(read(with(TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True")).masterPort())
        .hasValue(29501);
    assertThat(
            read(with(TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True MASTER_PORT=65535"))
                .masterPort())
        .hasValue(65534);
    assertThat(
            read(with(TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE=True COMM_MASTER_PORT=7"))
                .masterPort())
        .hasValue(7);
  }

  @Test
  void openMpi_complete_isTheLaunchAndTakesOurAddress() {
    CommConfig config = read(with(OPEN_MPI, "COMM_MASTER_ADDR=n1"));

    assertThat(config.launcher()).isEqualTo("openmpi");
    assertThat(config.rank()).hasValue(2);
    assertThat(config.worldSize()).hasValue(4);
    assertThat(config.localRank()).hasValue(0);
    assertThat(config.localWorldSize()).hasValue(2);
    assertThat(config.nodeRank()).isEmpty();
    assertThat(config.masterAddress()).contains("n1");
    assertThat(config.masterPort()).hasValue(29500);
    assertThat(config.session()).contains("prterun-n1-77@1");
  }

  @Test
  void pmi_complete_isTheLaunch() {
    CommConfig config = read(HYDRA);

    assertThat(config.launcher()).isEqualTo("pmi");
    assertThat(config.rank()).hasValue(3);
    assertThat(config.worldSize()).hasValue(4);
    assertThat(config.localRank()).hasValue(1);
    assertThat(config.localWorldSize()).hasValue(2);
  }

  /// As under `comm-cli run --backend mpi`.
  @Test
  void openMpiAndPmi_meetingPlaceOfOurs_rankIsTheLaunchers() {
    String ours =
        "COMM_BACKEND=mpi COMM_MASTER_ADDR=127.0.0.1 COMM_MASTER_PORT=4711 COMM_SESSION=run-1"
            + " COMM_SESSION_HOSTED=launcher";
    for (Map<String, String> launch : List.of(OPEN_MPI, HYDRA)) {
      CommConfig config = read(with(launch, ours));

      assertThat(config.rank()).isEqualTo(read(launch).rank()).isPresent();
      assertThat(config.worldSize()).hasValue(4);
      assertThat(config.localRank()).isEqualTo(read(launch).localRank());
      assertThat(config.masterAddress()).contains("127.0.0.1");
      assertThat(config.masterPort()).hasValue(4711);
      assertThat(config.session()).contains("run-1");
      assertThat(config.options()).containsEntry("COMM_SESSION_HOSTED", "launcher");
    }
  }

  @Test
  void pmix_rankWithPmiSize_isTheLaunchNamedByItsNamespace() {
    CommConfig config = read(environment("PMIX_RANK=1 PMI_SIZE=2 PMIX_NAMESPACE=ns.1"));

    assertThat(config.launcher()).isEqualTo("pmi");
    assertThat(config.rank()).hasValue(1);
    assertThat(config.session()).contains("ns.1");
  }

  @Test
  void slurm_step_isTheLaunch() {
    CommConfig config = read(SRUN);

    assertThat(config.launcher()).isEqualTo("slurm");
    assertThat(config.rank()).hasValue(9);
    assertThat(config.worldSize()).hasValue(11);
    assertThat(config.localRank()).hasValue(1);
    assertThat(config.localWorldSize()).hasValue(3);
    assertThat(config.nodeRank()).hasValue(2);
    assertThat(config.masterAddress()).contains("node01");
    assertThat(config.masterPort().orElseThrow()).isBetween(20_000, 29_999);
    assertThat(config.masterPort()).isEqualTo(read(with(SRUN, "SLURM_PROCID=3")).masterPort());
    assertThat(config.masterPort()).isNotEqualTo(read(with(SRUN, "SLURM_STEP_ID=1")).masterPort());
    assertThat(config.session()).contains("4711.0");
  }

  /// As with `--mpi=pmi2`; what PMI says tells neither hosts nor where ranks meet.
  @Test
  void slurm_srunSpeaksPmi_isTheLaunch() {
    CommConfig config = read(with(SRUN, "PMI_RANK=9 PMI_SIZE=11 PMI_JOBID=4711.0 PMI_FD=5"));

    assertThat(config).isEqualTo(read(SRUN));
    assertThat(config.launcher()).isEqualTo("slurm");
  }

  /// Here srun has started the agents of mpiexec, as many as there are ranks.
  @Test
  void pmi_mpiexecInAStepOfSlurm_isTheLaunch() {
    String ranks = "PMI_RANK=9 PMI_SIZE=11 ";

    assertThat(read(with(SRUN, ranks + "MPI_LOCALRANKID=0")).launcher()).isEqualTo("pmi");
    assertThat(read(with(SRUN, ranks + "HYDI_CONTROL_FD=7")).launcher()).isEqualTo("pmi");
  }

  @Test
  void slurm_tasksOfTheJobNotTheStep_areNotTheLocalSize() {
    assertThat(
            read(with(without(SRUN, "SLURM_TASKS_PER_NODE"), "SLURM_NTASKS_PER_NODE=4"))
                .localWorldSize())
        .isEmpty();
    assertThat(
            read(with(
                    without(SRUN, "SLURM_TASKS_PER_NODE"),
                    "SLURM_NTASKS_PER_NODE=4 SLURM_STEP_NUM_TASKS=12"))
                .localWorldSize())
        .hasValue(4);
    assertThat(read(with(SRUN, "SLURM_TASKS_PER_NODE=64(x8)")).localWorldSize()).isEmpty();
    assertThat(
            read(with(SRUN, "SLURM_TASKS_PER_NODE=64(x8) SLURM_STEP_TASKS_PER_NODE=4(x2),3"))
                .localWorldSize())
        .hasValue(3);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "SLURM_PROCID=0",
        "SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_JOB_ID=4711",
        "SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_JOB_ID=4711 SLURM_STEP_ID=4294967291",
        "SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_JOB_ID=4711 SLURM_STEP_ID=4294967290",
        "SLURM_NTASKS=8 SLURM_JOB_ID=4711",
        "MASTER_ADDR=h MASTER_PORT=1",
        "LOCAL_RANK=0"
      })
  void foreignVariables_ofNoRank_areNoLaunch(String variables) {
    CommConfig config = read(environment(variables));

    assertThat(config.launcher()).isEqualTo("none");
    assertThat(config.launchVariables()).isEmpty();
    assertThat(config.rank()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "RANK=1 | RANK: '1' without WORLD_SIZE and MASTER_ADDR and MASTER_PORT",
        "WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1 | WORLD_SIZE: '2', MASTER_ADDR: 'h',",
        "RANK=1 WORLD_SIZE=2 | RANK: '1', WORLD_SIZE: '2' without MASTER_ADDR and MASTER_PORT",
        "OMPI_COMM_WORLD_RANK=1 | OMPI_COMM_WORLD_RANK: '1' without OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_SIZE=4 | OMPI_COMM_WORLD_SIZE: '4' without OMPI_COMM_WORLD_RANK",
        "PMI_RANK=0 | PMI_RANK: '0' without PMI_SIZE",
        "PMI_SIZE=2 | PMI_SIZE: '2' without PMI_RANK",
        "PMIX_RANK=0 PMIX_NAMESPACE=x | PMIX_RANK: '0' without PMI_SIZE",
        "JOB_COMPLETION_INDEX=3 HOSTNAME=job-3 | JOB_COMPLETION_INDEX: '3' without COMM_WORLD_SIZE",
        "SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_JOB_ID=7 | SLURM_PROCID: '0', SLURM_JOB_ID: '7' without"
            + " SLURM_NTASKS",
      })
  void foreignSet_half_isRefusedNamingWhatIsSetAndWhatIsMissing(String variables, String message) {
    assertRefused(
        environment(variables),
        message,
        "expected: all or none",
        "or COMM_RANK and COMM_WORLD_SIZE",
        "comm-cli run",
        "unset");
  }

  @Test
  void foreignSet_halfBesideACompleteOne_isIgnored() {
    assertThat(read(with(HYDRA, "OMPI_COMM_WORLD_RANK=1")).launcher()).isEqualTo("pmi");
    assertThat(read(environment("RANK=1 COMM_RANK=0 COMM_WORLD_SIZE=1")).rank()).hasValue(0);
  }

  @Test
  void kubernetes_fullHostName_givesTheAddress() {
    CommConfig config =
        read(
            environment(
                "JOB_COMPLETION_INDEX=3 COMM_WORLD_SIZE=4"
                    + " HOSTNAME=train-3.net.default.svc.cluster.local"));

    assertThat(config.launcher()).isEqualTo("kubernetes");
    assertThat(config.rank()).hasValue(3);
    assertThat(config.worldSize()).hasValue(4);
    assertThat(config.localRank()).hasValue(0);
    assertThat(config.localWorldSize()).hasValue(1);
    assertThat(config.masterAddress()).contains("train-0.net.default.svc.cluster.local");
    assertThat(config.masterPort()).hasValue(29500);
    assertThat(config.session()).contains("train");
  }

  @Test
  void kubernetes_shortHostName_needsOurAddress() {
    Map<String, String> pod =
        environment("JOB_COMPLETION_INDEX=3 COMM_WORLD_SIZE=4 HOSTNAME=train-3");

    assertThat(read(with(pod, "COMM_MASTER_ADDR=train-0.net")).masterAddress())
        .contains("train-0.net");
    assertRefused(
        pod, "HOSTNAME: 'train-3'", "COMM_MASTER_ADDR=train-0.<service>", "setHostnameAsFQDN");
  }

  @Test
  void kubernetes_launcherInsideAPod_isOurs() {
    CommConfig config =
        read(environment("JOB_COMPLETION_INDEX=3 HOSTNAME=j-3 COMM_RANK=1 COMM_WORLD_SIZE=2"));

    assertThat(config.launcher()).isEqualTo("comm4j");
    assertThat(config.rank()).hasValue(1);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "COMM_RANK=1 | COMM_RANK: '1' without COMM_WORLD_SIZE",
        "COMM_WORLD_SIZE=2 | COMM_WORLD_SIZE: '2' without COMM_RANK",
        "COMM_LOCAL_RANK=0 | COMM_LOCAL_RANK: '0' without COMM_RANK and COMM_WORLD_SIZE",
        "COMM_NODE_RANK=0 | COMM_NODE_RANK: '0' without COMM_RANK and COMM_WORLD_SIZE",
        "COMM_MASTER_ADDR=h | COMM_MASTER_ADDR: 'h' without COMM_RANK and COMM_WORLD_SIZE",
        "COMM_MASTER_PORT=1 | COMM_MASTER_PORT: '1' without COMM_RANK and COMM_WORLD_SIZE",
        "COMM_RANK=0 COMM_WORLD_SIZE=2 COMM_MASTER_PORT=1 | COMM_MASTER_PORT: '1' without"
            + " COMM_MASTER_ADDR",
      })
  void ours_half_isRefusedNamingTheVariables(String variables, String message) {
    assertRefused(environment(variables), message, "expected: all or none", "unset");
  }

  @Test
  void ours_halfBesideACompleteForeignSet_isRefused() {
    assertRefused(with(HYDRA, "COMM_RANK=3"), "COMM_RANK: '3' without COMM_WORLD_SIZE");
    assertRefused(with(HYDRA, "COMM_LOCAL_RANK=1"), "COMM_LOCAL_RANK: '1' without COMM_RANK");
  }

  @ParameterizedTest
  @ValueSource(strings = {"4", "-1", "NaN", "", " 1", "1.0", "+1", "0x1", "٣", "99999999999"})
  void rank_nonsense_isRefusedWithVariableValueRangeAndRemedy(String rank) {
    assertRefused(
        with(environment("COMM_WORLD_SIZE=4"), Map.of("COMM_RANK", rank)),
        "COMM_RANK: '" + rank + "'",
        "expected: ");
    assertRefused(with(HYDRA, Map.of("PMI_RANK", rank)), "PMI_RANK: '" + rank + "'", "expected: ");
    assertRefused(
        with(OPEN_MPI, Map.of("OMPI_COMM_WORLD_RANK", rank)), "OMPI_COMM_WORLD_RANK: '" + rank);
  }

  @Test
  void rank_beyondTheSize_namesBothVariables() {
    assertRefused(
        environment("COMM_RANK=4 COMM_WORLD_SIZE=4"),
        "COMM_RANK: '4'",
        "0..3",
        "COMM_WORLD_SIZE is 4",
        "comm-cli run");
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "-3", "many", "", "2147483648"})
  void size_nonsense_isRefused(String size) {
    assertRefused(
        with(environment("COMM_RANK=0"), Map.of("COMM_WORLD_SIZE", size)),
        "COMM_WORLD_SIZE: '" + size + "'",
        "expected: ");
  }

  @Test
  void localRank_beyondTheLocalSize_isRefused() {
    assertRefused(
        environment("COMM_RANK=0 COMM_WORLD_SIZE=4 COMM_LOCAL_RANK=2 COMM_LOCAL_WORLD_SIZE=2"),
        "COMM_LOCAL_RANK: '2'",
        "0..1");
    assertRefused(
        environment("COMM_RANK=0 COMM_WORLD_SIZE=4 COMM_LOCAL_WORLD_SIZE=5"),
        "COMM_LOCAL_WORLD_SIZE: '5'",
        "1..4");
  }

  @Test
  void sets_thatAgree_firstOneIsTheLaunch() {
    Map<String, String> both = with(HYDRA, "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4");

    assertThat(read(both).launcher()).isEqualTo("openmpi");
    assertThat(read(with(both, "COMM_RANK=3 COMM_WORLD_SIZE=4")).launcher()).isEqualTo("comm4j");
  }

  @Test
  void sets_thatDisagree_areRefusedNamingBoth() {
    assertRefused(
        with(OPEN_MPI, "COMM_RANK=1 COMM_WORLD_SIZE=4"),
        "COMM_RANK is 1 but OMPI_COMM_WORLD_RANK is 2",
        "comm4j says rank 1 of 4",
        "openmpi says rank 2 of 4",
        "unset");
    assertRefused(
        with(OPEN_MPI, "COMM_RANK=2 COMM_WORLD_SIZE=3"),
        "COMM_WORLD_SIZE is 3 but OMPI_COMM_WORLD_SIZE is 4");
    assertRefused(
        with(OPEN_MPI, "RANK=1 WORLD_SIZE=4 MASTER_ADDR=h MASTER_PORT=1"),
        "RANK is 1 but OMPI_COMM_WORLD_RANK is 2");
    assertRefused(
        with(SRUN, "COMM_RANK=8 COMM_WORLD_SIZE=11"), "COMM_RANK is 8 but SLURM_PROCID is 9");
    assertRefused(with(SRUN, "PMI_RANK=8 PMI_SIZE=11"), "PMI_RANK is 8 but SLURM_PROCID is 9");
    assertRefused(with(SRUN, TORCHRUN), "RANK is 5 but SLURM_PROCID is 9");
  }

  @Test
  void launcher_startedByAnother_isTheLaunch() {
    Map<String, String> agents = with(SRUN, "SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1");
    Map<String, String> shell = with(SRUN, "SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0");
    shell = without(without(shell, "SLURM_NODEID"), "SLURM_LOCALID");
    agents = without(without(agents, "SLURM_NODEID"), "SLURM_LOCALID");

    assertThat(read(with(agents, TORCHRUN)).rank()).hasValue(5);
    assertThat(read(with(agents, OPEN_MPI)).rank()).hasValue(2);
    assertThat(read(with(agents, HYDRA)).rank()).hasValue(3);
    assertThat(read(with(shell, "COMM_RANK=3 COMM_WORLD_SIZE=4")).rank()).hasValue(3);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "node[01-04,07] | node01",
        "node[01-04,07],other | node01",
        "n1,n2 | n1",
        "login-1.site.org | login-1.site.org",
        "a[7,9]b[2-3]-ib | a7b2-ib",
        "n[10] | n10",
      })
  void slurmNodes_firstHost(String list, String host) {
    assertThat(SlurmLists.firstHost("SLURM_JOB_NODELIST", list)).isEqualTo(host);
  }

  @ParameterizedTest
  @ValueSource(strings = {"node[", "node[01-", "[a-b]", ",n1", "n1 n2", "node[1-2]]", "a;b", "n[]"})
  void slurmNodes_nonsense_isRefused(String list) {
    assertRefused(
        with(SRUN, Map.of("SLURM_JOB_NODELIST", list)),
        "SLURM_JOB_NODELIST: '" + list + "'",
        "node[01-04,07]",
        "COMM_MASTER_ADDR");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {"4(x2),3 | 4 4 3", "16 | 16", "1,2,3 | 1 2 3", "2(x1) | 2"})
  void slurmTasks_perNode(String list, String tasks) {
    int[] expected = Arrays.stream(tasks.split(" ", -1)).mapToInt(Integer::parseInt).toArray();

    assertThat(SlurmLists.tasksPerNode("SLURM_TASKS_PER_NODE", list)).isEqualTo(expected);
  }

  @ParameterizedTest
  @ValueSource(strings = {"4(x2", "4x2", "", "4,,3", "-1", "4(x9999999)", "(x2)"})
  void slurmTasks_nonsense_isRefused(String list) {
    assertRefused(
        with(SRUN, Map.of("SLURM_TASKS_PER_NODE", list)), "SLURM_TASKS_PER_NODE: '" + list + "'");
  }

  private static CommConfig read(Map<String, String> environment) {
    return CommConfig.fromEnvironment(environment);
  }

  private static void assertRefused(Map<String, String> environment, String... parts) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> CommConfig.fromEnvironment(environment))
        .satisfies(e -> assertThat(e.getMessage()).contains(parts));
  }

  private static Map<String, String> environment(String variables) {
    Map<String, String> environment = new TreeMap<>();
    for (String variable : variables.split(" ", -1)) {
      int equals = variable.indexOf('=');
      environment.put(variable.substring(0, equals), variable.substring(equals + 1));
    }
    return environment;
  }

  private static Map<String, String> with(Map<String, String> environment, String variables) {
    return with(environment, environment(variables));
  }

  private static Map<String, String> with(
      Map<String, String> environment, Map<String, String> more) {
    Map<String, String> both = new TreeMap<>(environment);
    both.putAll(more);
    return both;
  }

  private static Map<String, String> without(Map<String, String> environment, String variable) {
    Map<String, String> rest = new TreeMap<>(environment);
    rest.remove(variable);
    return rest;
  }
}
