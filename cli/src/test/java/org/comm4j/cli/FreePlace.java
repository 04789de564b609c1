package org.comm4j.cli;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.condition.OS;

/// Places where nobody listens, for ranks and hosts that meet.
final class FreePlace {
  private static final AtomicInteger GIVEN = new AtomicInteger();

  private FreePlace() {}

  /// A place that nobody else comes to by chance. Of the usual loopback address a port that was
  /// free a moment ago is soon somebody's, who connects or listens at any. On Linux all of
  /// 127.0.0.0/8 is this host's, so it is at an address of its own, by the process and a counter.
  static InetSocketAddress any() throws IOException {
    InetAddress address = OS.LINUX.isCurrentOs() ? ownAddress() : InetAddress.getLoopbackAddress();
    try (var socket = new ServerSocket(0, 1, address)) {
      return new InetSocketAddress(address, socket.getLocalPort());
    }
  }

  private static InetAddress ownAddress() throws IOException {
    long process = ProcessHandle.current().pid();
    int last = 1 + GIVEN.getAndIncrement() % 254; // 255 in all of them would be a broadcast
    return InetAddress.getByAddress(
        new byte[] {127, (byte) (process >> 8), (byte) process, (byte) last});
  }
}
