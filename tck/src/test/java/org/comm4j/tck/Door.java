package org.comm4j.tck;

import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.comm4j.api.AbortedException;
import org.comm4j.api.Capabilities;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommException;
import org.comm4j.api.DataType;
import org.comm4j.api.Operation;
import org.comm4j.api.Received;
import org.comm4j.api.SharedMemoryProvider;
import org.comm4j.api.Topology;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.jspecify.annotations.Nullable;

/// A backend's communicator that passes everything on; what is made from it has the same door.
class Door implements BackendCommunicator {
  final BackendCommunicator inner;
  private final UnaryOperator<BackendCommunicator> again;

  /// @param again makes the same door for another communicator
  Door(BackendCommunicator inner, UnaryOperator<BackendCommunicator> again) {
    this.inner = inner;
    this.again = again;
  }

  /// A call that has ended.
  record Ended(@Nullable Received result) implements Pending {
    @Override
    public boolean isDone() {
      return true;
    }

    @Override
    public boolean await(long nanos) {
      return true;
    }

    @Override
    public @Nullable Received received() {
      return result;
    }

    @Override
    public void onEnd(Runnable action) {
      action.run();
    }
  }

  /// What the backend is asked to do in place of this; null if the door has done it itself.
  @Nullable Operation change(Operation operation) {
    return operation;
  }

  /// Called when an operation has ended well that the door passed on.
  void ended(Operation operation) {}

  /// Called when one has failed.
  void failed(Operation operation) {}

  @Override
  public @Nullable Received run(Operation operation) {
    Operation changed = change(operation);
    if (changed == null) {
      return null;
    }
    try {
      Received result = inner.run(changed);
      ended(operation);
      return result;
    } catch (CommException e) {
      failed(operation);
      throw e;
    }
  }

  @Override
  public final Pending submit(Operation operation) {
    Operation changed = change(operation);
    return changed == null ? new Ended(null) : inner.submit(changed);
  }

  @Override
  public int rank() {
    return inner.rank();
  }

  @Override
  public int size() {
    return inner.size();
  }

  @Override
  public String name() {
    return inner.name();
  }

  @Override
  public String backend() {
    return inner.backend();
  }

  @Override
  public Capabilities capabilities() {
    return inner.capabilities();
  }

  @Override
  public Topology topology() {
    return inner.topology();
  }

  @Override
  public void sync() {
    inner.sync();
  }

  @Override
  public Optional<BackendCommunicator> split(int color, int key) {
    return inner.split(color, key).map(again);
  }

  @Override
  public BackendCommunicator duplicate() {
    return again.apply(inner.duplicate());
  }

  @Override
  public BackendCommunicator splitLocal() {
    return again.apply(inner.splitLocal());
  }

  @Override
  public Shrink shrink() {
    Shrink made = inner.shrink();
    return new Shrink(again.apply(made.communicator()), List.copyOf(made.oldRanks()), made.epoch());
  }

  @Override
  public CommBuffer allocate(DataType type, long count) {
    return inner.allocate(type, count);
  }

  @Override
  public SharedMemoryProvider sharedMemory() {
    return inner.sharedMemory();
  }

  @Override
  public void abort(CommException failure) {
    inner.abort(failure);
  }

  @Override
  public void leaveCall(AbortedException reason) {
    inner.leaveCall(reason);
  }

  @Override
  public void abortProcess(int code) {
    inner.abortProcess(code);
  }

  @Override
  public @Nullable CommException failure() {
    return inner.failure();
  }

  @Override
  public void close() {
    inner.close();
  }
}
