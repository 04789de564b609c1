package org.comm4j.backend.mpi;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.RankLauncher;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.core.session.SessionServer;
import org.junit.jupiter.api.Assumptions;

/// Ranks of [MpiRank], started by an MPI's launcher; this process hosts their session.
final class MpiTestJob implements AutoCloseable {
  private static final int MOST_LINES = 1_000;
  private static final long DUMP_SECONDS = 3;

  /// Lets a rank write to a file itself: MPICH's launcher drops what it has not read when a job is
  /// aborted.
  private static final String TO_FILE = "exec \"$@\" >>\"$0\" 2>&1";

  /// What launchers and we ourselves say of ranks, which these ones must not see.
  private static final Set<String> OF_LAUNCHES =
      Set.of("COMM_", "OMPI_COMM_", "PMI_", "PMIX_", "HYDI_", "MPI_LOCAL", "SLURM_");

  private final SessionServer server;
  private final Process process;
  private final Path output;

  private MpiTestJob(SessionServer server, Process process, Path output) {
    this.server = server;
    this.process = process;
    this.output = output;
  }

  /// The library with this interface and its launcher; without one of them the test is skipped.
  static MpiLibrary library(Abi abi) {
    String name = abi == Abi.MPICH ? "mpich" : "openmpi-bin";
    Optional<MpiLibrary> found =
        MpiLibraries.here().find(CommConfig.builder().build()).stream()
            .filter(each -> each.abi() == abi)
            .findFirst();
    Assumptions.assumeTrue(found.isPresent(), "no library of this MPI found; install " + name);
    try {
      launcher(found.orElseThrow(), 1);
    } catch (BackendUnavailableException e) {
      Assumptions.abort(e.getMessage());
    }
    return found.orElseThrow();
  }

  static RankLauncher launcher(MpiLibrary library, int ranks) {
    return MpiLauncher.here(library, CommConfig.builder().build()).starting(ranks);
  }

  /// Starts ranks.
  ///
  /// @param launcher `ranks` of them
  /// @param settings on top of the launcher's environment
  /// @param folder where ranks run
  /// @param arguments of [MpiRank]
  static MpiTestJob start(
      RankLauncher launcher,
      int ranks,
      Map<String, String> settings,
      Path folder,
      String... arguments)
      throws IOException {
    Path output = output(folder);
    List<String> command = new ArrayList<>(launcher.command());
    command.addAll(List.of("sh", "-c", TO_FILE, output.toString()));
    command.addAll(rank(folder, arguments));
    Map<String, String> environment = new HashMap<>(launcher.environment());
    environment.putAll(settings);
    return start(command, ranks, environment, folder, output);
  }

  /// The command of a rank.
  static List<String> rank(Path folder, String... arguments) {
    List<String> heap =
        switch (arguments[0]) {
          case MpiRank.ARRAYS ->
              List.of("-XX:+Use%sGC".formatted(arguments[1]), "-Xmx32m"); // often full
          case "closed-sender" -> List.of("-XX:+UseG1GC"); // which lends arrays
          case "pins" -> List.of("-XX:+UseG1GC", arguments[1]);
          default -> List.of("-XX:+UseSerialGC");
        };
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-ea",
                "-XX:ErrorFile=" + folder.resolve("hs_err_%p.log"),
                "--enable-native-access=ALL-UNNAMED",
                "--add-modules=jdk.incubator.vector",
                // the ranks share few cores, and compiling well would be most of their work
                "-XX:TieredStopAtLevel=1",
                "-cp",
                classPath(),
                MpiRank.class.getName()));
    command.addAll(1, heap);
    command.addAll(List.of(arguments));
    return command;
  }

  static MpiTestJob start(
      List<String> command, int ranks, Map<String, String> environment, Path folder)
      throws IOException {
    return start(command, ranks, environment, folder, output(folder));
  }

  private static Path output(Path folder) throws IOException {
    return Files.createTempFile(folder, "output", ".txt");
  }

  private static MpiTestJob start(
      List<String> command, int ranks, Map<String, String> environment, Path folder, Path output)
      throws IOException {
    var builder =
        new ProcessBuilder(command)
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(output.toFile()))
            .redirectInput(new File("/dev/null"));
    var server =
        SessionServer.start(
            InetAddress.getLoopbackAddress(),
            0,
            "test",
            ranks,
            Authenticator.NONE,
            new SessionServer.Listener() {});
    builder
        .environment()
        .keySet()
        .removeIf(name -> OF_LAUNCHES.stream().anyMatch(name::startsWith));
    builder
        .environment()
        .putAll(
            Map.of(
                "COMM_BACKEND",
                "mpi",
                "COMM_MASTER_ADDR",
                InetAddress.getLoopbackAddress().getHostAddress(),
                "COMM_MASTER_PORT",
                Integer.toString(server.port()),
                "COMM_SESSION",
                "test",
                DefaultSessionFactory.HOSTED,
                "launcher"));
    builder.environment().putAll(environment);
    try {
      return new MpiTestJob(server, builder.start(), output);
    } catch (IOException e) {
      server.close();
      throw e;
    }
  }

  /// Where these tests and what they need are, be they class path or modules.
  private static String classPath() {
    URI own = URI.create(String.valueOf(MpiRank.class.getResource("MpiRank.class")));
    String root = own.getPath().replace("org/comm4j/backend/mpi/MpiRank.class", "");
    return Stream.of(
            root,
            System.getProperty("java.class.path", ""),
            System.getProperty("jdk.module.path", ""))
        .filter(path -> !path.isEmpty())
        .collect(Collectors.joining(File.pathSeparator));
  }

  /// Waits for the end of the launcher.
  ///
  /// @return its exit code
  int await(Duration most) throws InterruptedException, IOException {
    if (process.waitFor(most.toSeconds(), TimeUnit.SECONDS)) {
      return process.exitValue();
    }
    dumpStacks();
    throw new AssertionError("still running after %s:%n%s".formatted(most, output()));
  }

  /// Makes every JVM write its threads' stacks to the output.
  private void dumpStacks() throws IOException, InterruptedException {
    for (ProcessHandle each : process.descendants().toList()) {
      if (each.info().command().orElse("").endsWith("java")) {
        new ProcessBuilder("kill", "-QUIT", Long.toString(each.pid())).start().waitFor();
      }
    }
    var _ = process.waitFor(DUMP_SECONDS, TimeUnit.SECONDS); // they write it on their own threads
  }

  /// The last lines that ranks and launcher have written, to both streams.
  String output() throws IOException {
    List<String> lines = Files.readAllLines(output);
    return String.join("\n", lines.subList(Math.max(0, lines.size() - MOST_LINES), lines.size()));
  }

  boolean isAlive() {
    return process.isAlive();
  }

  /// Ends what still runs.
  @Override
  public void close() {
    List<ProcessHandle> ranks = process.descendants().toList();
    process.destroyForcibly();
    ranks.forEach(ProcessHandle::destroyForcibly);
    server.close();
  }
}
