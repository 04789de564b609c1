package org.comm4j.api;

/// The one [CommBuffer] that users see: checks what of theirs is copied from or to, wherever the
/// backend's memory is.
record CheckedBuffer(CommBuffer backend) implements CommBuffer {
  @Override
  public CommData data() {
    return backend.data();
  }

  @Override
  public HostData hostData() {
    return backend.hostData();
  }

  @Override
  public void write(long from, HostData source) {
    OperationChecks.usable("source", source);
    backend.write(from, source);
  }

  @Override
  public void read(long from, HostData target) {
    OperationChecks.usable("target", target);
    Checks.written("target", target);
    backend.read(from, target);
  }

  @Override
  public void close() {
    OperatorCalls.refuse("close of a buffer");
    backend.close();
  }
}
