package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// `mpi` between hosts that a user's own `mpirun` starts ranks on, and nothing else tells them
/// where to meet. The hosts are namespaces, with a name, a network and shared memory of their own.
@Timeout(200)
final class MpiHostsTest {
  private static final Duration BOUND = Duration.ofSeconds(150);

  @TempDir private Path folder;

  /// Two hosts, of which the second has two ranks.
  @ParameterizedTest
  @ValueSource(strings = {"mpirun.openmpi", "mpiexec.mpich"})
  void verify_twoHosts_ranksMeetAndKeepRules(String launcher) throws Exception {
    assumeTrue(
        NetworkNamespaces.canBeMade(),
        "network namespaces need root and the command ip (iproute2)");
    assumeTrue(Binding.isProgram(launcher, System.getenv("PATH")), "there is no " + launcher);
    try (var hosts = NetworkNamespaces.make(2)) {
      Path enter = enter(hosts);
      Path agent = agent(enter);
      List<String> onFirst = new ArrayList<>();
      onFirst.addAll(List.of(enter.toString(), hosts.address(0), launcher));
      onFirst.addAll(launcher.contains("open") ? openMpi(hosts, agent) : mpich(hosts, agent));
      assertThat(run(onFirst, "topology").out())
          .contains("3 ranks on backend mpi, not as many on each host");
      assertThat(run(onFirst, "verify", "--seed", "7").out())
          .contains("mpi on 3 ranks", " 0 failed, ");
    }
  }

  private static Commands.Done run(List<String> by, String... arguments) throws Exception {
    Map<String, String> environment =
        Map.of(
            "COMM_BACKEND",
            "mpi",
            "COMM_TIMEOUT",
            "100s", // rules that wait for it are not run: they take long, and hosts don't matter
            "JDK_JAVA_OPTIONS", // that hosts matter for: groups, memory of a host, bits, life cycle
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dcomm4j.check=.*[BGLS]\\d.*",
            "COMM_MPI_WAIT",
            "test", // ranks that spin would take the processors from each other
            "OMPI_ALLOW_RUN_AS_ROOT",
            "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
            "1");
    try (var launch = Launches.start(by, environment, arguments)) {
      Commands.Done done = launch.await(BOUND);
      assertThat(done.code()).as(done.out() + done.err()).isEqualTo(ExitCode.FINE);
      return done;
    }
  }

  private static List<String> openMpi(NetworkNamespaces hosts, Path agent) {
    return List.of(
        "--mca plm rsh --mca plm_rsh_agent %s --mca oob_tcp_if_include eth --mca btl_tcp_if_include eth --mca pml ob1 --mca btl self,vader,tcp -x COMM_BACKEND -x COMM_TIMEOUT -x COMM_MPI_WAIT -x JDK_JAVA_OPTIONS --host %s:1,%s:2 -n 3"
            .formatted(agent, hosts.address(0), hosts.address(1))
            .split(" "));
  }

  private static List<String> mpich(NetworkNamespaces hosts, Path agent) {
    return List.of(
        "-launcher ssh -launcher-exec %s -iface eth -hosts %s:1,%s:2 -n 3"
            .formatted(agent, hosts.address(0), hosts.address(1))
            .split(" "));
  }

  /// Runs a command on a host: the address of that, then the command.
  private Path enter(NetworkNamespaces hosts) throws Exception {
    return script(
        "enter",
        """
        host="$1"
        shift
        case "$host" in
        %s) in="%s" ;;
        *) in="%s" ;;
        esac
        exec $in unshare --uts --ipc --mount \\
          sh -c 'mount -t tmpfs tmpfs /dev/shm && hostname "$0" && exec "$@"' "$host" "$@"
        """
            .formatted(
                hosts.address(0), String.join(" ", hosts.in(0)), String.join(" ", hosts.in(1))));
  }

  /// What launchers call instead of `ssh`: options, a host, a command line. As there, the command
  /// has none of the caller's environment.
  private Path agent(Path enter) throws Exception {
    return script(
        "agent",
        """
        while [ "${1#-}" != "$1" ]; do shift; done
        host="$1"
        shift
        exec env -i PATH="$PATH" HOME="$HOME" %s "$host" sh -c "$*"
        """
            .formatted(enter));
  }

  private Path script(String name, String lines) throws Exception {
    Path file = Files.writeString(folder.resolve(name), "#!/bin/sh\n" + lines);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"));
    return file;
  }
}
