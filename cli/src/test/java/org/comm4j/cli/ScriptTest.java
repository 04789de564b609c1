package org.comm4j.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// What the scripts do around Maven and the JVM: in a checkout with nothing in it but them, where
/// Maven writes a few files and the JVM says what it was called with.
@EnabledOnOs(value = OS.LINUX, disabledReason = "the scripts are for Linux")
@Timeout(120)
class ScriptTest {
  private static final Path PROJECT = Path.of("..");

  @TempDir Path folder;
  private Path checkout;

  @BeforeEach
  void makeCheckout() throws Exception {
    checkout = Files.createDirectory(folder.resolve("a checkout"));
    Files.createDirectory(checkout.resolve(".ci"));
    for (String file : List.of("comm-cli", "comm4j.args", ".ci/tools.sh")) {
      Files.copy(PROJECT.resolve(file), checkout.resolve(file));
    }
    script(checkout.resolve("comm-cli"), Files.readString(PROJECT.resolve("comm-cli")));
    Path jdk = folder.resolve("jdk");
    script(
        jdk.resolve("bin/java"),
        """
        #!/bin/sh
        echo "WARNING: Using incubator modules: jdk.incubator.vector" >&2
        echo "of the JVM" >&2
        for each; do echo "<$each>"; done
        exit 3
        """);
    script(jdk.resolve("bin/javac"), "");
    Files.writeString(jdk.resolve("release"), "JAVA_VERSION=\"25.0.1\"\n");
    script(
        folder.resolve("bin/mvn"),
        """
        #!/bin/sh
        [ -z "$FAILS" ] || { echo "no such symbol"; exit 1; }
        mkdir -p cli/target/quick/lib
        touch cli/target/quick/lib/api.jar "cli/target/quick/comm4j-cli-$VERSION.jar"
        """);
  }

  private static void script(Path file, String text) throws IOException {
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  private Commands.Done run(Path script, String version, String... arguments) throws Exception {
    return run(List.of(), script, Map.of("VERSION", version), arguments);
  }

  private Commands.Done run(
      List<String> by, Path script, Map<String, String> environment, String... arguments)
      throws Exception {
    List<String> command = new ArrayList<>(List.of("timeout", "60"));
    command.addAll(by);
    command.add(script.toString());
    command.addAll(List.of(arguments));
    var builder = new ProcessBuilder(command).directory(folder.toFile());
    builder.environment().put("JAVA_HOME", folder.resolve("jdk").toString());
    builder.environment().put("PATH", folder.resolve("bin") + ":" + System.getenv("PATH"));
    builder.environment().putAll(environment);
    builder.redirectOutput(folder.resolve("out").toFile());
    Process process = builder.start();
    // to its end: what goes through the filter may come after the script has ended
    String err = new String(process.getErrorStream().readAllBytes(), UTF_8);
    return new Commands.Done(process.waitFor(), Files.readString(folder.resolve("out")), err);
  }

  /// The jars that the JVM has got.
  private static List<String> jars(Commands.Done done) throws IOException {
    try (Stream<Path> all = Files.list(app(done))) {
      return all.map(jar -> jar.getFileName().toString()).sorted().toList();
    }
  }

  private static Path app(Commands.Done done) {
    String classPath =
        done.out().lines().filter(line -> line.endsWith("/*>")).findFirst().orElseThrow();
    return Path.of(classPath.substring(1, classPath.length() - "/*>".length()));
  }

  @Test
  void start_firstTime_buildsAndHandsOnWhatItWasGiven() throws Exception {
    Path link = Files.createSymbolicLink(folder.resolve("link"), checkout.resolve("comm-cli"));
    var done = run(link, "1", "run", "a b", "", "*");
    assertThat(done.code()).as(done.err()).isEqualTo(3);
    assertThat(done.out()).endsWith("<org.comm4j.cli.Main>\n<run>\n<a b>\n<>\n<*>\n");
    assertThat(done.err()).contains("comm-cli: built in", "of the JVM").doesNotContain("incubator");
    assertThat(app(done).startsWith(checkout)).isTrue();
    assertThat(jars(done)).containsExactly("api.jar", "comm4j-cli-1.jar");
  }

  @Test
  void start_nothingIsNewer_buildsNothing() throws Exception {
    Path first = app(run(checkout.resolve("comm-cli"), "1"));
    var done = run(checkout.resolve("comm-cli"), "1");
    assertThat(done.err()).isEqualTo("of the JVM\n");
    assertThat(app(done)).isEqualTo(first);
  }

  @Test
  void start_anotherVersion_runsThatOneAlone() throws Exception {
    Path first = app(run(checkout.resolve("comm-cli"), "1"));
    Files.setLastModifiedTime(
        checkout.resolve("comm4j.args"), FileTime.from(Instant.now().plusSeconds(60)));
    var done = run(checkout.resolve("comm-cli"), "2");
    assertThat(app(done)).isNotEqualTo(first);
    assertThat(jars(done)).containsExactly("api.jar", "comm4j-cli-2.jar");
  }

  /// What others have built others may change.
  @Test
  void start_inACopyOfACheckout_runsItsOwn() throws Exception {
    run(checkout.resolve("comm-cli"), "1");
    Path copy = folder.resolve("copy");
    var copied = new ProcessBuilder("cp", "-a", checkout.toString(), copy.toString()).start();
    assertThat(copied.waitFor()).isZero();
    assertThat(app(run(copy.resolve("comm-cli"), "1")).startsWith(copy)).isTrue();
  }

  /// As where it is mounted elsewhere, perhaps without the right to write.
  @Test
  void start_checkoutHasMoved_buildsNothing() throws Exception {
    run(checkout.resolve("comm-cli"), "1");
    Path moved = Files.move(checkout, folder.resolve("moved"));
    var done = run(moved.resolve("comm-cli"), "1");
    assertThat(done.err()).isEqualTo("of the JVM\n");
    assertThat(app(done).startsWith(moved)).isTrue();
  }

  @Test
  void start_buildFails_showsWhy() throws Exception {
    var done = run(List.of(), checkout.resolve("comm-cli"), Map.of("VERSION", "1", "FAILS", "yes"));
    assertThat(done.code()).isEqualTo(ExitCode.USAGE);
    assertThat(done.out()).isEmpty();
    assertThat(done.err()).contains("no such symbol", "the build failed; its log is above");
  }

  /// As in a checkout of another user: root may write everywhere, but into no folder.
  @Test
  void start_nothingCanBeWritten_saysSo() throws Exception {
    Files.createDirectories(checkout.resolve("cli/target/quick/app/lock"));
    var done = run(checkout.resolve("comm-cli"), "1");
    assertThat(done.code()).isEqualTo(ExitCode.USAGE);
    assertThat(done.err())
        .startsWith("comm-cli: " + checkout)
        .contains("can't be written to")
        .hasLineCount(1);
  }

  @Test
  void start_pathWithAColon_isRefused() throws Exception {
    Path moved = Files.move(checkout, folder.resolve("a:b"));
    var done = run(moved.resolve("comm-cli"), "1");
    assertThat(done.code()).isEqualTo(ExitCode.USAGE);
    assertThat(done.err()).contains("a:b' can't be on a class path", "without ':'");
  }

  /// Else the first file that the JVM opens would be standard input.
  @Test
  void start_inputIsClosed_isEmptyInstead() throws Exception {
    script(folder.resolve("jdk/bin/java"), "#!/bin/sh\nread -r line; echo \"$? <$line>\"\n");
    var done =
        run(
            List.of("sh", "-c", "exec \"$@\" <&-", "sh"),
            checkout.resolve("comm-cli"),
            Map.of("VERSION", "1"));
    assertThat(done.out()).isEqualTo("1 <>\n");
  }

  @Test
  void verify_notAllTestsPass_saysWhichAndWhy() throws Exception {
    Path verify = checkout.resolve("verify");
    script(verify, Files.readString(PROJECT.resolve("verify")));
    script(folder.resolve("bin/mpirun.openmpi"), "#!/bin/sh\necho Open MPI\n");
    script(folder.resolve("bin/mpirun.mpich"), "#!/bin/sh\necho MPICH\n");
    script(
        folder.resolve("bin/mvn"),
        """
        #!/bin/sh
        echo "<$*>"
        mkdir -p api/target/surefire-reports
        cat >api/target/surefire-reports/TEST-a.xml <<'END'
        <testsuite name="a" tests="3" errors="0" skipped="1" failures="1">
          <testcase name="one" classname="a.A"/>
          <testcase name="two" classname="a.A">
            <failure message="expected: &lt;1&gt;" type="x"/>
          </testcase>
          <testcase name="three" classname="a.A">
            <skipped message="there is no GPU"/>
          </testcase>
        </testsuite>
        END
        touch -d "1 hour" api/target/surefire-reports/TEST-a.xml
        echo "[INFO] BUILD FAILURE"
        echo "[INFO] the end"
        exit 1
        """);
    var done = run(verify, "1", "-pl", "api");
    assertThat(done.code()).isEqualTo(1);
    assertThat(done.out())
        .isEqualTo(
            """
            <-B -ntp -fae verify -Dstyle.color=never -Dcomm4j.full=false -pl api>
            [ERROR] Failed a.A.two: expected: <1>
            [INFO] Skipped a.A.three: there is no GPU
            [INFO] All modules: Tests run: 3, Failures: 1, Errors: 0, Skipped: 1
            [INFO] BUILD FAILURE
            [INFO] the end
            """);
  }
}
