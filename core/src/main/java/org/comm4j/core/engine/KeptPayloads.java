package org.comm4j.core.engine;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import org.comm4j.api.TransportFailedException;

/// The payloads of a communicator that came before they could be used, and what their senders have
/// spent on them. When the communicator ends each sender gets the rest back, whatever became of its
/// payloads: who runs out of credit has to ask before every message. Guarded by the engine's lock.
final class KeptPayloads {
  private final Context context;
  private final PeerTable<Debt> debts;
  private long everKept;
  private long ofMine; // what this rank has sent to itself

  KeptPayloads(Context context) {
    this.context = context;
    this.debts = new PeerTable<>(context.size(), Debt::new);
  }

  private static final class Debt {
    final int peer;
    long cost;

    Debt(int peer) {
      this.peer = peer;
    }
  }

  /// A copy of what came.
  ///
  /// @param cost what its sender gets back for it
  record Payload(byte[] bytes, long cost) {
    MemorySegment memory() {
      return MemorySegment.ofArray(bytes);
    }
  }

  Payload keep(int peer, MemorySegment payload, boolean credited) {
    long cost = credited ? Frame.cost(payload.byteSize()) : 0;
    if (credited) {
      debts.get(peer).cost += cost;
    }
    everKept++;
    return new Payload(payload.toArray(JAVA_BYTE), cost);
  }

  /// A copy of what this rank sends to itself.
  Payload keepOfMine(MemorySegment payload) {
    long cost = Frame.cost(payload.byteSize());
    ofMine += cost;
    everKept++;
    return new Payload(payload.toArray(JAVA_BYTE), cost);
  }

  /// What the copies cost that this rank has not taken yet of what it has sent to itself.
  long ofMine() {
    return ofMine;
  }

  /// How many there have been.
  long everKept() {
    return everKept;
  }

  void consumed(int peer, Payload payload) {
    if (peer == context.rank()) {
      ofMine -= payload.cost();
    } else if (payload.cost() > 0) {
      Debt debt = debts.get(peer);
      long cost = Math.min(payload.cost(), debt.cost); // nothing, if all was given back
      debt.cost -= cost;
      context.engine().owe(context.worldRank(peer), cost);
    }
  }

  void giveBackAll() {
    debts.forEach(this::giveBack);
  }

  private void giveBack(Debt debt) {
    long cost = debt.cost;
    debt.cost = 0;
    try {
      context.engine().owe(context.worldRank(debt.peer), cost);
    } catch (TransportFailedException _) {
      // every communicator is broken by it, or closes: nobody is owed anything any more
    }
  }
}
