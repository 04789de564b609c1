package org.comm4j.backend.cuda;

import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.HostData;
import org.comm4j.core.engine.Region;

/// A region in the memory of the leader's device.
final class CudaRegion extends Region<DeviceData> {
  private final CudaRank rank;
  private final DeviceData data;

  /// @param data where this rank's device reaches it
  CudaRegion(CudaRank rank, DataType type, DeviceData data, boolean leader, Owner owner) {
    super(type, data.count(), leader, owner);
    this.rank = rank;
    this.data = data;
  }

  @Override
  protected DeviceData whole(boolean isReadOnly) {
    return data;
  }

  @Override
  protected DeviceData part(DeviceData whole, long from, long count) {
    return whole.slice(from, count);
  }

  @Override
  protected void copyIn(HostData source, DeviceData part) {
    rank.write(source, part.address());
  }

  @Override
  protected void copyOut(DeviceData part, HostData target) {
    rank.read(part.address(), target);
  }
}
