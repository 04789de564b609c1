package org.comm4j.backend.cuda;

import java.lang.foreign.Arena;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.DeviceData;
import org.comm4j.api.HostData;

/// Memory of a rank's device.
final class CudaBuffer implements CommBuffer {
  private final CudaRank rank;
  private final Arena life = Arena.ofShared(); // of views: the memory is given to others later
  private final DeviceData data;
  private boolean closed; // guarded by this
  private boolean isHeld; // guarded by this

  private CudaBuffer(CudaRank rank, long address, DataType type, long count) {
    this.rank = rank;
    this.data = new DeviceData(type, address, count, rank.device().ordinal(), life.scope());
    this.isHeld = data.bytes() > 0;
  }

  static CudaBuffer allocate(CudaRank rank, DataType type, long count) {
    long bytes = type.bytes(count);
    long address = bytes == 0 ? 0 : rank.gpu().memory().take(bytes);
    var buffer = new CudaBuffer(rank, address, type, count);
    try {
      if (bytes > 0) {
        rank.clear(address, bytes);
      }
      return buffer;
    } catch (RuntimeException e) {
      rank.gpu().memory().giveBack(bytes, address);
      throw e;
    }
  }

  @Override
  public synchronized CommData data() {
    checkOpen();
    return data;
  }

  private void checkOpen() {
    if (closed) {
      throw new IllegalStateException("buffer " + data + " is closed");
    }
  }

  @Override
  public synchronized void write(long from, HostData source) {
    rank.write(source, part("source", from, source).address());
  }

  @Override
  public synchronized void read(long from, HostData target) {
    DeviceData source = part("target", from, target);
    if (target.segment().isReadOnly()) {
      throw new IllegalArgumentException(
          "target: %s is read-only (expected: memory that can be written)".formatted(target));
    }
    rank.read(source.address(), target);
  }

  private DeviceData part(String what, long from, HostData other) {
    checkOpen();
    if (other.type() != data.type()) {
      throw new IllegalArgumentException(
          "%s: %s (expected: %s, the buffer's type)".formatted(what, other, data.type()));
    }
    return data.slice(from, other.count());
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      rank.checkUnused("buffer", data);
      end();
    }
  }

  /// Ends it with its communicator: the user has no access any more, and the memory goes back
  /// unless another communicator's call uses it.
  ///
  /// @return false if that has to be tried again later
  synchronized boolean end() {
    if (!closed) {
      closed = true;
      life.close();
    }
    if (isHeld && rank.userOf(data) == null) {
      isHeld = false;
      rank.gpu().memory().giveBack(data.bytes(), data.address());
    }
    return !isHeld;
  }

  synchronized boolean isClosed() {
    return closed;
  }
}
