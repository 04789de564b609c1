package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.List;

/// A send and a receive that end together.
final class ExchangeCall extends Call {
  private final SendCall send;
  private final ReceiveCall receive;

  ExchangeCall(Context context, SendCall send, ReceiveCall receive) {
    super(context, send.isBound() || receive.isBound() ? Thread.currentThread() : null);
    this.send = send;
    this.receive = receive;
    send.partOf(this);
    receive.partOf(this);
  }

  @Override
  boolean advance() {
    if (!send.hasEnded() || !receive.hasEnded()) {
      return false;
    }
    RuntimeException failure = send.failure() != null ? send.failure() : receive.failure();
    if (failure != null) {
      fail(failure);
    } else {
      complete(receive.received());
    }
    return true;
  }

  @Override
  boolean leavesTheRest() {
    return true;
  }

  @Override
  void missing(BitSet ranks) {
    if (!send.hasEnded()) {
      send.missing(ranks);
    }
    if (!receive.hasEnded()) {
      receive.missing(ranks);
    }
  }

  @Override
  String lacks(List<Integer> absent) {
    return send.hasEnded() ? receive.lacks(absent) : send.lacks(absent);
  }

  @Override
  BitSet lost(BitSet left) {
    return new BitSet(); // its two parts are calls in flight themselves
  }

  @Override
  boolean touches(MemorySegment memory) {
    return false;
  }

  @Override
  void release() {}

  @Override
  String describe() {
    return "sendReceive: " + send.describe() + " and " + receive.describe();
  }
}
