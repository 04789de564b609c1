package org.comm4j.backend.aeron;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// How large things are for one rank.
///
/// A pair of ranks that talks has a log of three terms on each side, for each direction. So a rank
/// that talks to all others has `6 × (ranks - 1)` terms; they are as long as 24 MiB allow, between
/// 64 KiB, which Aeron needs, and 1 MiB: all of a log is written and cleared again and again, so
/// one that does not fit a processor's caches is slower. With the driver's own files (7 MiB) 64
/// ranks take 32 MiB each if all talk to all, and each further peer 393 KiB. Logs are made when a
/// rank first sends to a peer; most collectives send to few.
///
/// All who send to a rank share its socket. What all may have on their way fits into the socket's
/// buffer, as far as the system gives it one, if datagrams are full: else they are lost, and
/// sending again what was lost makes others lost, 30 times as many as arrive.
///
/// @param mtu the most bytes of a datagram
/// @param termBytes bytes of a term
/// @param windowBytes what a sender may send before the receiver has taken it
/// @param receiveBufferBytes of the socket by which a rank receives from all
record Dimensions(int mtu, int termBytes, int windowBytes, int receiveBufferBytes) {
  private static final int LARGEST_TERM = 1 << 20;
  private static final int LOGS_BYTES = 24 << 20;
  private static final int LOGS_PER_PEER = 2;
  private static final int TERMS_PER_LOG = 3;
  private static final int TERMS_PER_PEER = LOGS_PER_PEER * TERMS_PER_LOG;
  private static final int LOG_PAGE_BYTES = 4096; // what Aeron keeps about a log

  /// A message may be an eighth of a term, and a datagram no longer than a message.
  static final int DATAGRAMS_PER_TERM = 8;

  /// With fewer on their way the receiver would answer too late. Payloads leave some of a window to
  /// what comes behind them ([Peer#CONTROL_ROOM_BYTES]).
  private static final int DATAGRAMS_PER_WINDOW = 3;

  /// For many senders; for few whatever their windows need.
  private static final int LARGEST_BUFFER = 4 << 20;

  /// However many share the socket's buffer: hardly all of so many send at once.
  private static final int LEAST_WINDOW = 16 << 10;

  /// What a driver of a rank's own has in its control file, or touches of it.
  static final int DRIVER_BYTES = (7 << 20) + (128 << 10);

  static final Path SYSTEM = Path.of("/proc/sys/net/core");
  private static final int USUAL_SOCKET_BUFFER = 212_992;

  /// @param datagramBytes the most that a packet holds where the rank receives
  static Dimensions of(Options options, int ranks, int datagramBytes) {
    return of(options, ranks, datagramBytes, socketBufferBytes());
  }

  /// @param socketBytes the most that the system gives a socket
  static Dimensions of(Options options, int ranks, int datagramBytes, int socketBytes) {
    int term = termBytes(options, ranks);
    int receive = Math.min(wantedBufferBytes(options, ranks), socketBytes);
    int room = Peer.CONTROL_ROOM_BYTES;
    int least = Math.max(LEAST_WINDOW, DATAGRAMS_PER_WINDOW * options.mtu() + room);
    int share = payloadBytes(receive) / senders(ranks);
    int window = Math.min(Math.min(term / 2, receive), Math.max(least, share));
    int datagram = Math.min(term / DATAGRAMS_PER_TERM, (window - room) / DATAGRAMS_PER_WINDOW);
    int most = Math.min(Options.MOST_MTU, datagram) / Options.MTU_STEP * Options.MTU_STEP;
    if (options.mtu() > most) {
      throw new IllegalArgumentException(
          "COMM_AERON_MTU: %d bytes, but with terms of %d bytes and socket buffers of at most %d only %d; make COMM_AERON_TERM or net.core.rmem_max larger"
              .formatted(options.mtu(), term, socketBytes, most));
    }
    int fitting = Math.max(Options.LEAST_MTU, datagramBytes / Options.MTU_STEP * Options.MTU_STEP);
    int mtu = options.mtu() != 0 ? options.mtu() : Math.min(most, fitting);
    return new Dimensions(mtu, term, window, receive);
  }

  private static int termBytes(Options options, int ranks) {
    return options.termBytes() != 0
        ? options.termBytes()
        : Math.clamp(
            Integer.highestOneBit(LOGS_BYTES / (TERMS_PER_PEER * senders(ranks))),
            Options.LEAST_TERM,
            LARGEST_TERM);
  }

  /// A socket's buffer that holds half a term from each of the others.
  static int wantedBufferBytes(Options options, int ranks) {
    long one = bufferBytes(termBytes(options, ranks) / 2);
    return (int) Math.min(Math.max(LARGEST_BUFFER, one), one * senders(ranks));
  }

  /// How large a socket's buffer must be for so much data in full datagrams: Linux takes twice what
  /// was asked for, but counts 2304 bytes or more for a datagram of 1408.
  private static long bufferBytes(int payloadBytes) {
    return payloadBytes + payloadBytes / 2L;
  }

  /// The reverse.
  private static int payloadBytes(int bufferBytes) {
    return (int) (bufferBytes * 2L / 3);
  }

  private static int senders(int ranks) {
    return Math.max(1, ranks - 1);
  }

  /// The buffer of a socket that sends: the same for all ranks of a host, who may share one.
  int sendBufferBytes() {
    return Math.min(termBytes / 2, receiveBufferBytes);
  }

  /// How much memory a rank with a driver of its own takes at most, where driver folders are.
  long bytesPerRank(int ranks) {
    long logBytes = (long) TERMS_PER_LOG * termBytes + LOG_PAGE_BYTES;
    return DRIVER_BYTES
        + DriverSettings.lossBytes(2 * ranks)
        + LOGS_PER_PEER * (ranks - 1L) * logBytes;
  }

  static int socketBufferBytes() {
    return socketBufferBytes(SYSTEM);
  }

  /// The most that the system gives a socket, to receive and to send.
  ///
  /// @param system as `/proc/sys/net/core`
  static int socketBufferBytes(Path system) {
    return Math.min(limit(system.resolve("rmem_max")), limit(system.resolve("wmem_max")));
  }

  private static int limit(Path file) {
    try (var reader = Files.newBufferedReader(file)) { // it must be read at once
      return (int) Math.min(Integer.MAX_VALUE, Long.parseLong(reader.readLine().strip()));
    } catch (IOException | NumberFormatException e) {
      return USUAL_SOCKET_BUFFER;
    }
  }
}
