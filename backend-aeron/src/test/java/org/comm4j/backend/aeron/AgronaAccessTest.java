package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.comm4j.api.CommConfig;
import org.comm4j.tck.ChildJvm;
import org.junit.jupiter.api.Test;

class AgronaAccessTest {
  @Test
  void jdkIsClosedToAgrona_remedyIsNamed() throws Exception {
    assertThat(ChildJvm.run(AeronGroups.JVM.command(List.of(), IsAvailable.class)))
        .startsWith("0:")
        .contains("Unavailable[", "start java with " + AeronGroups.OPENED)
        .contains("JDK flag=%s (missing)".formatted(AeronGroups.OPENED));
    assertThat(
            ChildJvm.run(AeronGroups.JVM.command(List.of(AeronGroups.OPENED), IsAvailable.class)))
        .contains("Ready[", "JDK flag=%s (given)".formatted(AeronGroups.OPENED));
  }

  /// A process that says whether the backend is available, and what it is about.
  static final class IsAvailable {
    private IsAvailable() {}

    public static void main(String[] args) {
      CommConfig config = CommConfig.builder().build();
      System.out.println(new AeronProvider().availability(config));
      System.out.println(new AeronProvider().details(config));
    }
  }
}
