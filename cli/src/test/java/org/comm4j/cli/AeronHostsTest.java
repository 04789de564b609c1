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
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// `aeron` keeps the contract between hosts: here network namespaces.
@Timeout(400)
final class AeronHostsTest {
  private static final Duration BOUND = Duration.ofMinutes(5);

  @TempDir private Path folder;

  /// Three hosts, of which the second has two ranks: these share memory, or go by UDP too.
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  @Execution(ExecutionMode.CONCURRENT) // much of it waits for deadlines
  void verify_threeHosts_keepsEveryRule(boolean shared) throws Exception {
    assumeTrue(
        NetworkNamespaces.canBeMade(),
        "network namespaces need root and the command ip (iproute2)");
    Path secret = Files.writeString(folder.resolve("secret"), "0123456789abcdef0123456789abcdef\n");
    Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("rw-------"));
    Map<String, String> environment =
        Map.of(
            "COMM_SECRET_FILE",
            secret.toString(),
            "COMM_TIMEOUT",
            "100s", // rules that wait for it are not run: they take long, and hosts don't matter
            "COMM_AERON_SHARED",
            Boolean.toString(shared));
    List<Launches> launches = new ArrayList<>();
    try (var hosts = NetworkNamespaces.make(3)) {
      try {
        for (int host = 0; host < 3; host++) {
          launches.add(Launches.start(hosts.in(host), environment, arguments(hosts, host, shared)));
        }
        Commands.Done first = launches.getFirst().await(BOUND);
        assertThat(first.code()).as(first.out() + first.err()).isEqualTo(ExitCode.FINE);
        assertThat(first.out()).contains(" 0 failed, 0 declared, ");
        assertThat(first.out().lines().filter(line -> line.startsWith("[0] S8 ")))
            .singleElement() // a rule about shared memory
            .asString()
            .contains(shared ? "passed" : "not run");
      } finally {
        launches.forEach(Launches::close);
      }
    }
  }

  private static String[] arguments(NetworkNamespaces hosts, int host, boolean shared) {
    List<String> arguments =
        new ArrayList<>(
            List.of(
                "run",
                "--nnodes",
                "3",
                "--master",
                hosts.address(0),
                "--backend",
                "aeron",
                "-n",
                host == 1 ? "2" : "1",
                "--"));
    List<String> java = new ArrayList<>(Launches.java(Main.class));
    if (!shared) { // messages are the same
      java.add(1, "-Dcomm4j.check=.*(anyArguments|[FGL]\\d|O[1-5]\\b|S8).*");
    }
    arguments.addAll(java);
    arguments.addAll(List.of("verify", "--backend", "aeron", "--seed", "7"));
    return arguments.toArray(String[]::new);
  }
}
