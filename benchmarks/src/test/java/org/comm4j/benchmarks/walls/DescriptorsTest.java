package org.comm4j.benchmarks.walls;

import static java.util.stream.Collectors.joining;
import static java.util.stream.Collectors.toMap;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleDescriptor.Provides;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/// What a module shows to strangers changes on purpose only.
class DescriptorsTest {
  private static final String SERVICES = "META-INF/services/";

  static final List<String> MODULE_NAMES = House.NAMES;

  @ParameterizedTest
  @FieldSource("MODULE_NAMES")
  void descriptor_asCommitted(String module) throws IOException {
    var committed = Path.of("src/test/modules", module + ".txt");
    var copy = Path.of("target/modules", module + ".txt");
    var actual = describe(House.descriptor(module));
    Files.createDirectories(copy.getParent());
    Files.writeString(copy, actual);

    assertThat(actual)
        .as(
            "the descriptor of %s; where the change is meant:"
                + " cp benchmarks/target/modules/* benchmarks/src/test/modules/",
            module)
        .isEqualTo(Files.exists(committed) ? Files.readString(committed) : "");
  }

  /// On the class path `META-INF/services` counts, on the module path the descriptor.
  @ParameterizedTest
  @FieldSource("MODULE_NAMES")
  void services_inMetaInf_equalProvides(String module) {
    var inMetaInf =
        House.files(module, file -> file.startsWith(SERVICES)).stream()
            .collect(
                toMap(
                    file -> file.substring(SERVICES.length()),
                    file -> providers(House.read(module, file))));
    var provided =
        House.descriptor(module).provides().stream()
            .collect(toMap(Provides::service, Provides::providers));

    assertThat(inMetaInf).as("META-INF/services of %s", module).isEqualTo(provided);
  }

  private static List<String> providers(String file) {
    return file.lines()
        .map(line -> line.replaceFirst("#.*", "").strip())
        .filter(line -> !line.isEmpty())
        .toList();
  }

  /// One line per fact, sorted; without versions, and without what is not for strangers.
  private static String describe(ModuleDescriptor module) {
    return Stream.of(
            Stream.of("module " + module.name()),
            lines(module.requires(), it -> "requires " + modifiers(it.modifiers()) + it.name()),
            lines(module.exports(), it -> "exports " + it.source() + to(it.targets())),
            lines(module.opens(), it -> "opens " + it.source() + to(it.targets())),
            lines(module.uses(), it -> "uses " + it),
            lines(
                module.provides(),
                it -> "provides " + it.service() + " with " + String.join(", ", it.providers())))
        .flatMap(Function.identity())
        .collect(joining("\n", "", "\n"));
  }

  private static <T> Stream<String> lines(Iterable<T> facts, Function<T, String> line) {
    var sorted = new TreeSet<String>();
    facts.forEach(fact -> sorted.add(line.apply(fact)));
    return sorted.stream();
  }

  private static String modifiers(Iterable<ModuleDescriptor.Requires.Modifier> modifiers) {
    return lines(modifiers, modifier -> modifier.name().toLowerCase(java.util.Locale.ROOT) + " ")
        .filter(word -> !word.startsWith("mandated"))
        .collect(joining());
  }

  private static String to(Iterable<String> targets) {
    var names = lines(targets, name -> name).collect(joining(", "));
    return names.isEmpty() ? "" : " to " + names;
  }
}
