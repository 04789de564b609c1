package org.comm4j.api;

/// Memory that the ranks of one host share: one copy of a large table for all of them.
///
/// Got from [Communicator#sharedMemory()]; the *node group* is the communicator's ranks on this
/// host. On a group of one a region is plain memory. The methods here are calls on the
/// communicator, for one thread at a time, and so is a region's fence; the other methods of a
/// region may be called from any thread.
public interface SharedMemoryProvider {
  /// {@return the node group} Each rank may ask alone; its barrier is a collective of the group.
  NodeCommunicator splitLocal();

  /// {@return whether this rank is the node group's rank 0, which populates regions} Each rank may
  /// ask alone.
  default boolean isLeader() {
    return splitLocal().rank() == 0;
  }

  /// Makes a region; a collective of the node group. The storage is the leader's.
  ///
  /// @param type what the elements are, the same on every rank
  /// @param count how many, the same on every rank; may be 0
  /// @return the region, allocated; every rank closes it
  /// @throws IllegalArgumentException if the count is negative, or so large that no memory has it
  /// @throws MismatchedCallException if ranks disagree
  /// @throws TransportFailedException on every rank, if there is no space; the message names the
  ///   place
  /// @throws UnsupportedException where the ranks of a host share no memory
  SharedRegion<HostData> createRegion(DataType type, long count);

  /// Makes a region in the memory of the leader's device, which the devices of the others reach; a
  /// collective of the node group. There is one copy, read over the links between the devices.
  /// Where ranks are threads, calls of another communicator can have it as input only if one of
  /// that communicator's ranks has the leader's device; the same holds for registered memory and
  /// its owner's device.
  ///
  /// @param type what the elements are, the same on every rank
  /// @param count how many, the same on every rank; may be 0
  /// @return the region, allocated; every rank closes it
  /// @throws MismatchedCallException if ranks disagree
  /// @throws TransportFailedException on every rank, if there is no space, or a device does not
  ///   reach the leader's; the message says which
  /// @throws UnsupportedException where ranks own no devices
  default SharedRegion<DeviceData> createDeviceRegion(DataType type, long count) {
    throw noDevices();
  }

  /// Lets the devices of the node group reach memory that the ranks have already, such as a tensor
  /// of another library; a collective of the node group. Each rank brings some, as much as it
  /// likes, at any offset within its allocation; who has none brings data of no elements.
  ///
  /// @param data of this rank's device, allocated in a way that can be shared (with CUDA: by
  ///   `cuMemAlloc` or `cudaMalloc`). Whoever allocated it keeps it until the result is closed
  /// @return where this rank's device reaches everybody's data; every rank closes it
  /// @throws IllegalArgumentException if the data is no memory of this rank's device
  /// @throws TransportFailedException on the others then, and on every rank if a device does not
  ///   reach another one's memory; the message says whose and why
  /// @throws UnsupportedException where ranks own no devices
  default RegisteredMemory register(DeviceData data) {
    throw noDevices();
  }

  private static UnsupportedException noDevices() {
    return new UnsupportedException(
        "the ranks of this backend own no devices; use one that has DEVICE_MEMORY, for example cuda");
  }
}
