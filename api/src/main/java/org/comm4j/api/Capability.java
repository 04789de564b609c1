package org.comm4j.api;

/// What a communicator can do beyond the collectives that every backend has.
public enum Capability {
  /// [Communicator#split], [Communicator#duplicate] and [Communicator#splitLocal].
  SPLIT,
  /// [Communicator#shrink()] after a failure.
  SHRINK,
  /// Messages between two ranks.
  POINT_TO_POINT,
  /// [ReduceOp.UserDefined].
  USER_DEFINED_OPERATORS,
  /// [Epilogue]s of reductions.
  EPILOGUE,
  /// [Epilogue#expression()] of data in a device's memory, those that the backend has been told of.
  EXPRESSIONS,
  /// [Reduction#ORDERED].
  ORDERED_REDUCTION,
  /// Regions shared by all ranks of a host ([Communicator#sharedMemory()]) are one memory, no
  /// copies.
  SHARED_MEMORY,
  /// Data in the host's memory.
  HOST_MEMORY,
  /// Data in a device's memory.
  DEVICE_MEMORY,
  /// [Communicator#streamSync()].
  STREAMS,
  /// Ranks that disagree on a call are detected without `COMM_CHECK=full`.
  MISMATCH_DETECTION,
  /// The death of a rank is noticed and named.
  FAILURE_DETECTION
}
