package org.comm4j.backend.aeron;

import io.aeron.driver.DataPacketDispatcher;
import io.aeron.driver.DriverConductorProxy;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.media.ReceiveChannelEndpoint;
import io.aeron.driver.media.SendChannelEndpoint;
import io.aeron.driver.media.UdpChannel;
import io.aeron.protocol.DataHeaderFlyweight;
import io.aeron.protocol.StatusMessageFlyweight;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.AtomicCounter;

/// A network that delivers some datagrams twice, and some after others that were sent later: of
/// what arrives at a rank, and, twice only, of what it answers (fault F13).
final class Disorder {
  private static final double TWICE = 0.05;
  private static final double LATE = 0.2;
  private static final int MOST_BETWEEN = 8; // datagrams that overtake one

  private final AtomicLong seeds;
  private final AtomicInteger twice = new AtomicInteger();
  private final AtomicInteger late = new AtomicInteger();

  Disorder(long seed) {
    this.seeds = new AtomicLong(seed);
  }

  /// How many datagrams came twice.
  int twice() {
    return twice.get();
  }

  /// How many were overtaken.
  int late() {
    return late.get();
  }

  UnaryOperator<MediaDriver.Context> changes() {
    return context ->
        context
            .receiveChannelEndpointSupplier(Receiving::new)
            .sendChannelEndpointSupplier(Sending::new);
  }

  private SplittableRandom random() {
    return new SplittableRandom(seeds.getAndIncrement());
  }

  /// A datagram that is still on its way.
  private static final class Held {
    private final UnsafeBuffer buffer;
    private final int bytes;
    private final InetSocketAddress from;
    private final int transport;
    private int between;

    Held(UnsafeBuffer buffer, int bytes, InetSocketAddress from, int transport, int between) {
      this.buffer = new UnsafeBuffer(ByteBuffer.allocateDirect(bytes));
      this.buffer.putBytes(0, buffer, 0, bytes);
      this.bytes = bytes;
      this.from = from;
      this.transport = transport;
      this.between = between;
    }
  }

  private final class Receiving extends ReceiveChannelEndpoint {
    private final SplittableRandom random = random();
    private final List<Held> held = new ArrayList<>();

    Receiving(
        UdpChannel channel,
        DataPacketDispatcher dispatcher,
        AtomicCounter status,
        MediaDriver.Context context) {
      super(channel, dispatcher, status, context);
    }

    @Override
    public int onDataPacket(
        DataHeaderFlyweight header,
        UnsafeBuffer buffer,
        int bytes,
        InetSocketAddress from,
        int transport) {
      double chance = random.nextDouble();
      boolean isTwice = chance < TWICE;
      boolean isLate = !isTwice && chance < TWICE + LATE;
      int delivered = isLate ? 0 : super.onDataPacket(header, buffer, bytes, from, transport);
      delivered += deliverHeld();
      if (isTwice || isLate) {
        (isTwice ? twice : late).getAndIncrement();
        held.add(new Held(buffer, bytes, from, transport, random.nextInt(MOST_BETWEEN)));
      }
      return delivered;
    }

    private int deliverHeld() {
      int delivered = 0;
      for (Iterator<Held> all = held.iterator(); all.hasNext(); ) {
        Held each = all.next();
        if (--each.between < 0) {
          all.remove();
          DataHeaderFlyweight header = new DataHeaderFlyweight();
          header.wrap(each.buffer, 0, each.bytes);
          delivered +=
              super.onDataPacket(header, each.buffer, each.bytes, each.from, each.transport);
        }
      }
      return delivered;
    }
  }

  private final class Sending extends SendChannelEndpoint {
    private final SplittableRandom random = random();

    Sending(UdpChannel channel, AtomicCounter status, MediaDriver.Context context) {
      super(channel, status, context);
    }

    @Override
    public void onStatusMessage(
        StatusMessageFlyweight message,
        UnsafeBuffer buffer,
        int bytes,
        InetSocketAddress from,
        DriverConductorProxy conductor) {
      super.onStatusMessage(message, buffer, bytes, from, conductor);
      if (random.nextDouble() < TWICE) {
        super.onStatusMessage(message, buffer, bytes, from, conductor);
      }
    }
  }
}
