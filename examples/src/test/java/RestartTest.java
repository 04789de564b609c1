import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class RestartTest {
  @TempDir Path folder;

  @Test
  void train_endedBetweenSaves_goesOnFromTheLastOne() throws IOException {
    Path file = folder.resolve("weights");
    train(file, 100);
    Path whole = Files.copy(file, folder.resolve("whole"));

    train(file, 250);
    List<float[]> again = train(file, 1000);

    assertThat(again).hasSize(3).containsOnly(train(whole, 1000).getFirst());
    for (int i = 0; i < again.getFirst().length; i++) {
      assertThat(again.getFirst()[i]).isBetween(i + 0.9f, i + 1.1f);
    }
  }

  @Test
  void readme_showsTheLoop() throws IOException {
    String code = Files.readString(Path.of("Restart.java"));
    int start = code.indexOf("    float[] weights = new float[WEIGHTS];");
    String loop = code.substring(start, code.indexOf("    return weights;", start));
    assertThat(Files.readString(Path.of("../README.md")))
        .contains("```java\n" + loop.indent(-4) + "```");
  }

  private static List<float[]> train(Path file, int steps) {
    return LocalGroup.call(3, CommConfig.builder().build(), comm -> train(comm, file, steps));
  }

  private static float[] train(Communicator comm, Path file, int steps) {
    try {
      return Restart.train(comm, file, steps);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
