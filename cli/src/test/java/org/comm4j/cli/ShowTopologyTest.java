package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// `comm-cli topology`, as a process of its own.
@Timeout(120)
class ShowTopologyTest {
  /// Ranks that a launcher has started are the ranks, and rank 0 prints.
  @Test
  void topology_startedByALauncher_joinsAsItsRank() throws Exception {
    List<String> command = new ArrayList<>(List.of("run", "-n", "2", "--backend", "shm", "--"));
    command.addAll(Launches.java(Main.class));
    command.add("topology");
    var done = Launches.run(command.toArray(String[]::new));
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out().lines())
        .contains("[0] 2 ranks on backend shm, as many on each host")
        .noneMatch(line -> line.startsWith("[1]"));
    command.addAll(List.of("-n", "4"));
    done = Launches.run(command.toArray(String[]::new));
    assertThat(done.err()).contains("-n: 4 (expected: 2, as many as comm4j has started)");
  }

  /// It is for launches of several hosts.
  @Test
  void topology_nameOfALaunchAlone_startsItsRanks() throws Exception {
    try (var launch =
        Launches.start(Map.of("COMM_SESSION", "x7"), "topology", "-n", "1", "--backend", "local")) {
      var done = launch.await();
      assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    }
  }

  @Test
  void topology_json_hasAllOfIt() throws Exception {
    JsonObject all = json();
    assertThat(all.keySet())
        .containsExactly(
            "backend", "ranks", "homogeneous", "scheduler", "libraries", "hosts", "reached");
    assertThat(all.get("backend").getAsString()).isEqualTo("local");
    assertThat(all.get("ranks").getAsInt()).isEqualTo(2);
    assertThat(all.get("homogeneous").getAsBoolean()).isTrue();
    assertThat(all.getAsJsonArray("reached")).isEmpty(); // no devices
    JsonObject host = all.getAsJsonArray("hosts").get(0).getAsJsonObject();
    assertThat(host.get("id").getAsString()).doesNotContain("…");
    assertThat(host.get("ranks")).hasToString("[0,1]");
  }

  @Test
  void topology_table_isShortAndSaysWhatIsKnown() throws Exception {
    JsonObject host = json().getAsJsonArray("hosts").get(0).getAsJsonObject();
    int most = 80 + host.get("host").getAsString().length(); // which is not ours to shorten
    var done = Launches.run("topology", "-n", "2", "--backend", "local");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    assertThat(done.out().lines()).allMatch(line -> line.length() < most);
    assertThat(done.out()).contains("…").doesNotContain("started by none");
  }

  private static JsonObject json() throws Exception {
    var done = Launches.run("topology", "-n", "2", "--backend", "local", "--format", "json");
    assertThat(done.code()).as(done.err()).isEqualTo(ExitCode.FINE);
    return JsonParser.parseString(done.out()).getAsJsonObject();
  }
}
