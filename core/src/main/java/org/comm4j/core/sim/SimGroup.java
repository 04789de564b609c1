package org.comm4j.core.sim;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Operation;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Pending;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.select.Selector;
import org.comm4j.core.session.InMemorySessions;

/// Simulated ranks with their communicators: the real engine on a [SimNetwork].
///
/// Single-threaded: [#run] starts an operation on every rank and moves the ranks along, each when
/// something has arrived for it, until all have ended.
public final class SimGroup implements AutoCloseable {
  private static final long IDLE_NS = 1_000_000_000L;
  private static final int MOST_IDLE = 1000;

  private final SimNetwork network;
  private final InMemorySessions sessions;
  private final List<BackendCommunicator> communicators = new ArrayList<>();

  /// @param size how many ranks
  /// @param seed decides every delay
  public SimGroup(int size, SimNetwork.Link link, long seed, CommConfig config, Selector selector) {
    this.network = new SimNetwork(size, link, seed);
    this.sessions = InMemorySessions.group(size, network::nowNs, _ -> {});
    for (int rank = 0; rank < size; rank++) {
      communicators.add(
          EngineCommunicator.open(
              "sim",
              sessions.session(rank),
              network.transport(rank),
              link.windowBytes() == 0 ? null : network.memory(rank),
              config,
              selector,
              network::nowNs));
    }
  }

  /// The network below.
  public SimNetwork network() {
    return network;
  }

  /// A rank's communicator. Only its calls that don't wait may be used.
  public BackendCommunicator communicator(int rank) {
    return communicators.get(rank);
  }

  /// Kills a rank: nothing leaves or reaches it, and everyone is told.
  public void kill(int rank) {
    network.kill(rank);
    sessions.fail(rank, new IllegalStateException("simulated death"));
  }

  /// Starts an operation on every rank, in the order of ranks, and waits until all have ended.
  ///
  /// @param operation what a rank calls, or null for a rank that calls nothing
  /// @return each rank's handle; [Pending#await] of an ended one throws its failure
  public List<Pending> run(IntFunction<Operation> operation) {
    List<Pending> pending =
        IntStream.range(0, communicators.size())
            .mapToObj(rank -> communicators.get(rank).submit(operation.apply(rank)))
            .toList();
    await(pending);
    return pending;
  }

  /// Moves the ranks along until all handles have ended.
  ///
  /// @param pending one handle per rank, in order
  /// @throws IllegalStateException if nothing is on its way and virtual time runs out
  public void await(List<Pending> pending) {
    BitSet waiting = new BitSet();
    waiting.set(0, pending.size());
    look(pending, waiting);
    for (int idle = 0; !waiting.isEmpty(); ) {
      int rank = network.step();
      if (rank >= 0) {
        idle = 0;
        if (waiting.get(rank) && pending.get(rank).isDone()) {
          waiting.clear(rank);
        }
        continue;
      }
      // a sender that found no room hears nothing when there is some again
      look(pending, waiting);
      if (!network.isBusy() && ++idle > 1) {
        network.pass(IDLE_NS);
      }
      if (idle > MOST_IDLE) {
        throw new IllegalStateException(
            "rank(s) " + waiting + " wait for ever; nothing is on its way");
      }
    }
  }

  private static void look(List<Pending> pending, BitSet waiting) {
    for (int rank = waiting.nextSetBit(0); rank >= 0; rank = waiting.nextSetBit(rank + 1)) {
      if (pending.get(rank).isDone()) {
        waiting.clear(rank);
      }
    }
  }

  @Override
  public void close() {
    // sessions in memory hold nothing; telling thousands of ranks of thousands of goodbyes takes
    // long
    communicators.forEach(BackendCommunicator::close);
    network.close();
  }
}
