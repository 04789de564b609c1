import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.comm4j.api.LocalGroup;
import org.junit.jupiter.api.Test;

final class HelloTest {
  @Test
  void main_ranksThatAreThreads_runs() {
    LocalGroup.run(3, _ -> Hello.main(new String[0]));
  }

  @Test
  void readme_showsTheProgram() throws IOException {
    assertThat(Files.readString(Path.of("../README.md")))
        .contains("```java\n" + Files.readString(Path.of("Hello.java")) + "```");
  }
}
