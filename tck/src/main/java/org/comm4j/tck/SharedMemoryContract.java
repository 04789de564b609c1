package org.comm4j.tck;

import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;

/// The rules of shared memory as tests of a backend; see [CommunicatorContract].
public abstract class SharedMemoryContract extends CommunicatorContract {
  /// For subclasses.
  protected SharedMemoryContract() {}

  @Override
  final List<LiveCheck> checks() {
    return LiveCheck.ofSharedMemory();
  }

  @Override
  final Stream<DynamicTest> sizes() {
    return Stream.empty();
  }
}
