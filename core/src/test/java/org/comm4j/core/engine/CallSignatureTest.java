package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

class CallSignatureTest {
  /// Also where one differs by so much more as another by so much less.
  @Test
  void digest_ofOtherCalls_isAnother() {
    Set<Long> digests = new HashSet<>();
    int signatures = 0;
    for (long what = 0; what < 40; what++) {
      for (long count = 0; count < 2000; count++) {
        for (long detail = 0; detail < 3; detail++) {
          digests.add(new CallSignature(what, count, detail << 32).digest());
          signatures++;
        }
      }
    }

    assertThat(digests).hasSize(signatures);
  }
}
