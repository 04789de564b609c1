package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The committed PTX: that of the committed sources, for old drivers and old GPUs.
class PtxTest {
  private static final Path SOURCES = Path.of("src/main/cuda");
  private static final Path PTX = Path.of("src/main/resources/org/comm4j/backend/cuda/ptx");
  private static final String RECORD = "sources.txt";
  private static final List<String> GENERATIONS = List.of("sm_75", "sm_80", "sm_90");
  private static final boolean IS_FULL = Boolean.getBoolean("comm4j.full");
  private static final List<String> COMPILED_AGAIN = List.of("copies", "float32_cast", "int16");

  /// One of each kind.
  private static final List<String> ASSEMBLED_AGAIN =
      List.of("copies", "float32_cast", "int16", "float64", "bfloat16", "complex", "pairs");

  private static final String REMEDY = "run backend-cuda/compile-kernels and commit its output";

  static List<Path> modules() throws IOException {
    try (Stream<Path> files = Files.list(PTX)) {
      return files.filter(file -> file.toString().endsWith(".ptx")).sorted().toList();
    }
  }

  private static String name(Path module) {
    return module.getFileName().toString().replace(".ptx", "");
  }

  static Stream<KernelName> kernels() {
    return KernelName.all().values().stream().flatMap(Set::stream);
  }

  @Test
  void record_isThatOfTheSourcesAndOfWhatTheyGave() throws IOException {
    Map<String, String> recorded = new TreeMap<>();
    for (String line : Files.readAllLines(PTX.resolve(RECORD))) {
      String[] words = line.split("  ", 2);
      if (words.length == 2) {
        recorded.put(Path.of(words[1]).normalize().toString(), words[0]);
      }
    }

    Map<String, String> hashes = new TreeMap<>(Sources.hashes(SOURCES, ".*[.]cuh?"));
    hashes.putAll(Sources.hashes(PTX, ".*[.]ptx"));
    assertThat(recorded).as(REMEDY).isEqualTo(hashes);
  }

  /// Some modules, which have all headers, with `-Dcomm4j.full=true` all.
  @Test
  void compiledAgain_isTheSame(@TempDir Path folder) throws IOException {
    Programs.needNvcc();
    String version = Files.readAllLines(PTX.resolve(RECORD)).get(1).replace("nvcc ", "");
    assumeTrue(
        Programs.run("nvcc", "--version").contains("V" + version),
        "the committed PTX is of nvcc " + version + ", and another one is here");

    List<String> command = new ArrayList<>(List.of("./compile-kernels", folder.toString()));
    if (!IS_FULL) {
      command.addAll(COMPILED_AGAIN);
    }
    List<Path> compiled =
        modules().stream()
            .filter(module -> IS_FULL || COMPILED_AGAIN.contains(name(module)))
            .toList();
    String inputs =
        command.getFirst()
            + Files.readString(Path.of(command.getFirst()))
            + version
            + Programs.nvccHostVersion()
            + Sources.hashes(SOURCES, ".*[.]cuh?")
            + Sources.hashes(PTX, ".*[.]ptx")
            + compiled;
    Once.check(
        inputs,
        () -> {
          Programs.run(command.toArray(String[]::new));
          for (Path module : compiled) {
            assertThat(folder.resolve(module.getFileName()))
                .as(REMEDY)
                .hasSameTextualContentAs(module);
          }
        });
  }

  /// What is legal in PTX of that version, which is the same for all generations of GPUs.
  /// `compile-kernels` has assembled all before it recorded them; here some are, each for one
  /// generation, with `-Dcomm4j.full=true` all for all.
  @Test
  void modules_areAssembled(@TempDir Path folder) throws IOException {
    Programs.need("ptxas");
    List<Path> modules =
        modules().stream()
            .filter(module -> IS_FULL || ASSEMBLED_AGAIN.contains(name(module)))
            .toList();
    String assembler = Programs.run("ptxas", "--version");
    Map<String, String> hashes = Sources.hashes(PTX, ".*[.]ptx");
    IntStream.range(0, modules.size() * GENERATIONS.size())
        .filter(i -> IS_FULL || i / modules.size() == i % modules.size() % GENERATIONS.size())
        .parallel()
        .forEach(i -> {
          Path module = modules.get(i % modules.size());
          String generation = GENERATIONS.get(i / modules.size());
          Path out = folder.resolve(generation + "-" + module.getFileName());
          List<String> command = List.of("ptxas", "-O0", "-arch=" + generation);
          Once.check(
              command + assembler + hashes.get(module.getFileName().toString()),
              () -> {
                Programs.run(with(command, module.toString(), "-o", out.toString()));
                assertThat(out).isNotEmptyFile();
              });
        });
  }

  private static String[] with(List<String> command, String... more) {
    return Stream.concat(command.stream(), Stream.of(more)).toArray(String[]::new);
  }

  @ParameterizedTest
  @MethodSource("modules")
  void module_hasNoOtherKernels(Path module) throws IOException {
    List<String> entries =
        Pattern.compile("[.]entry (\\w+)\\(")
            .matcher(Files.readString(module))
            .results()
            .map(found -> found.group(1))
            .toList();
    assertThat(KernelName.all().getOrDefault(name(module), Set.of()))
        .extracting(KernelName::function)
        .containsExactlyInAnyOrderElementsOf(entries);
  }

  @ParameterizedTest
  @MethodSource("modules")
  void module_isForCuda12AndTuring(Path module) throws IOException {
    assertThat(Files.readString(module))
        .startsWith(".version 8.0\n.target sm_75\n.address_size 64\n");
  }

  /// The cache for what nobody writes does not see what a peer has written.
  @ParameterizedTest
  @MethodSource("modules")
  void module_readsPeersMemory_notThroughTheConstantCache(Path module) throws IOException {
    assertThat(Files.readString(module)).doesNotContain(".nc.").doesNotContain("ldu.");
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void kernel_isThere_andTakesWhatWeGive(KernelName kernel) throws IOException {
    int bytes = kernel.equals(KernelName.FETCH) ? Parameters.COPY_BYTES : Parameters.CALL_BYTES;
    assertThat(Files.readString(PTX.resolve(kernel.module() + ".ptx")))
        .containsPattern(
            Pattern.compile(
                ("[.]entry %s\\(\\s*[.]param [.]align 8 [.]b8 %1$s_param_0\\[%d]\\s*\\)"
                        + "\\s*[.]maxntid %d,")
                    .formatted(kernel.function(), bytes, CudaProvider.THREADS)));
  }
}
