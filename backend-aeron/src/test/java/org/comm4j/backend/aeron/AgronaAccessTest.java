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
        .contains("Unavailable[", "start java with " + AeronGroups.OPENED);
    assertThat(
            ChildJvm.run(AeronGroups.JVM.command(List.of(AeronGroups.OPENED), IsAvailable.class)))
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
