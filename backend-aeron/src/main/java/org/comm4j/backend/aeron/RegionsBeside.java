package org.comm4j.backend.aeron;

import java.lang.foreign.MemorySegment;
import org.comm4j.core.transport.HostTransport;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;

/// UDP between ranks that are all on one host, and memory that they share for regions alone.
///
/// @param near whose windows are used, and nothing else; closed with this one
/// @param far all messages go by it; closed with this one
record RegionsBeside(HostTransport near, Transport far) implements HostTransport {
  @Override
  public boolean carriesCollectives() {
    return false;
  }

  @Override
  public int rank() {
    return far.rank();
  }

  @Override
  public int size() {
    return far.size();
  }

  @Override
  public int maxPayloadBytes(int peer) {
    return far.maxPayloadBytes(peer);
  }

  @Override
  public boolean offer(int peer, long[] header, MemorySegment payload) {
    return far.offer(peer, header, payload);
  }

  @Override
  public int poll(PayloadHandler handler, int limit) {
    return far.poll(handler, limit);
  }

  @Override
  public void park(long nanos) {
    far.park(nanos);
  }

  @Override
  public void wakeUp() {
    far.wakeUp();
  }

  @Override
  public long windowBytes() {
    return near.windowBytes();
  }

  @Override
  public String remedy() {
    return near.remedy();
  }

  @Override
  public MemorySegment window(int rank) {
    return near.window(rank);
  }

  @Override
  public void reserve(long offset, long bytes) {
    near.reserve(offset, bytes);
  }

  @Override
  public Extent map(long offset, long bytes) {
    return near.map(offset, bytes);
  }

  @Override
  public Extent view(int rank, long offset, long bytes) {
    return near.view(rank, offset, bytes);
  }

  @Override
  public void wake(int rank) {
    near.wake(rank);
  }

  @Override
  public void close() {
    try {
      near.close();
    } finally {
      far.close();
    }
  }
}
