package org.comm4j.core.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class WarmUpTest {
  /// Uses a kernel until its loop is worth a warm-up and says whether one was begun.
  static final class Program {
    private Program() {}

    public static void main(String[] args) {
      Kernel kernel = Kernel.of(ReduceOp.SUM, DataType.FLOAT32);
      MemorySegment a = MemorySegment.ofArray(new float[1 << 20]);
      MemorySegment b = MemorySegment.ofArray(new float[1 << 20]);
      for (int i = 0; i < 2; i++) {
        kernel.combine(a, 0, b, 0, 1 << 20);
      }
      System.out.println(WarmUp.hasStarted());
    }
  }

  /// Else a core would be busy for nothing, for as long as a loop is tried.
  @ParameterizedTest
  @CsvSource({"-XX:+TieredCompilation,true", "-XX:TieredStopAtLevel=1,false", "-Xint,false"})
  void loopsMuchUsed_areCalledOnlyWhereTheyCanBecomeFast(String option, boolean expected)
      throws IOException {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                option,
                "--add-modules=jdk.incubator.vector",
                "-cp",
                classPath(),
                Program.class.getName()));
    Process process =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    try (InputStream out = process.getInputStream()) {
      assertThat(new String(out.readAllBytes(), StandardCharsets.UTF_8).strip())
          .isEqualTo(Boolean.toString(expected));
    }
  }

  /// Where these tests and what they need are, be they class path or modules.
  private static String classPath() {
    URI own = URI.create(String.valueOf(WarmUpTest.class.getResource("WarmUpTest.class")));
    String root = own.getPath().replace("org/comm4j/core/kernel/WarmUpTest.class", "");
    return Stream.of(
            root,
            System.getProperty("java.class.path", ""),
            System.getProperty("jdk.module.path", ""))
        .filter(path -> !path.isEmpty())
        .collect(Collectors.joining(File.pathSeparator));
  }
}
