package org.comm4j.backend.aeron;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.ext.DebugReceiveChannelEndpoint;
import io.aeron.driver.ext.LossGenerator;
import io.aeron.driver.ext.RandomLossGenerator;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;

/// A network that loses datagrams: what arrives at a rank (data, heartbeats, setups), and what it
/// answers (status messages, requests to repeat).
final class Loss {
  private final double rate;
  private final AtomicLong seeds;
  private final AtomicInteger lost = new AtomicInteger();

  /// @param rate the share of datagrams that is lost, from 0 to 1
  Loss(double rate, long seed) {
    this.rate = rate;
    this.seeds = new AtomicLong(seed);
  }

  /// How many datagrams were lost.
  int lost() {
    return lost.get();
  }

  UnaryOperator<MediaDriver.Context> changes() {
    return context ->
        context.receiveChannelEndpointSupplier((channel, dispatcher, status, with) ->
            new DebugReceiveChannelEndpoint(
                channel, dispatcher, status, with, generator(), generator()));
  }

  private LossGenerator generator() {
    var random = new RandomLossGenerator(rate, seeds.getAndIncrement());
    return (address, buffer, bytes) -> {
      boolean isLost = random.shouldDropFrame(address, buffer, bytes);
      if (isLost) {
        lost.getAndIncrement();
      }
      return isLost;
    };
  }
}
