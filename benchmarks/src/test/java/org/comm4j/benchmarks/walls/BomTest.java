package org.comm4j.benchmarks.walls;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/// The list of artifacts for users, which has no parent.
class BomTest {
  /// What Maven runs for a module that has nothing but a pom.
  private static final List<String> LIFECYCLE =
      List.of("maven-clean-plugin", "maven-deploy-plugin", "maven-install-plugin");

  private static final Pattern PLUGIN =
      Pattern.compile("<plugin>\\s*<artifactId>([^<]+)</artifactId>\\s*<version>([^<]+)</version>");

  @Test
  void plugins_ofTheLifecycle_haveTheVersionsOfOtherModules() throws Exception {
    Map<String, String> wanted = versions(Path.of("../pom.xml"));
    wanted.keySet().retainAll(LIFECYCLE);
    assertThat(wanted).containsOnlyKeys(LIFECYCLE);
    assertThat(versions(Path.of("../bom/pom.xml"))).isEqualTo(wanted);
  }

  private static Map<String, String> versions(Path pom) throws Exception {
    Map<String, String> versions = new TreeMap<>();
    Matcher plugin = PLUGIN.matcher(Files.readString(pom));
    while (plugin.find()) {
      versions.put(plugin.group(1), plugin.group(2));
    }
    return versions;
  }
}
