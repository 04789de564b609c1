package org.comm4j.api;

import java.util.Objects;
import java.util.function.Consumer;

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
        communicator.inside("barrier of the node group", node::barrier);
      }
    };
  }

  @Override
  public SharedRegion<HostData> createRegion(DataType type, long count) {
    Objects.requireNonNull(type, "type");
    return new CheckedRegion<>(
        communicator, communicator.inside("createRegion", () -> backend.createRegion(type, count)));
  }

  @Override
  public SharedRegion<DeviceData> createDeviceRegion(DataType type, long count) {
    Objects.requireNonNull(type, "type");
    return new CheckedRegion<>(
        communicator,
        communicator.inside("createDeviceRegion", () -> backend.createDeviceRegion(type, count)));
  }

  @Override
  public RegisteredMemory register(DeviceData data) {
    Objects.requireNonNull(data, "data");
    return communicator.inside("register", () -> backend.register(data));
  }

  /// The one [SharedRegion] that users see. Its fence is a call on the communicator; all else is
  /// this rank's own, by any thread, and after the communicator's close too.
  private record CheckedRegion<D extends CommData>(
      CheckedCommunicator communicator, SharedRegion<D> backend) implements SharedRegion<D> {
    @Override
    public DataType type() {
      return backend.type();
    }

    @Override
    public long count() {
      return backend.count();
    }

    @Override
    public Phase phase() {
      return backend.phase();
    }

    @Override
    public void populate(Consumer<D> writer) {
      OperatorCalls.refuse("populate of a region");
      backend.populate(writer);
    }

    @Override
    public void write(long from, HostData source) {
      OperatorCalls.refuse("write of a region");
      OperationChecks.usable("source", source);
      backend.write(from, source);
    }

    @Override
    public void fence() {
      communicator.inside("fence", backend::fence);
    }

    @Override
    public D data() {
      return backend.data();
    }

    @Override
    public void read(long from, HostData target) {
      OperationChecks.usable("target", target);
      Checks.written("target", target);
      backend.read(from, target);
    }

    @Override
    public void close() {
      OperatorCalls.refuse("close of a region");
      backend.close();
    }
  }
}
