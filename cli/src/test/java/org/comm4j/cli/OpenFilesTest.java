package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.comm4j.core.session.DefaultSessionFactory;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Where a process may open no more files, whatever needs one says so in time, names the limit and
/// what to do, and the process can go on; so do the ranks that are there.
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@EnabledOnOs(OS.LINUX)
class OpenFilesTest {
  /// A rank's, or its driver's, as errors name it.
  private static final Pattern FOLDER =
      Pattern.compile("/dev/shm/comm4j-(aeron-[0-9]+|[0-9]+/[0-9a-f]{32})");

  /// Where a rank meets others: it connects, or it listens.
  enum Place {
    LAUNCHER,
    ITS_OWN;

    Map<String, String> settings() throws IOException {
      InetSocketAddress free = FreePlace.any();
      String address = free.getAddress().getHostAddress();
      String port = Integer.toString(free.getPort());
      return switch (this) {
        case LAUNCHER ->
            Map.of(
                DefaultSessionFactory.HOSTED,
                "launcher",
                "COMM_MASTER_ADDR",
                address,
                "COMM_MASTER_PORT",
                port);
        case ITS_OWN -> Map.of("COMM_MASTER_ADDR", address, "COMM_MASTER_PORT", port);
      };
    }
  }

  @ParameterizedTest
  @CsvSource({"shm, ITS_OWN", "shm, LAUNCHER"})
  void noMoreFiles_everythingSaysSoUntilThereAreEnough(String backend, Place place)
      throws Exception {
    List<String> lines = linesOf(backend, place);
    assertThat(lines).filteredOn(line -> line.startsWith("join")).hasSizeGreaterThan(2);
    assertThat(lines).filteredOn(line -> line.startsWith("open")).hasSizeGreaterThan(3);
    assertThat(lines).filteredOn(line -> line.startsWith("group")).hasSize(2);
    assertThat(lines)
        .filteredOn(line -> !line.contains(RankWithoutFiles.ENOUGH))
        .hasSize(lines.size() - 2)
        .allMatch(line -> line.contains("ulimit -n") || line.equals("group: works"));
    assertThat(lines)
        .flatMap(line -> FOLDER.matcher(line).results().map(MatchResult::group).toList())
        .isNotEmpty()
        .allSatisfy(folder -> assertThat(Path.of(folder)).doesNotExist());
  }

  private static List<String> linesOf(String backend, Place place) throws Exception {
    List<String> command =
        new ArrayList<>(List.of("bash", "-c", "ulimit -n 256 && exec \"$0\" \"$@\""));
    List<String> java = Launches.java(RankWithoutFiles.class);
    java.addAll(1, List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(java);
    var builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD);
    Map<String, String> environment = builder.environment();
    environment.keySet().removeIf(name -> name.startsWith("COMM_"));
    environment.putAll(place.settings());
    environment.put("COMM_BACKEND", backend);
    environment.put("COMM_RANK", "0");
    environment.put("COMM_WORLD_SIZE", "2");
    environment.put("COMM_SESSION", "files-" + UUID.randomUUID());
    environment.put("COMM_JOIN_TIMEOUT", "500ms");
    Process process = builder.start();
    try (BufferedReader out = process.inputReader()) {
      List<String> lines = out.lines().toList();
      assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(process.exitValue()).as("%s", lines).isZero();
      return lines;
    } finally {
      process.destroyForcibly();
    }
  }
}
