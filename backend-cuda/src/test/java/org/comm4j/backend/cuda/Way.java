package org.comm4j.backend.cuda;

import java.util.Optional;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;

/// The ways in which an all-reduce goes.
enum Way {
  ONE_STAGE,
  TWO_STAGES,
  LOW_LATENCY;

  /// {@return the kernel for it, if there is one}
  Optional<KernelName> kernel(ReduceOp op, DataType type) {
    return this == LOW_LATENCY ? KernelName.lowLatency(op, type) : KernelName.reduce(op, type);
  }

  /// {@return the kernel for a sum or average whose output has another type}
  KernelName castKernel(DataType type) {
    return this == LOW_LATENCY
        ? KernelName.lowLatencyAndCast(type)
        : KernelName.reduceAndCast(type);
  }

  /// Makes a call go this way.
  void set(Parameters parameters, long count, int ranks) {
    if (this == ONE_STAGE) {
      parameters.oneStage(0, count, ranks);
    } else {
      parameters.twoStage(count, ranks);
    }
  }
}
