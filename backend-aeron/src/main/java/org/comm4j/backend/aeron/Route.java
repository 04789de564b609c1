package org.comm4j.backend.aeron;

import java.util.Locale;
import org.comm4j.core.transport.Transport;

/// How a rank sends to another one and receives from it, in Aeron's words: through memory where
/// both have one media driver and want that, else over UDP.
///
/// What concerns memory and sockets, and that nothing may be left out, is said for each channel,
/// since the driver may be one that we have not set, or set by the user's system properties; always
/// in Aeron's digits, which a user's locale may not have.
///
/// @param out the channel on which to send, with this stream
/// @param in the channel on which to receive, with this stream
/// @param mtu the most bytes of a message with what Aeron puts before it
/// @param isMemory whether nothing is ever lost
/// @param place of the other rank, for messages
/// @param here the same of this rank
record Route(
    String out,
    int outStream,
    String in,
    int inStream,
    int mtu,
    boolean isMemory,
    String place,
    String here) {
  /// What Aeron puts before a message.
  private static final int FRAME_BYTES = 32;

  /// Also where others who read the same are faster.
  private static final String WAITED_FOR = "|tether=true";

  /// What is lost is asked for until it comes.
  private static final String REPEATED = "|reliable=true";

  /// @param self this rank, which receives at `own`
  /// @param rank the other one, which receives at `other`
  static Route of(int self, Address own, int rank, Address other, Dimensions dimensions) {
    Address.Ids to = other.from(self);
    Address.Ids from = own.from(rank);
    if (own.sharesDriver(other)) {
      int terms = Math.min(own.termBytes(), other.termBytes());
      int mtu = Math.min(Options.MOST_MTU, terms / Dimensions.DATAGRAMS_PER_TERM);
      return new Route(
          String.format(
              Locale.ROOT,
              "aeron:ipc?session-id=%d|mtu=%d|term-length=%d|sparse=false",
              to.session(),
              mtu,
              own.termBytes()),
          to.stream(),
          String.format(Locale.ROOT, "aeron:ipc?session-id=%d", from.session()) + WAITED_FOR,
          from.stream(),
          mtu,
          true,
          "its media driver",
          "this rank's media driver");
    }
    int mtu = Math.min(own.mtu(), other.mtu());
    return new Route(
        String.format(
            Locale.ROOT,
            "aeron:udp?endpoint=%s|session-id=%d|mtu=%d|term-length=%d|so-sndbuf=%d|sparse=false",
            other,
            to.session(),
            mtu,
            own.termBytes(),
            dimensions.sendBufferBytes()),
        to.stream(),
        receiving(own.toString(), from.session(), dimensions),
        from.stream(),
        mtu,
        false,
        "UDP " + other,
        "UDP " + own);
  }

  /// The channel of one sender's datagrams.
  ///
  /// @param endpoint address and port
  static String receiving(String endpoint, int session, Dimensions dimensions) {
    return String.format(
            Locale.ROOT,
            "aeron:udp?endpoint=%s|session-id=%d|so-rcvbuf=%d|rcv-wnd=%d|sparse=false",
            endpoint,
            session,
            dimensions.receiveBufferBytes(),
            dimensions.windowBytes())
        + REPEATED
        + WAITED_FOR;
  }

  int maxPayloadBytes() {
    return mtu - FRAME_BYTES - Transport.HEADER_BYTES;
  }
}
