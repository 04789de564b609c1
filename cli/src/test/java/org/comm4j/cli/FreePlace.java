package org.comm4j.cli;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.condition.OS;

/// Places where nobody listens, for ranks and hosts that meet.
final class FreePlace {
  private static final int FIRST_PORT = 10_000;
  private static final int PORTS = 10_000;
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

  /// A port of an address that others have too, below those that Linux gives to whoever asks for
  /// any. Where to look first, this process's id says, so that processes that look at once take
  /// others.
  static int port(InetAddress address) throws IOException {
    long first = ProcessHandle.current().pid();
    for (int tried = 0; tried < PORTS; tried++) {
      int port = FIRST_PORT + (int) ((first + tried) % PORTS);
      try (var socket = new ServerSocket(port, 1, address)) {
        return socket.getLocalPort();
      } catch (BindException e) {
        // Somebody has it.
      }
    }
    throw new BindException("no port of %s is free from %d on".formatted(address, FIRST_PORT));
  }

  private static InetAddress ownAddress() throws IOException {
    long process = ProcessHandle.current().pid();
    int last = 1 + GIVEN.getAndIncrement() % 254; // 255 in all of them would be a broadcast
    return InetAddress.getByAddress(
        new byte[] {127, (byte) (process >> 8), (byte) process, (byte) last});
  }
}
