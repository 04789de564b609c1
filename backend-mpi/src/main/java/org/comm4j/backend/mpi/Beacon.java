package org.comm4j.backend.mpi;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.comm4j.core.session.Endings;

/// Listens at every address of this host that another one might reach, and tells whoever connects a
/// token and nothing else: so others find out which of them they reach, also where networks of
/// virtual machines have the same addresses on every host.
final class Beacon implements AutoCloseable {
  /// For who has none.
  static final Beacon NONE = new Beacon(List.of(), new byte[0]);

  private static final int MOST = 32;
  private static final int BACKLOG = 512; // all hosts come at once
  private static final int PATIENCE_MILLIS = 4_000;
  private static final long PAUSE_NS = 1_000_000;
  private static final long CLOSE_NS = 10_000_000_000L; // never, unless the machine is stopped

  private final List<ServerSocket> listening;
  private final List<Thread> telling = new ArrayList<>();
  private final byte[] token;

  private Beacon(List<ServerSocket> listening, byte[] token) {
    this.listening = listening;
    this.token = token;
    for (ServerSocket each : listening) {
      telling.add(Thread.ofPlatform().daemon().name("comm4j-mpi-meeting").start(() -> tell(each)));
    }
  }

  /// Begins to listen.
  ///
  /// @param port at each address; 0 for any that is free
  static Beacon light(byte[] token, int port) {
    return light(token, port, addresses());
  }

  static Beacon light(byte[] token, int port, List<InetAddress> addresses) {
    List<ServerSocket> listening = new ArrayList<>();
    for (InetAddress address : addresses) {
      try {
        listening.add(new ServerSocket(port, BACKLOG, address));
      } catch (IOException e) {
        // nobody can meet there
      }
    }
    return new Beacon(listening, token);
  }

  /// Of interfaces that are up, those of version 4 first: more programs and firewalls let them
  /// pass.
  private static List<InetAddress> addresses() {
    try (Stream<NetworkInterface> all = NetworkInterface.networkInterfaces()) {
      return all.filter(Beacon::isUp)
          .flatMap(NetworkInterface::inetAddresses)
          .filter(each -> !each.isLoopbackAddress() && !each.isLinkLocalAddress())
          .sorted(Comparator.comparing(each -> each instanceof Inet6Address)) // stable
          .limit(MOST)
          .toList();
    } catch (SocketException e) {
      return List.of();
    }
  }

  private static boolean isUp(NetworkInterface each) {
    try {
      return each.isUp();
    } catch (SocketException e) {
      return false;
    }
  }

  private void tell(ServerSocket listening) {
    while (!listening.isClosed()) {
      try (Socket peer = listening.accept()) {
        peer.getOutputStream().write(token);
      } catch (IOException e) {
        LockSupport.parkNanos(PAUSE_NS); // closed, or out of descriptors
      }
    }
  }

  /// {@return where it listens, at most 32 places}
  List<InetSocketAddress> places() {
    return listening.stream()
        .map(each -> new InetSocketAddress(each.getInetAddress(), each.getLocalPort()))
        .toList();
  }

  /// {@return which places this host reaches, a bit for each, the first one the lowest}
  ///
  /// @param places of a beacon
  /// @param token its own
  static long seen(List<InetSocketAddress> places, byte[] token) {
    try (var executor = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<Boolean>> answers =
          places.stream().map(each -> executor.submit(() -> isSeen(each, token))).toList();
      long seen = 0;
      for (int i = 0; i < answers.size(); i++) {
        seen |= isTrue(answers.get(i)) ? 1L << i : 0;
      }
      return seen;
    }
  }

  /// Ends soon, and an interrupt is kept for later: all ranks wait for what is found.
  private static boolean isTrue(Future<Boolean> answer) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return answer.get();
        } catch (ExecutionException e) {
          return false;
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static boolean isSeen(InetSocketAddress place, byte[] token) {
    try (Socket socket = new Socket()) {
      socket.setSoTimeout(PATIENCE_MILLIS);
      socket.connect(place, PATIENCE_MILLIS);
      byte[] said = new DataInputStream(socket.getInputStream()).readNBytes(token.length);
      return Arrays.equals(said, token);
    } catch (IOException e) {
      return false;
    }
  }

  /// Nobody reaches it afterwards: as long as a thread is still in an `accept`, its port answers.
  @Override
  public void close() {
    for (ServerSocket each : listening) {
      try {
        each.close();
      } catch (IOException e) {
        // its descriptor is freed all the same
      }
    }
    telling.forEach(each -> Endings.await(each, CLOSE_NS));
  }
}
