package org.comm4j.backend.mpi;

import java.util.List;
import org.comm4j.api.Collective;
import org.jspecify.annotations.Nullable;

/// A collective in flight.
final class CollectiveCall extends MpiCall {
  private final @Nullable String userOperator;

  /// @param label the call's own, or of what the library itself makes it for
  CollectiveCall(
      MpiGroup group,
      String label,
      Collective call,
      long number,
      CallMemory memory,
      List<Stage> stages) {
    super(group, label, number, memory, stages);
    this.userOperator = Reductions.userDefined(call);
  }

  @Override
  String thrower() {
    return userOperator == null ? super.thrower() : "user-defined operator '" + userOperator + "'";
  }
}
