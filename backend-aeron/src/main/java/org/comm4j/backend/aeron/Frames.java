package org.comm4j.backend.aeron;

import io.aeron.driver.DataPacketDispatcher;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.media.ReceiveChannelEndpoint;
import io.aeron.driver.media.SendChannelEndpoint;
import io.aeron.driver.media.UdpChannel;
import io.aeron.driver.status.SystemCounterDescriptor;
import io.aeron.logbuffer.FrameDescriptor;
import io.aeron.protocol.DataHeaderFlyweight;
import io.aeron.protocol.HeaderFlyweight;
import io.aeron.protocol.NakFlyweight;
import io.aeron.protocol.SetupFlyweight;
import io.aeron.protocol.StatusMessageFlyweight;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.AtomicCounter;
import org.jspecify.annotations.Nullable;

/// Which datagrams are frames of Aeron's that ranks send each other: those with a whole header.
///
/// Aeron 1.51 takes every 8 bytes for a frame, and reads the rest of the header from what the
/// datagram before has left in its buffer: a stream and a session, which a stranger would have to
/// guess.
final class Frames {
  private Frames() {}

  static boolean isData(UnsafeBuffer buffer, int bytes) {
    return bytes >= HeaderFlyweight.MIN_HEADER_LENGTH
        && bytes
            >= switch (FrameDescriptor.frameType(buffer, 0)) {
              case HeaderFlyweight.HDR_TYPE_DATA, HeaderFlyweight.HDR_TYPE_PAD ->
                  DataHeaderFlyweight.HEADER_LENGTH;
              case HeaderFlyweight.HDR_TYPE_SETUP -> SetupFlyweight.HEADER_LENGTH;
              default -> Integer.MAX_VALUE;
            };
  }

  static boolean isControl(UnsafeBuffer buffer, int bytes) {
    return bytes >= HeaderFlyweight.MIN_HEADER_LENGTH
        && bytes
            >= switch (FrameDescriptor.frameType(buffer, 0)) {
              case HeaderFlyweight.HDR_TYPE_SM -> StatusMessageFlyweight.HEADER_LENGTH;
              case HeaderFlyweight.HDR_TYPE_NAK -> NakFlyweight.HEADER_LENGTH;
              default -> Integer.MAX_VALUE;
            };
  }

  static MediaDriver.Context check(MediaDriver.Context context) {
    return context
        .receiveChannelEndpointSupplier(Receiving::new)
        .sendChannelEndpointSupplier(Sending::new);
  }

  /// Where data arrives.
  private static final class Receiving extends ReceiveChannelEndpoint {
    private final AtomicCounter invalid;

    Receiving(
        UdpChannel channel,
        DataPacketDispatcher dispatcher,
        AtomicCounter status,
        MediaDriver.Context context) {
      super(channel, dispatcher, status, context);
      invalid = context.systemCounters().get(SystemCounterDescriptor.INVALID_PACKETS);
    }

    @Override
    public boolean isValidFrame(UnsafeBuffer buffer, int bytes) {
      if (!isData(buffer, bytes)) {
        invalid.increment();
        return false;
      }
      return super.isValidFrame(buffer, bytes);
    }
  }

  /// Where the answers to data arrive. They say that there is room again, or that something was
  /// lost: no matter of a microsecond, which is what looking costs whoever waits for data.
  private static final class Sending extends SendChannelEndpoint {
    private static final long LOOK_NS = 10_000;

    private final AtomicCounter invalid;
    private long lookedNs = System.nanoTime() - LOOK_NS;

    Sending(UdpChannel channel, AtomicCounter status, MediaDriver.Context context) {
      super(channel, status, context);
      invalid = context.systemCounters().get(SystemCounterDescriptor.INVALID_PACKETS);
    }

    @Override
    public @Nullable InetSocketAddress receive(ByteBuffer buffer) {
      long nowNs = System.nanoTime();
      if (nowNs - lookedNs < LOOK_NS) {
        return null;
      }
      InetSocketAddress from = super.receive(buffer);
      lookedNs = from == null ? nowNs : lookedNs;
      return from;
    }

    @Override
    public boolean isValidFrame(UnsafeBuffer buffer, int bytes) {
      if (!isControl(buffer, bytes)) {
        invalid.increment();
        return false;
      }
      return super.isValidFrame(buffer, bytes);
    }
  }
}
