package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.comm4j.api.CommConfig;
import org.junit.jupiter.api.Test;

class AgronaAccessTest {
  @Test
  void jdkIsClosedToAgrona_remedyIsNamed() throws Exception {
    assertThat(ChildJvm.run(ChildJvm.command(List.of(), IsAvailable.class)))
        .startsWith("0:")
        .contains("Unavailable[", "start java with " + ChildJvm.OPENED);
    assertThat(ChildJvm.run(ChildJvm.command(List.of(ChildJvm.OPENED), IsAvailable.class)))
        .contains("Ready[");
  }

  /// A process that says whether the backend is available.
  static final class IsAvailable {
    private IsAvailable() {}

    public static void main(String[] args) {
      System.out.println(new AeronProvider().availability(CommConfig.builder().build()));
    }
  }
}
