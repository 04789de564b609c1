package org.comm4j.backend.local;

import java.lang.invoke.VarHandle;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// What lies between a store and a look, on both sides of a sleep: who wakes has stored a flag and
/// looks whether anybody sleeps; who sleeps has said so and looks at the flags. One of them must
/// see what the other stored, which takes a full fence on each side.
///
/// Ranks store flags in every call and sleep seldom. Where the kernel can make all processors pass
/// a fence (membarrier), who sleeps asks for that, and who wakes needs nothing but the compiler's
/// order.
final class SleepFence {
  private final @Nullable NativeCalls barriers;

  private SleepFence(@Nullable NativeCalls barriers) {
    this.barriers = barriers;
  }

  /// A full fence on both sides.
  static SleepFence symmetric() {
    return new SleepFence(null);
  }

  /// The kernel's barrier on the side of who sleeps. Every rank must have the same kind.
  ///
  /// @param joined on which [NativeCalls#joinBarriers] was true
  static SleepFence asymmetric(NativeCalls joined) {
    return new SleepFence(joined);
  }

  /// For ranks that are threads of this process.
  static SleepFence ofThisProcess(Optional<NativeCalls> calls) {
    return calls.filter(NativeCalls::joinBarriers).map(SleepFence::asymmetric).orElse(symmetric());
  }

  /// Between the store of a flag and the look whether anybody sleeps.
  void beforeLookingForSleepers() {
    if (barriers == null) {
      VarHandle.fullFence();
    } else {
      VarHandle.storeStoreFence(); // no load is compiled to before it; costs nothing on x86
    }
  }

  /// Between saying that this rank is about to sleep and the look at the flags.
  void beforeLookingForFlags() {
    if (barriers == null) {
      VarHandle.fullFence();
    } else {
      barriers.barrier();
    }
  }
}
