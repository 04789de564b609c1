package org.comm4j.core.engine;

import java.util.ArrayDeque;
import org.comm4j.api.DataType;
import org.jspecify.annotations.Nullable;

/// A message between two ranks as its receiver sees it: announced, perhaps partly here, perhaps
/// matched.
final class Message {
  private final int source;
  private final long number;
  private final int tag;
  private final DataType type;
  private final long count;
  private @Nullable ArrayDeque<KeptPayloads.Payload> payloads; // most messages never keep any
  private boolean requested;
  private long place; // where it may be read, else 0
  private boolean confirmed;
  private @Nullable ReceiveCall receiver;
  private @Nullable SendCall local;
  private boolean hasBegun; // an empty one has come when its payload has, which is empty
  private long arrivedBytes;

  /// Names a message of a communicator.
  record Key(int source, long number) {}

  Message(int source, long number, int tag, DataType type, long count) {
    this.source = source;
    this.number = number;
    this.tag = tag;
    this.type = type;
    this.count = count;
  }

  int source() {
    return source;
  }

  long number() {
    return number;
  }

  int tag() {
    return tag;
  }

  DataType type() {
    return type;
  }

  long count() {
    return count;
  }

  /// Whether all of it has come, though perhaps not been taken.
  boolean hasArrived() {
    return hasBegun && arrivedBytes == type.bytes(count);
  }

  void arrived(long bytes) {
    hasBegun = true;
    arrivedBytes += bytes;
  }

  void add(KeptPayloads.Payload payload) {
    if (payloads == null) {
      payloads = new ArrayDeque<>(1);
    }
    payloads.add(payload);
  }

  boolean hasPayloads() {
    return payloads != null && !payloads.isEmpty();
  }

  KeptPayloads.@Nullable Payload nextPayload() {
    return payloads == null ? null : payloads.poll();
  }

  /// @param readablePlace where the receiver may read it, else 0
  /// @param toBeConfirmed whether the sender says afterwards that what was read there was the
  ///   message
  void request(long readablePlace, boolean toBeConfirmed) {
    requested = true;
    place = readablePlace;
    confirmed = toBeConfirmed;
  }

  boolean isConfirmed() {
    return confirmed;
  }

  long place() {
    return place;
  }

  /// Whether the sender waits to be asked; asking once is enough.
  boolean takeRequest() {
    boolean was = requested;
    requested = false;
    return was;
  }

  @Nullable ReceiveCall receiver() {
    return receiver;
  }

  void receiver(ReceiveCall call) {
    receiver = call;
  }

  /// The send that waits on this very rank, for a large message to itself.
  @Nullable SendCall local() {
    return local;
  }

  void local(SendCall call) {
    local = call;
  }

  @Override
  public String toString() {
    return "message %s × %d with tag %d from rank %d".formatted(type, count, tag, source);
  }
}
