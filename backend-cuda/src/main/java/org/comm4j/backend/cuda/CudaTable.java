package org.comm4j.backend.cuda;

/// Which kernel does an all-reduce, by how much data there is.
final class CudaTable {
  /// Up to how many bytes each word goes with its flag, which doubles it and saves a meeting.
  static final long LOW_LATENCY_BYTES = 8 << 10;

  private CudaTable() {}

  /// Up to how many bytes each rank reduces everything: reading the data of few ranks takes no
  /// longer than meeting once more. Mojo's numbers.
  static long oneStageBytes(int ranks) {
    return ranks <= 4 ? 512 << 10 : 256 << 10;
  }
}
