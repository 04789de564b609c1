package org.comm4j.backend.local;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class NativeCallsTest {
  private static final long MIB = 1 << 20;

  private record Part(long offset, long bytes) {}

  /// A profiler's signals come so often that the kernel never gets further.
  @Test
  void inParts_signalsEndWhatTakesLong_reservesAllInSmallerParts() {
    var reserved = new ArrayList<Part>();
    int error =
        NativeCalls.inParts(
            4096,
            100 * MIB + 4096,
            (offset, bytes) -> {
              if (bytes > 3 * MIB) {
                return NativeCalls.EINTR;
              }
              reserved.add(new Part(offset, bytes));
              return 0;
            });
    assertThat(error).isZero();
    long end = 4096;
    for (Part each : reserved) {
      assertThat(each.offset()).isEqualTo(end);
      end += each.bytes();
    }
    assertThat(end).isEqualTo(100 * MIB + 8192);
    assertThat(reserved).hasSizeLessThan(100);
  }

  /// What fails as a whole leaves nothing behind.
  @Test
  void inParts_noSignals_reservesAllAtOnce() {
    var asked = new ArrayList<Part>();
    int error =
        NativeCalls.inParts(
            0,
            100 * MIB,
            (offset, bytes) -> {
              asked.add(new Part(offset, bytes));
              return NativeCalls.ENOSPC;
            });
    assertThat(error).isEqualTo(NativeCalls.ENOSPC);
    assertThat(asked).isEqualTo(List.of(new Part(0, 100 * MIB)));
  }
}
