package org.comm4j.cli;

import java.io.File;
import java.io.IOException;
import java.io.StringWriter;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.comm4j.core.session.OwnFolder;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// Runs a program as n ranks on this host, or on this one and others.
@Command(
    name = "run",
    mixinStandardHelpOptions = true,
    modelTransformer = RankOptions.class,
    description = {
      "Run a program as n ranks on this host, or as the ranks of several hosts.",
      "",
      "What follows the program are its own arguments.",
      "",
      "JDK_JAVA_OPTIONS in the environment has more options for the JVMs of all ranks, and for comm-cli's"
          + " own, for example JDK_JAVA_OPTIONS=-Xmx4g comm-cli run ...",
      "",
      "A .java file is compiled once. A jar gets the JVM's flags through JDK_JAVA_OPTIONS and uses the"
          + " comm4j that is in it or in its manifest's class path; where ranks are threads (local) it"
          + " uses comm-cli's. A command gets the environment only.",
      "",
      "On backend local all ranks are threads of one JVM. Each has its own copy of the program's"
          + " classes. It ends as a JVM does: with the last of its threads that is no daemon. The ranks"
          + " share properties, native libraries and standard output, whose lines are labelled all the"
          + " same. System.exit ends all ranks.",
      "",
      "Rank 0 alone has standard input; that of the others is empty.",
      "",
      "Each line of output says which rank wrote it. One that stays unfinished for half a second, or"
          + " becomes very long, is shown as far as it is.",
      "",
      "Where the backend has a launcher of its own (mpi: the mpirun of its library) that starts the"
          + " ranks, and ends all of them when one fails: --on-failure continue is refused, and so is"
          + " --nnodes: for several hosts start the ranks with an mpirun of your own. After Ctrl-C it has"
          + " 10 s to remove what they have left; a second Ctrl-C ends it at once.",
      "",
      "With --nnodes the same command is started on each host. They meet at --master, and when a rank"
          + " fails anywhere the others end."
    })
final class Run implements Callable<Integer> {
  /// What happens to the others when a rank fails.
  enum OnFailure {
    STOP,
    CONTINUE
  }

  @Spec @Nullable CommandSpec spec;

  @Option(
      names = {"-n", "--ranks"},
      required = true,
      paramLabel = "N",
      description = "How many ranks, on this host.")
  int ranks;

  @Option(
      names = "--nnodes",
      defaultValue = "1",
      paramLabel = "HOSTS",
      description =
          "On how many hosts; run the same command on each. ${DEFAULT-VALUE} unless given.")
  int nodes = 1;

  @Option(
      names = "--node-rank",
      paramLabel = "K",
      description =
          "This host's number; 0 is the one with --master. Unless given, hosts are numbered as they come.")
  @Nullable Integer node;

  @Option(
      names = "--master",
      paramLabel = "HOST[:PORT]",
      description =
          "Where the hosts meet: an address of the first one that the others reach; a name must be known already. Needs a secret: COMM_SECRET_FILE.")
  @Nullable String master;

  @Option(
      names = "--grace",
      defaultValue = "3",
      paramLabel = "SECONDS",
      description =
          "How long the others have when a rank has failed; then SIGTERM, a second later SIGKILL."
              + " And how long ranks have after SIGTERM, a second at least, when comm-cli itself is ended."
              + " ${DEFAULT-VALUE} unless given.")
  double graceSeconds;

  @Option(
      names = "--on-failure",
      defaultValue = "stop",
      description =
          "stop: end the others when a rank has failed; continue: leave them alone."
              + " ${DEFAULT-VALUE} unless given.")
  OnFailure onFailure = OnFailure.STOP;

  @Option(
      names = {"--class-path", "-cp"},
      paramLabel = "PATH",
      description = "What a .java file needs besides comm4j; entries separated as for java.")
  @Nullable String classPath;

  @Parameters(
      arity = "1..*",
      paramLabel = "Program.java | app.jar | -- command",
      description = "What to run, and its arguments.")
  List<String> program = List.of();

  Run() {}

  @Override
  public Integer call() throws Exception {
    CommandSpec own = Objects.requireNonNull(spec);
    String first = program.getFirst();
    List<String> arguments = program.subList(1, program.size());
    if (first.endsWith(".java") && isFile(first)) {
      return compiled(Path.of(first), arguments);
    }
    if ((first.endsWith(".java") || first.endsWith(".jar")) && !isFile(first)) {
      throw new ParameterException(
          own.commandLine(),
          first + ": no such file (expected: a .java file, a jar, or a command)");
    }
    if (classPath != null) {
      throw new ParameterException(
          own.commandLine(),
          "--class-path: %s (expected: with a .java file; a jar names what it needs in its manifest, a command has its own options)"
              .formatted(classPath));
    }
    if (first.endsWith(".jar")) {
      return launch(new Program.Jar(Path.of(first), arguments)).run(System.out, System.err);
    }
    return launch(new Program.Command(program)).run(System.out, System.err);
  }

  private Optional<Cluster> cluster() {
    if (nodes == 1 && node == null && master == null) {
      return Optional.empty();
    }
    if (master == null) {
      throw new ParameterException(
          Objects.requireNonNull(spec).commandLine(),
          "--master: not given (expected: where the --nnodes hosts meet, as HOST or HOST:PORT)");
    }
    return Optional.of(
        Cluster.of(
            nodes,
            node == null ? OptionalInt.empty() : OptionalInt.of(node),
            master,
            Environment.launchName()));
  }

  private static boolean isFile(String name) {
    return Files.isRegularFile(Path.of(name));
  }

  private Launch launch(Program what) {
    return new Launch(
        ranks,
        cluster(),
        RankOptions.given(Objects.requireNonNull(spec)),
        RankOptions.binding(spec, ranks),
        what,
        graceSeconds,
        onFailure == OnFailure.CONTINUE,
        true);
  }

  private int compiled(Path source, List<String> arguments) throws Exception {
    try (OwnFolder folder = LaunchFolder.create()) {
      Path classes = Files.createDirectory(folder.path().resolve("classes"));
      List<Path> path = new ArrayList<>(List.of(classes));
      path.addAll(resources(source, Files.getOwner(classes)));
      path.addAll(extraClassPath());
      String main = compile(source, classes);
      folder.keepUntilTheEnd(); // ranks may load classes as long as their shutdown hooks run
      return launch(new Program.MainClass(main, path, arguments)).run(System.out, System.err);
    }
  }

  /// What a program finds beside its source: the folder of resources of our examples, as Maven has
  /// it. Classes would be found there too, so nobody else may have put it there.
  private static List<Path> resources(Path source, UserPrincipal user) throws IOException {
    Path folder = Objects.requireNonNull(source.toAbsolutePath().getParent());
    for (String name : List.of("src", "main", "resources")) {
      folder = folder.resolve(name);
      if (!Files.isDirectory(folder)) {
        return List.of();
      }
      var attributes =
          Files.readAttributes(folder, PosixFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
      boolean isSafe =
          attributes.isDirectory()
              && (attributes.owner().equals(user) || attributes.owner().getName().equals("root"))
              && !attributes.permissions().contains(PosixFilePermission.OTHERS_WRITE);
      if (!isSafe) {
        System.err.println(
            "comm-cli: no resources from %s: it is a link, another user's, or all may write to it"
                .formatted(folder));
        return List.of();
      }
    }
    return List.of(folder);
  }

  private List<Path> extraClassPath() {
    return classPath == null
        ? List.of()
        : Arrays.stream(classPath.split(File.pathSeparator))
            .filter(entry -> !entry.isEmpty())
            .flatMap(Run::expanded)
            .toList();
  }

  /// `lib/*` is all jars of the folder, as for `java`.
  private static Stream<Path> expanded(String entry) {
    if (!entry.equals("*") && !entry.endsWith(File.separator + "*")) {
      Path path = Path.of(entry);
      if (!Files.exists(path)) { // javac would only miss what is in it
        throw new IllegalArgumentException(
            "--class-path: %s: no such file (expected: jars and folders of classes that are there)"
                .formatted(entry));
      }
      return Stream.of(path);
    }
    Path folder = Path.of(entry.substring(0, entry.length() - 1));
    try (Stream<Path> files = Files.list(folder.toAbsolutePath())) {
      return files
          .filter(file -> file.toString().endsWith(".jar") || file.toString().endsWith(".JAR"))
          .sorted()
          .toList()
          .stream();
    } catch (IOException e) {
      throw new IllegalArgumentException(
          "--class-path: %s: %s (expected: a folder of jars)".formatted(entry, e.getMessage()), e);
    }
  }

  /// Compiles as `javac` does, with its messages.
  ///
  /// @return the main class
  private String compile(Path source, Path classes) throws IOException {
    var compiler = javax.tools.ToolProvider.getSystemJavaCompiler();
    if (compiler == null) {
      throw new IllegalArgumentException(
          source
              + ": this Java has no compiler (expected: a JDK, not a JRE; set JAVA_HOME to one)");
    }
    List<Path> path = new ArrayList<>(extraClassPath());
    path.addAll(RankCommand.ownClassPath());
    StringWriter messages = new StringWriter();
    List<String> options =
        List.of(
            "-d",
            classes.toString(),
            "-proc:none",
            "--add-modules",
            "jdk.incubator.vector", // which ranks have
            "-cp",
            String.join(File.pathSeparator, path.stream().map(Path::toString).toList()));
    try (var files = compiler.getStandardFileManager(null, Locale.ROOT, null)) {
      boolean fine =
          compiler
              .getTask(messages, files, null, options, null, files.getJavaFileObjects(source))
              .call();
      if (!fine) {
        throw new IllegalArgumentException("%s does not compile:%n%s".formatted(source, messages));
      }
    }
    return mainClass(source, classes);
  }

  /// Of several classes with a main method the one that has the file's name, else the first by
  /// name.
  private String mainClass(Path source, Path classes) throws IOException {
    String stem = source.getFileName().toString().replaceFirst("\\.java$", "");
    List<LinkageError> notLooked = new ArrayList<>();
    List<Path> path = new ArrayList<>(List.of(classes));
    path.addAll(extraClassPath());
    try (Stream<Path> files = Files.walk(classes);
        URLClassLoader loader = ThreadLaunch.loader(path)) {
      return files
          .filter(file -> file.toString().endsWith(".class"))
          .map(file -> classes.relativize(file).toString())
          .map(name -> name.substring(0, name.length() - ".class".length()).replace('/', '.'))
          .filter(name -> name.indexOf('$') < 0)
          .filter(name -> hasMain(loader, name, stem, notLooked))
          .min(
              Comparator.comparing((String name) -> !simpleName(name).equals(stem))
                  .thenComparing(Comparator.naturalOrder()))
          .orElseThrow(() ->
              new IllegalArgumentException(
                  source
                      + ": no class with a main method in it (expected: static void main(String[] args))",
                  notLooked.isEmpty() ? null : notLooked.getFirst()));
    }
  }

  private static boolean hasMain(
      ClassLoader loader, String name, String stem, List<LinkageError> notLooked) {
    try {
      return MainMethod.isIn(loader, name);
    } catch (LinkageError e) { // what its methods name is not there, which a program may not need
      notLooked.add(e);
      return simpleName(name).equals(stem);
    }
  }

  private static String simpleName(String name) {
    return name.substring(name.lastIndexOf('.') + 1);
  }
}
