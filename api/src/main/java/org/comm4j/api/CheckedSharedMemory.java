package org.comm4j.api;

import java.util.Objects;

/// The one [SharedMemoryProvider] that users see: what it does is a call on its communicator, which
/// one thread at a time may make.
final class CheckedSharedMemory implements SharedMemoryProvider {
  private final CheckedCommunicator communicator;
  private final SharedMemoryProvider backend;

  CheckedSharedMemory(CheckedCommunicator communicator, SharedMemoryProvider backend) {
    this.communicator = communicator;
    this.backend = backend;
  }

  @Override
  public NodeCommunicator splitLocal() {
    NodeCommunicator node = communicator.inside("splitLocal", backend::splitLocal);
    return new NodeCommunicator() {
      @Override
      public int rank() {
        return node.rank();
      }

      @Override
      public int size() {
        return node.size();
      }

      @Override
      public void barrier() {
        var _ =
            communicator.inside(
                "barrier of the node group",
                () -> {
                  node.barrier();
                  return node;
                });
      }
    };
  }

  @Override
  public SharedRegion<HostData> createRegion(DataType type, long count) {
    Objects.requireNonNull(type, "type");
    return communicator.inside("createRegion", () -> backend.createRegion(type, count));
  }

  @Override
  public SharedRegion<DeviceData> createDeviceRegion(DataType type, long count) {
    Objects.requireNonNull(type, "type");
    return communicator.inside("createDeviceRegion", () -> backend.createDeviceRegion(type, count));
  }

  @Override
  public RegisteredMemory register(DeviceData data) {
    Objects.requireNonNull(data, "data");
    return communicator.inside("register", () -> backend.register(data));
  }
}
