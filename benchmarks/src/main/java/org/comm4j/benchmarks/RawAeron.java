package org.comm4j.benchmarks;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.FragmentHandler;
import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import org.agrona.BufferUtil;
import org.agrona.concurrent.AgentInvoker;
import org.agrona.concurrent.UnsafeBuffer;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.comm4j.api.Request;

/// What Aeron alone carries between two processes over loopback, both ways at once: the bound of
/// what two ranks over `aeron` can do with large data. Start it on two ranks over `shm`, by which
/// they meet:
///
///     ./comm-cli run -n 2 --backend shm benchmarks/src/main/java/org/comm4j/benchmarks/RawAeron.java
///
/// Each process has a driver of its own, which the sending and receiving thread moves along, full
/// datagrams of 65504 bytes, and large windows. What arrives is counted, not read.
public final class RawAeron implements AutoCloseable {
  private static final int[] SIZES = {1 << 20, 2 << 20, 8 << 20};
  private static final int MTU = 65_504;
  private static final int ROUNDS = 200;
  private static final int LOOKS = 8;
  private static final int BUFFER_BYTES = 4 << 20;
  private static final int CLIENT_EVERY = 1 << 10;

  private final Communicator comm;
  private final Path folder;
  private final MediaDriver driver;
  private final Aeron aeron;
  private final AgentInvoker driverInvoker;
  private final AgentInvoker clientInvoker;
  private final ExclusivePublication out;
  private final Subscription in;
  private final UnsafeBuffer data = new UnsafeBuffer(BufferUtil.allocateDirectAligned(MTU, 64));
  private long received;
  private final FragmentHandler count = (_, _, length, _) -> received += length;
  private int turns;

  private RawAeron(Communicator comm) throws IOException {
    this.comm = comm;
    this.folder = Files.createTempDirectory("comm4j-raw-");
    this.driver =
        MediaDriver.launch(
            new MediaDriver.Context()
                .aeronDirectoryName(folder.resolve("driver").toString())
                .dirDeleteOnShutdown(true)
                .threadingMode(ThreadingMode.INVOKER)
                .termBufferSparseFile(false)
                .mtuLength(MTU)
                .publicationTermBufferLength(BUFFER_BYTES)
                .initialWindowLength(BUFFER_BYTES / 2)
                .socketRcvbufLength(BUFFER_BYTES)
                .socketSndbufLength(BUFFER_BYTES));
    this.driverInvoker = driver.sharedAgentInvoker();
    this.aeron =
        Aeron.connect(
            new Aeron.Context()
                .aeronDirectoryName(driver.aeronDirectoryName())
                .driverAgentInvoker(driverInvoker)
                .useConductorAgentInvoker(true));
    this.clientInvoker = aeron.conductorAgentInvoker();
    int[] ports = new int[2];
    comm.allGather(CommData.of(freePort()), CommData.of(ports));
    this.in = aeron.addSubscription(channel(ports[comm.rank()]), 1);
    comm.barrier();
    this.out = aeron.addExclusivePublication(channel(ports[1 - comm.rank()]), 1);
    while (!out.isConnected() || !in.isConnected()) {
      turn();
    }
    meet();
  }

  private static int freePort() throws IOException {
    try (var socket =
        new DatagramSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))) {
      return socket.getLocalPort();
    }
  }

  private static String channel(int port) {
    return "aeron:udp?endpoint=127.0.0.1:" + port;
  }

  public static void main(String[] args) throws IOException {
    try (Communicator comm = Communicators.open();
        var raw = new RawAeron(comm)) {
      for (int bytes : SIZES) {
        raw.measure(bytes);
      }
    }
  }

  private void measure(int bytes) {
    long[] ns = new long[ROUNDS];
    for (int round = -ROUNDS; round < ROUNDS; round++) { // the first half warms up
      meet();
      long start = System.nanoTime();
      exchange(bytes);
      if (round >= 0) {
        ns[round] = System.nanoTime() - start;
      }
    }
    meet();
    Arrays.sort(ns);
    if (comm.rank() == 0) {
      System.out.printf(
          Locale.ROOT,
          "%d bytes each way: median %.0f us, %.2f GB/s each way; least %.0f us%n",
          bytes,
          ns[ROUNDS / 2] / 1e3,
          (double) bytes / ns[ROUNDS / 2],
          ns[0] / 1e3);
    }
  }

  private void exchange(int bytes) {
    long goal = received + bytes;
    int left = bytes;
    while (left > 0 || received < goal) {
      int next = Math.min(left, out.maxPayloadLength());
      if (next > 0 && out.offer(data, 0, next) > 0) {
        left -= next;
      }
      turn();
      int ignored = in.poll(count, LOOKS);
    }
  }

  /// A barrier in which the driver goes on: the other rank may need something again.
  private void meet() {
    Request barrier = comm.start(new Collective.Barrier());
    while (!barrier.isDone()) {
      turn();
    }
    barrier.await();
  }

  private void turn() {
    driverInvoker.invoke();
    if (++turns % CLIENT_EVERY == 0) {
      clientInvoker.invoke();
    }
  }

  @Override
  public void close() throws IOException {
    aeron.close();
    driver.close();
    Files.deleteIfExists(folder);
  }
}
