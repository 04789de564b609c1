package org.comm4j.backend.mpi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

@EnabledOnOs(value = OS.LINUX, disabledReason = "the backend needs Linux")
class SignalsTest {
  private static final int XFSZ = 25; // of files that get too long, which none here does

  /// The thread is that which gives up to wait for a library.
  @Test
  void restore_notedOnAnotherThread_hasThemHandledAsBefore() throws Throwable {
    Linker linker = Linker.nativeLinker();
    MethodHandle sigaction =
        linker.downcallHandle(
            linker.defaultLookup().findOrThrow("sigaction"),
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, ADDRESS));
    List<String> before = RankInTrouble.handlers();
    try (Signals kept = CompletableFuture.supplyAsync(Signals::keep).join();
        Arena arena = Arena.ofConfined()) {
      int code = (int) sigaction.invokeExact(XFSZ, arena.allocate(512, 16), MemorySegment.NULL);
      assertThat(code).isZero();
      assertThat(RankInTrouble.handlers()).isNotEqualTo(before);

      kept.restore();

      assertThat(RankInTrouble.handlers()).isEqualTo(before);
    }
  }
}
