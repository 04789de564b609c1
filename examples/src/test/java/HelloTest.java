import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.comm4j.api.LocalGroup;
import org.junit.jupiter.api.Test;

final class HelloTest {
  @Test
  void main_ranksThatAreThreads_eachPrintsTheSums() {
    var printed = new ByteArrayOutputStream();
    PrintStream out = System.out;
    System.setOut(new PrintStream(printed, true, UTF_8));
    try {
      LocalGroup.run(3, _ -> Hello.main(new String[0]));
    } finally {
      System.setOut(out);
    }
    assertThat(printed.toString(UTF_8).lines())
        .containsExactlyInAnyOrder(
            "rank 0 has [3.0, 3.0, 1.5]",
            "rank 1 has [3.0, 3.0, 1.5]",
            "rank 2 has [3.0, 3.0, 1.5]");
  }

  @Test
  void readme_showsTheProgram() throws IOException {
    assertThat(Files.readString(Path.of("../README.md")))
        .contains("```java\n" + Files.readString(Path.of("Hello.java")) + "```");
  }
}
