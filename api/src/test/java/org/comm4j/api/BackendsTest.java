package org.comm4j.api;

import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.io.File;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.comm4j.api.BackendInfo.Status;
import org.comm4j.api.spi.RankKind;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Lists backends from jars that are made here, most of them broken.
class BackendsTest {
  private static final String GOOD =
      """
      package strangers;

      import java.util.List;
      import java.util.Map;
      import java.util.Set;
      import org.comm4j.api.Advice;
      import org.comm4j.api.Capability;
      import org.comm4j.api.CommConfig;
      import org.comm4j.api.spi.Availability;
      import org.comm4j.api.spi.BackendProvider;
      import org.comm4j.api.spi.RankKind;

      public class Good implements BackendProvider {
        public Good() {}
        @Override public String name() { return "good"; }
        @Override public String version() { return "7.1"; }
        @Override public RankKind rankKind() { return RankKind.PROCESSES; }
        @Override public int priority() { return 70; }
        @Override public String reaches() { return "everybody"; }
        @Override public Set<Capability> capabilities() { return Set.of(Capability.SPLIT); }
        @Override public Set<String> options() { return Set.of(); }
        @Override public Map<String, String> details(CommConfig config) {
          return Map.of("library", "libgood 7");
        }
        @Override public List<Advice> advice(CommConfig config) {
          return List.of(new Advice("locked memory", "64 KiB", "ulimit -l 1048576"));
        }
        @Override public Availability availability(CommConfig config) {
          return Availability.ready();
        }
      }
      """;

  @TempDir Path folder;
  private final List<Path> jars = new ArrayList<>();
  private List<BackendInfo> before = List.of();

  @BeforeEach
  void listWhatTheTestsHave() {
    before = Backends.availableBackends();
    assertThat(before)
        .extracting(BackendInfo::name)
        .containsExactly("fake-threads", "fake-net", "fake-devices");
  }

  @Test
  void environment_contradictsItself_stillSaysWhereBackendsAre() {
    Map<String, String> variables = Map.of("RANK", "0", "COMM_PLUGIN_PATH", "/opt/x.jar");
    assertThatIllegalArgumentException().isThrownBy(() -> CommConfig.fromEnvironment(variables));
    assertThat(Backends.environment(variables))
        .isEqualTo(CommConfig.builder().pluginPath("/opt/x.jar").build());
  }

  @Test
  void available_good_isReadyWithEverythingItSays() throws Exception {
    jar("Good", source("Good"));

    assertThat(added())
        .containsExactly(
            new BackendInfo(
                "good",
                Status.READY,
                java.util.Optional.of(RankKind.PROCESSES),
                70,
                "everybody",
                "7.1",
                java.util.Set.of(Capability.SPLIT),
                java.util.Map.of("library", "libgood 7"),
                List.of(new Advice("locked memory", "64 KiB", "ulimit -l 1048576")),
                java.util.Optional.empty(),
                java.util.Optional.empty()));
    assertThat(listed()).extracting(BackendInfo::name).first().isEqualTo("good");
  }

  @Test
  void available_unavailable_saysWhyAndWhatToDo() throws Exception {
    jar("Away", source("Away", "Availability.ready()", "Availability.unavailable(\"w\", \"r\")"));

    BackendInfo row = onlyOneAdded();
    assertThat(row.status()).isEqualTo(Status.UNAVAILABLE);
    assertThat(row.reason()).hasValue("w");
    assertThat(row.remedy()).hasValue("r");
  }

  @Test
  void available_badOption_isUnavailableAndAskedNoMore() throws Exception {
    jar(
        "Choosy",
        source("Choosy", "return Availability.ready()", "throw new AssertionError()")
            .replace("return Map.of(\"library\", \"libgood 7\")", "throw new AssertionError()")
            .replace(
                "public Choosy() {}",
                "public Choosy() {}\n@Override public void checkOptions(CommConfig c) {"
                    + " throw new IllegalArgumentException(\"COMM_GOOD_SPEED: 'x'\"); }"));

    BackendInfo row = onlyOneAdded();
    assertThat(row.status()).isEqualTo(Status.UNAVAILABLE);
    assertThat(row.reason()).hasValue("COMM_GOOD_SPEED: 'x'");
    assertThat(row.remedy()).hasValue("correct what that names");
    assertThat(row.details()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "public Bad() {}|public Bad() { throw new IllegalStateException(\"tick\"); }|strangers.Bad|tick",
        "public Bad() {}|public Bad() { throw new StackOverflowError(\"deep\"); }|strangers.Bad|deep",
        "public Bad() {}|private Bad() {}|strangers.Bad|public",
        "public Bad() {}|static { if (true) throw new RuntimeException(\"init\"); } public Bad() {}|strangers.Bad|init",
        "return \"good\"|return null|strangers.Bad|name() failed",
        "return \"good\"|return \"Good One\"|strangers.Bad|'Good One' (expected: lower-case",
        "return \"good\"|return \"auto\"|strangers.Bad|not 'auto'",
        "return \"good\"|throw new AssertionError(\"nameless\")|strangers.Bad|nameless",
        "return \"7.1\"|return null|good|null",
        "return RankKind.PROCESSES|return null|good|null",
        "return 70|return 101|good|priority: 101 (expected: 0..100)",
        "return 70|throw new LinkageError(\"old\")|good|old",
        "return \"everybody\"|return null|good|null",
        "return Set.of(Capability.SPLIT)|return null|good|Null",
        "return Set.of()|return java.util.Collections.singleton(null)|good|Null",
        "return Map.of(\"library\", \"libgood 7\")|return null|good|null",
        "return Map.of(\"library\", \"libgood 7\")|return java.util.Collections.singletonMap(\"lib\", null)|good|lib",
        "return List.of(new Advice|return null; } List<Advice> other() { return List.of(new Advice|good|null",
        "\"64 KiB\"|null|good|found",
        "return Availability.ready()|return null|good|null",
        "return Availability.ready()|return Availability.unavailable(null, null)|good|null",
        "return Availability.ready()|throw new NoClassDefFoundError(\"x/Y\")|good|x/Y"
      })
  void available_broken_isARowWithItsReason(
      String original, String replacement, String name, String reason) throws Exception {
    jar("Bad", source("Bad", original, replacement));

    BackendInfo row = onlyOneAdded();
    assertThat(row.status()).isEqualTo(Status.BROKEN);
    assertThat(row.name()).isEqualTo(name);
    assertThat(row.reason().orElseThrow()).contains(reason);
    assertThat(row.remedy().orElseThrow()).contains("strangers.Bad").contains("Bad.jar");
  }

  /// It takes time, and most backends that are found are not used.
  @Test
  void find_byName_asksNoOtherBackendWhatTheHostHas() throws Exception {
    jar(
        "Slow",
        source(
            "Slow",
            "return Availability.ready();",
            "System.setProperty(\"strangers.asked\", name()); return Availability.ready();"));
    CommConfig config = withJar().build();
    CommConfig threads = config.toBuilder().backend("fake-threads").build();
    try {
      assertThat(Backends.select(threads).backend()).isEqualTo("fake-threads");
      assertThat(Backends.rankKind(threads)).hasValue(RankKind.THREADS);
      assertThat(Backends.rankKind(config)).isEmpty();
      assertThat(Backends.brokenBackends(config)).isEmpty();
      assertThat(System.getProperty("strangers.asked")).isNull();

      Backends.select(config.toBuilder().backend("good").build());
      assertThat(System.getProperty("strangers.asked")).isEqualTo("good");
    } finally {
      System.clearProperty("strangers.asked");
    }
  }

  @Test
  void brokenBackends_areWhatCannotBeLoaded() throws Exception {
    jar("Bad", source("Bad", "public Bad() {}", "private Bad() {}"));
    jar("Good", source("Good"));
    String path = folder.resolve("*").toString();

    assertThat(Backends.brokenBackends(CommConfig.builder().pluginPath(path).build()))
        .singleElement()
        .satisfies(row -> assertThat(row.name()).isEqualTo("strangers.Bad"));
  }

  @Test
  void select_optionOfABrokenBackend_saysThatItIsBroken() throws Exception {
    jar("Bad", source("Bad", "return \"everybody\"", "throw new LinkageError(\"old\")"));
    CommConfig config = withJar().option("COMM_GOOD_SPEED", "1").build();

    assertThat(Backends.select(config).backend()).isEqualTo("fake-threads");
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> Backends.select(config.toBuilder().backend("good").build()))
        .withMessageContaining("old");
  }

  @Test
  void select_optionOfWhatCannotBeLoaded_namesThat() throws Exception {
    jar("Bad", source("Bad", "public Bad() {}", "private Bad() {}"));
    CommConfig config = withJar().option("COMM_GOOD_SPEED", "1").build();

    assertThatIllegalArgumentException()
        .isThrownBy(() -> Backends.select(config))
        .withMessageStartingWith("COMM_GOOD_SPEED: '1'")
        .withMessageContaining("broken here")
        .withMessageContaining("strangers.Bad");
  }

  @Test
  void select_anotherBackendsCheckOfOptionsThrows_isLoggedAlone() throws Exception {
    jar(
        "Bad",
        source(
            "Bad",
            "public Bad() {}",
            "public Bad() {}\n@Override public void checkOptions(org.comm4j.api.CommConfig c) {"
                + " throw new IllegalStateException(\"torn\"); }"));
    CommConfig config = withJar().build();

    assertThat(Backends.select(config.toBuilder().backend("fake-threads").build()).backend())
        .isEqualTo("fake-threads");
    assertThatExceptionOfType(BackendUnavailableException.class)
        .isThrownBy(() -> Backends.select(config.toBuilder().backend("good").build()))
        .withMessageContaining("torn")
        .withMessageContaining("Bad.jar");
  }

  @Test
  void select_usable_asksForNoDetails() throws Exception {
    jar("Good", source("Good", "return Map.of(\"library\", \"libgood 7\")", "return null"));
    String path = jars.getFirst().toString();
    CommConfig config = CommConfig.builder().pluginPath(path).build();

    assertThat(Backends.select(config.toBuilder().rank(0).worldSize(2).build()).backend())
        .isEqualTo("good");
  }

  @Test
  void available_oldInterface_isARow() throws Exception {
    String old = "package org.comm4j.api.spi; public interface BackendProvider { String name(); }";
    String provider =
        """
        package strangers;

        public class Old implements org.comm4j.api.spi.BackendProvider {
          public Old() {}
          @Override public String name() { return "old"; }
        }
        """;
    jar("Old", old, provider);

    BackendInfo row = onlyOneAdded();
    assertThat(row.name()).isEqualTo("old");
    assertThat(row.status()).isEqualTo(Status.BROKEN);
    assertThat(row.reason().orElseThrow()).contains("AbstractMethodError");
  }

  @Test
  void available_classMissingOrUnreadable_isARow() throws Exception {
    Path missing = folder.resolve("missing.jar");
    writeJar(missing, "strangers.Missing\nstrangers.Broken\nno provider\n", Path.of("none"));
    jars.add(missing);
    jar("Good", source("Good"));

    assertThat(added())
        .filteredOn(row -> row.status() == Status.BROKEN)
        .isNotEmpty()
        .allSatisfy(row -> assertThat(row.reason()).isPresent());
    assertThat(added()).extracting(BackendInfo::name).contains("good");
  }

  @Test
  void available_notAProvider_isARow() throws Exception {
    jar("Nothing", "package strangers; public class Nothing {}");

    BackendInfo row = onlyOneAdded();
    assertThat(row.status()).isEqualTo(Status.BROKEN);
    assertThat(row.name()).isEqualTo("strangers.Nothing");
  }

  @Test
  void available_baseClassMissing_isARow() throws Exception {
    jar(
        "Child",
        "package strangers; class Base {}",
        source("Child").replace("implements", "extends Base implements"));
    Path jar = jars.getLast();
    Files.delete(folder.resolve("Child-classes/strangers/Base.class"));
    writeJar(jar, "strangers.Child\n", folder.resolve("Child-classes"));

    assertThat(onlyOneAdded().status()).isEqualTo(Status.BROKEN);
    assertThat(onlyOneAdded().reason().orElseThrow()).contains("strangers/Base");
  }

  @Test
  void available_duplicateNames_areAllBroken() throws Exception {
    jar("First", source("First"));
    jar("Second", source("Second"));

    assertThat(added())
        .hasSize(2)
        .allSatisfy(row -> {
          assertThat(row.name()).isEqualTo("good");
          assertThat(row.status()).isEqualTo(Status.BROKEN);
          assertThat(row.reason().orElseThrow())
              .contains("strangers.First", "First.jar", "strangers.Second", "Second.jar");
          assertThat(row.remedy()).isPresent();
        });
    String path = folder.resolve("*").toString();
    CommConfig config = CommConfig.builder().pluginPath(path).backend("good").build();
    assertThat(Backends.rankKind(config)).isEmpty();
  }

  @Test
  void available_pluginPath_addsWhatIsThereAndSaysWhatIsNot() throws Exception {
    jar("Good", source("Good"));
    String path =
        Stream.of(folder.resolve("*"), folder.resolve("absent.jar"), folder.resolve("no/*"))
            .map(Path::toString)
            .reduce((a, b) -> a + java.io.File.pathSeparator + b)
            .orElseThrow();

    List<BackendInfo> rows =
        Backends.availableBackends(CommConfig.builder().pluginPath(path).build());

    assertThat(rows).extracting(BackendInfo::name).contains("good", "fake-net", "fake-threads");
    assertThat(rows)
        .filteredOn(row -> row.status() == Status.BROKEN)
        .hasSize(2)
        .allSatisfy(row -> assertThat(row.reason().orElseThrow()).contains("COMM_PLUGIN_PATH"));
  }

  /// A plugin is looked at as a class path, where a module's `provides` counts for nothing.
  @Test
  void available_pluginIsForTheModulePathAlone_saysWhatItLacks() throws Exception {
    jar("Good", source("Good"));
    Path classes = folder.resolve("Good-classes");
    compile(classes, writeModule("Good", "provides org.comm4j.api.spi.BackendProvider with %s"));
    Path module = folder.resolve("module.jar");
    writeJar(module, null, classes);
    Path both = folder.resolve("both.jar");
    writeJar(both, "strangers.Good\n", classes);

    for (Path entry : List.of(module, classes)) {
      CommConfig config = CommConfig.builder().pluginPath(entry.toString()).build();
      assertThat(Backends.brokenBackends(config))
          .singleElement()
          .satisfies(row -> {
            assertThat(row.name()).isEqualTo(entry.toRealPath().toString());
            assertThat(row.reason().orElseThrow()).contains("module", "META-INF/services");
            assertThat(row.remedy().orElseThrow())
                .contains("META-INF/services/org.comm4j.api.spi.BackendProvider", "strangers.Good");
          });
      assertThatExceptionOfType(BackendUnavailableException.class)
          .isThrownBy(() -> Backends.select(config.toBuilder().backend("good").build()))
          .withMessageContaining("META-INF/services");
    }
    assertThat(Backends.brokenBackends(CommConfig.builder().pluginPath(both.toString()).build()))
        .isEmpty();
  }

  @Test
  void available_pluginIsAnotherModule_isNoRow() throws Exception {
    jar("Nothing", "package strangers; public class Nothing {}");
    Path classes = folder.resolve("Nothing-classes");
    compile(classes, writeModule("Nothing", "exports strangers"));
    Path library = folder.resolve("library.jar");
    writeJar(library, null, classes);
    Path torn = Files.writeString(folder.resolve("torn.jar"), "no jar");

    for (Path entry : List.of(library, classes, torn)) {
      CommConfig config = CommConfig.builder().pluginPath(entry.toString()).build();
      assertThat(Backends.brokenBackends(config)).isEmpty();
    }
  }

  @Test
  void available_contextLoaderWithoutThisApi_isNotUsed() throws Exception {
    Thread me = Thread.currentThread();
    ClassLoader original = me.getContextClassLoader();
    try (var stranger = new URLClassLoader(new URL[0], null)) {
      me.setContextClassLoader(stranger);
      assertThat(Backends.availableBackends()).isEqualTo(before);
    } finally {
      me.setContextClassLoader(original);
    }
  }

  @Test
  void removeRemains_oneFails_theOthersStillDo() throws Exception {
    String end = "@Override public Set<String> options()";
    String fails = "@Override public void removeRemains(CommConfig c) { throw new Error(\"x\"); }";
    String deletes =
        "@Override public void removeRemains(CommConfig c) { new java.io.File(c.session().get()).delete(); }";
    jar("Bad", source("Bad", end, fails + end).replace("return 70", "return 90"));
    jar("Good", source("Good", end, deletes + end).replace("\"good\"", "\"better\""));
    Path left = Files.createFile(folder.resolve("left"));

    String plugins = jars.stream().map(Path::toString).collect(joining(File.pathSeparator));
    Backends.removeRemains(
        CommConfig.builder().pluginPath(plugins).session(left.toString()).build());

    assertThat(left).doesNotExist();
  }

  // --- tools ---

  private BackendInfo onlyOneAdded() throws IOException {
    List<BackendInfo> added = added();
    assertThat(added).hasSize(1);
    return added.getFirst();
  }

  private List<BackendInfo> added() throws IOException {
    return listed().stream().filter(row -> !before.contains(row)).toList();
  }

  private List<BackendInfo> listed() throws IOException {
    Thread me = Thread.currentThread();
    ClassLoader original = me.getContextClassLoader();
    URL[] urls = jars.stream().map(BackendsTest::url).toArray(URL[]::new);
    try (var loader = new URLClassLoader(urls, getClass().getClassLoader())) {
      me.setContextClassLoader(loader);
      return Backends.availableBackends();
    } finally {
      me.setContextClassLoader(original);
    }
  }

  /// With the first of the jars.
  private CommConfig.Builder withJar() {
    return CommConfig.builder().pluginPath(jars.getFirst().toString());
  }

  private static URL url(Path path) {
    try {
      return path.toUri().toURL();
    } catch (MalformedURLException e) {
      throw new IllegalStateException(e);
    }
  }

  private static String source(String type) {
    return GOOD.replace("class Good", "class " + type).replace("Good()", type + "()");
  }

  private static String source(String type, String original, String replacement) {
    assertThat(source(type)).contains(original);
    return source(type).replace(original, replacement);
  }

  /// Compiles sources and packs those of the package `strangers`, with the type as a provider.
  private void jar(String type, String... sources) throws IOException {
    Path classes = Files.createDirectories(folder.resolve(type + "-classes"));
    List<Path> files = new ArrayList<>();
    for (String source : sources) {
      String name = source.replaceAll("(?s).*?(class|interface) (\\w+).*", "$2");
      Path file = Files.createDirectories(folder.resolve(type)).resolve(name + ".java");
      files.add(Files.writeString(file, source));
    }
    compile(classes, files.toArray(Path[]::new));
    Path jar = folder.resolve(type + ".jar");
    writeJar(jar, "strangers." + type + "\n", classes);
    jars.add(jar);
  }

  private static void compile(Path classes, Path... sources) {
    String path = System.getProperty("java.class.path");
    List<String> arguments =
        new ArrayList<>(List.of("-proc:none", "-cp", path, "-p", path, "-d", classes.toString()));
    Stream.of(sources).map(Path::toString).forEach(arguments::add);
    int code =
        ToolProvider.getSystemJavaCompiler()
            .run(null, null, null, arguments.toArray(String[]::new));
    assertThat(code).isZero();
  }

  /// The source of a module that has the jar's type.
  ///
  /// @param declares with a place for the type's name
  private Path writeModule(String type, String declares) throws IOException {
    String declared = declares.formatted("strangers." + type);
    return Files.writeString(
        folder.resolve(type).resolve("module-info.java"),
        "module strangers { requires org.comm4j.api; %s; }".formatted(declared));
  }

  private static void writeJar(Path jar, @Nullable String services, Path classes)
      throws IOException {
    try (var out = new JarOutputStream(Files.newOutputStream(jar))) {
      if (services != null) {
        out.putNextEntry(new JarEntry("META-INF/services/org.comm4j.api.spi.BackendProvider"));
        out.write(services.getBytes(StandardCharsets.UTF_8));
      }
      if (Files.exists(classes)) {
        try (Stream<Path> files = Files.walk(classes)) {
          for (Path file : files.filter(Files::isRegularFile).toList()) {
            out.putNextEntry(new JarEntry(classes.relativize(file).toString()));
            out.write(Files.readAllBytes(file));
          }
        }
      }
    }
  }
}
