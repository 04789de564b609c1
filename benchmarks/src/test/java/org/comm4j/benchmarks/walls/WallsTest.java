package org.comm4j.benchmarks.walls;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackages;
import static com.tngtech.archunit.lang.conditions.ArchConditions.accessTargetWhere;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.lang.ArchRule;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Dependencies run one way: between modules, between the packages of `core`, and to libraries.
///
/// A rule tolerates that its classes do not exist (yet); [#classes_ofEveryModule_areChecked] makes
/// sure that all that do exist are seen.
class WallsTest {
  /// Which of our modules each module may use, itself apart.
  private static final Map<String, List<String>> MAY_USE =
      Map.of(
          "org.comm4j.api", List.of(),
          "org.comm4j.core", List.of("org.comm4j.api"),
          "org.comm4j.backend.aeron", List.of("org.comm4j.api", "org.comm4j.core"),
          "org.comm4j.backend.cuda", List.of("org.comm4j.api", "org.comm4j.core"),
          "org.comm4j.backend.local", List.of("org.comm4j.api", "org.comm4j.core"),
          "org.comm4j.backend.mpi", List.of("org.comm4j.api", "org.comm4j.core"),
          "org.comm4j.tck", List.of("org.comm4j.api", "org.comm4j.core"),
          "org.comm4j.guice", List.of("org.comm4j.api"),
          "org.comm4j.cli",
              List.of("org.comm4j.api", "org.comm4j.core", "org.comm4j.guice", "org.comm4j.tck"));

  /// Which other packages each package of `core` may use. A new package is entered here first.
  private static final Map<String, Set<String>> CORE_MAY_USE =
      Map.of(
          "schedule", Set.of(),
          "algorithm", Set.of("schedule"),
          "select", Set.of("schedule", "algorithm"),
          "transport", Set.of(),
          // A simulated group is an engine on a simulated transport; nothing uses it.
          "sim", Set.of("transport", "session", "engine", "select"),
          "kernel", Set.of(),
          "session", Set.of(),
          "events", Set.of("schedule"),
          "engine", Set.of("schedule", "algorithm", "select", "transport", "kernel", "session"));

  /// Which modules may use a library.
  private static final Map<String, List<String>> LIBRARY_USERS =
      Map.of(
          "com.google.inject..", List.of("org.comm4j.guice", "org.comm4j.cli"),
          "org.junit..", List.of("org.comm4j.tck"),
          "picocli..", List.of("org.comm4j.cli"),
          "org.agrona..", List.of("org.comm4j.backend.aeron"),
          "io.aeron..", List.of("org.comm4j.backend.aeron"),
          "jcuda..", List.of("org.comm4j.backend.cuda"));

  /// The only readers of environment and system properties; what configures is read by CommConfig.
  private static final Set<String> READERS_OF_ENVIRONMENT =
      Set.of(
          "org.comm4j.api.CommConfig",
          // Hand the whole environment to CommConfig.
          "org.comm4j.api.Backends",
          "org.comm4j.api.Communicators",
          "org.comm4j.api.LocalGroup",
          "org.comm4j.guice.CommModule",
          // Ask for facts of the platform: system, processor, compiler, folder for temporary files.
          "org.comm4j.backend.cuda.CudaProvider",
          "org.comm4j.backend.cuda.Libcuda",
          "org.comm4j.backend.local.NativeCalls",
          "org.comm4j.backend.local.ShmProvider",
          "org.comm4j.backend.mpi.ElfSymbols",
          "org.comm4j.backend.mpi.LibraryFolders",
          "org.comm4j.backend.mpi.MpiLibraries",
          "org.comm4j.backend.mpi.MpiProvider",
          "org.comm4j.backend.mpi.ExecutableMemory",
          "org.comm4j.backend.mpi.Pinning",
          "org.comm4j.cli.LaunchFolder",
          "org.comm4j.core.kernel.MachineCode",
          "org.comm4j.core.kernel.WarmUp",
          "org.comm4j.core.session.OwnFolder",
          // Asks for PATH, and what of a launcher the user has set.
          "org.comm4j.backend.mpi.MpiLauncher",
          // Take what is asked of a run of tests: a seed, one check, the long form.
          "org.comm4j.tck.CallPlan",
          "org.comm4j.tck.LiveVerification",
          "org.comm4j.tck.CommunicatorContract",
          "org.comm4j.tck.TransportContract",
          "org.comm4j.cli.Main",
          // What a launch hands on to its ranks, NO_COLOR, and where this Java is.
          "org.comm4j.cli.Environment",
          "org.comm4j.cli.Terminal",
          "org.comm4j.cli.RankCommand");

  private static final Pattern IS_TEST = Pattern.compile("(?m)^import (static )?org[.]junit[.]");
  private static final Pattern HAS_TESTS =
      Pattern.compile("(?m)^ +@(Test|ParameterizedTest|RepeatedTest|TestFactory)\\b");

  private static final Pattern SNIPPET =
      Pattern.compile("[{]@snippet file=\"([^\"]+)\" region=\"([^\"]+)\"[}]");

  static final List<String> MODULE_NAMES = House.NAMES;

  @ParameterizedTest
  @FieldSource("MODULE_NAMES")
  void classes_ofEveryModule_areChecked(String module) {
    assertThat(House.MODULES).as("modules on the class path").containsKey(module);
    var checked =
        House.CLASSES.stream()
            .filter(resideInAPackage(module + ".."))
            .map(type -> type.getName().replace('.', '/') + ".class");
    assertThat(checked)
        .containsAll(House.files(module, file -> file.matches("org/.*/[A-Z][^/]*[.]class")));
  }

  @ParameterizedTest
  @FieldSource("MODULE_NAMES")
  void module_usesOurModules_onlyDownwards(String module) {
    var allowed = Stream.concat(Stream.of(module), MAY_USE.get(module).stream());
    var packages = allowed.map(name -> name + "..").toArray(String[]::new);
    check(
        classes()
            .that()
            .resideInAPackage(module + "..")
            .should()
            .onlyDependOnClassesThat(
                resideInAnyPackage(packages).or(resideOutsideOfPackages("org.comm4j.."))));
  }

  @Test
  void api_usesJavaBaseOnly() {
    check(
        classes()
            .that()
            .resideInAPackage("org.comm4j.api..")
            .should()
            .onlyDependOnClassesThat()
            .resideInAnyPackage("org.comm4j.api..", "java..", "org.jspecify.annotations"));
    assertThat(House.descriptor("org.comm4j.api").requires())
        .extracting(required -> required.name())
        .containsExactlyInAnyOrder("java.base", "org.jspecify");
  }

  static Stream<String> corePackages() {
    return CORE_MAY_USE.keySet().stream().sorted();
  }

  @ParameterizedTest
  @MethodSource("corePackages")
  void corePackage_usesOtherPackages_onlyInTheDirectionOfTheArrows(String name) {
    var forbidden =
        Stream.concat(
                corePackages()
                    .filter(other -> !other.equals(name))
                    .filter(other -> !CORE_MAY_USE.get(name).contains(other))
                    .map(other -> "org.comm4j.core." + other + ".."),
                Stream.of("org.comm4j.core"))
            .toArray(String[]::new);
    check(
        noClasses()
            .that()
            .resideInAPackage("org.comm4j.core." + name + "..")
            .should()
            .dependOnClassesThat()
            .resideInAnyPackage(forbidden));
  }

  @Test
  void corePackages_areAllKnown() {
    assertThat(House.descriptor("org.comm4j.core").packages())
        .allSatisfy(name ->
            assertThat(name)
                .as("a package of core that WallsTest.CORE_MAY_USE knows")
                .matches(
                    "org[.]comm4j[.]core([.]("
                        + String.join("|", CORE_MAY_USE.keySet())
                        + ")([.].*)?)?"));
  }

  static Stream<String> libraries() {
    return LIBRARY_USERS.keySet().stream().sorted();
  }

  @ParameterizedTest
  @MethodSource("libraries")
  void library_isUsed_onlyInItsPlace(String library) {
    var users = LIBRARY_USERS.get(library).stream().map(name -> name + "..").toArray(String[]::new);
    check(
        noClasses()
            .that()
            .resideOutsideOfPackages(users)
            .should()
            .dependOnClassesThat()
            .resideInAPackage(library));
  }

  @Test
  void internalsOfTheJdk_areNotUsed() {
    check(noClasses().should().dependOnClassesThat().resideInAnyPackage("sun..", "jdk.internal.."));
  }

  @Test
  void javaSerialization_isNotUsed() {
    check(noClasses().should().dependOnClassesThat().areAssignableTo(ObjectInputStream.class));
  }

  @Test
  void environment_isRead_onlyByConfigAndMain() {
    check(
        noClasses()
            .that(DescribedPredicate.describe("read no environment", type -> !mayRead(type)))
            .should(
                accessTargetWhere(
                    DescribedPredicate.describe("reads it", WallsTest::readsEnvironment))));
  }

  /// Maven passes over others without a word. The kit's contracts are run by those who extend them.
  @Test
  void tests_areWhereMavenLooks() throws IOException {
    var kit = Path.of("tck", "src", "main", "java");
    var tests = 0;
    for (Path source : House.sources()) {
      var text = Files.readString(House.file(source));
      if (IS_TEST.matcher(text).find() && !source.startsWith(kit)) {
        assertThat(source).startsWithRaw(source.getName(0).resolve("src/test/java"));
        if (HAS_TESTS.matcher(text).find()) {
          assertThat(source.toString()).endsWith("Test.java");
        }
        tests++;
      }
    }
    assertThat(tests).as("tests that were found").isGreaterThan(House.NAMES.size());
  }

  /// Examples are regions of compiled tests, where javadoc looks for them.
  @Test
  void snippets_ofTheDocumentation_areRegionsOfTests() throws IOException {
    for (Path source : House.sources()) {
      var snippet = SNIPPET.matcher(Files.readString(House.file(source)));
      while (snippet.find()) {
        Path test = source.getName(0).resolve("src/test/java").resolve(snippet.group(1));
        assertThat(House.file(test))
            .as("example of " + source)
            .isRegularFile()
            .content()
            .contains("// @start region=\"" + snippet.group(2) + '"');
      }
    }
  }

  private static boolean mayRead(JavaClass type) {
    return READERS_OF_ENVIRONMENT.stream()
        .anyMatch(name -> type.getName().equals(name) || type.getName().startsWith(name + "$"));
  }

  private static boolean readsEnvironment(JavaAccess<?> access) {
    var method = access.getTarget().getOwner().getSimpleName() + "." + access.getTarget().getName();
    return Set.of(
            "System.getenv",
            "System.getProperty",
            "System.getProperties",
            "Integer.getInteger",
            "Long.getLong",
            "Boolean.getBoolean")
        .contains(method);
  }

  private static void check(ArchRule rule) {
    rule.allowEmptyShould(true).check(House.CLASSES);
  }
}
