package org.comm4j.core.sim;

import org.comm4j.core.schedule.Cost;

/// What plans take on a network, by the model that the limits of the built-in choice come from.
public final class Model {
  private Model() {}

  /// How long plans without peer memory take where nothing is lost and combining costs nothing:
  /// each message of the longest chain has its delay, and its sender is busy. The busiest rank is
  /// with all that it sends; along a chain through other ranks, as up a tree, they are busy one
  /// after the other.
  public static double timeNs(Cost cost, SimNetwork.Link link) {
    if (cost.messages() == 0) {
      return 0;
    }
    long payloads = cost.messages() + cost.sentBytes() / link.payloadBytes();
    double busiest = payloads * link.messageNs() + cost.sentBytes() * link.picosPerByte() / 1e3;
    double senders = Math.max(1, (double) cost.latency() / cost.messages());
    return cost.latency() * link.leastNs() + senders * busiest;
  }
}
