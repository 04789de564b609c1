package org.comm4j.backend.aeron;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// How large things are for one rank.
///
/// A pair of ranks that talks has a log of three terms on each side, for each direction. So a rank
/// that talks to all others has `6 × (ranks - 1)` terms; they are as long as 24 MiB allow, between
/// 64 KiB, which Aeron needs, and 4 MiB, more than which gains nothing. With the driver's own files
/// (7 MiB) 64 ranks take 32 MiB each if all talk to all, and each further peer 392 KiB. Logs are
/// made when a rank first sends to a peer; most collectives send to few.
///
/// @param mtu the most bytes of a datagram
/// @param termBytes bytes of a term
/// @param windowBytes what a sender may send before the receiver has taken it
record Dimensions(int mtu, int termBytes, int windowBytes) {
  private static final int LARGEST_MTU = 65_504;
  private static final int LARGEST_TERM = 4 << 20;
  private static final int SMALLEST_TERM = 64 << 10;
  private static final int LOGS_BYTES = 24 << 20;
  private static final int LOGS_PER_PEER = 2;
  private static final int TERMS_PER_LOG = 3;
  private static final int TERMS_PER_PEER = LOGS_PER_PEER * TERMS_PER_LOG;
  private static final int LOG_PAGE_BYTES = 4096; // what Aeron keeps about a log

  /// A message may be an eighth of a term, and a datagram no longer than a message.
  private static final int DATAGRAMS_PER_TERM = 8;

  /// With fewer on their way the receiver would answer too late.
  private static final int DATAGRAMS_PER_WINDOW = 3;

  private static final int MTU_STEP = 32;

  /// What a driver of a rank's own has in its control file, and touches of it.
  private static final int DRIVER_BYTES = (7 << 20) + (64 << 10);

  static final Path SYSTEM = Path.of("/proc/sys/net/core");
  private static final int USUAL_SOCKET_BUFFER = 212_992;

  /// @param datagramBytes the most that a packet holds where the rank receives
  static Dimensions of(Options options, int ranks, int datagramBytes) {
    int term = termBytes(options, ranks);
    int window = Math.min(wantedWindowBytes(options, ranks), socketBufferBytes());
    int datagram = Math.min(term / DATAGRAMS_PER_TERM, window / DATAGRAMS_PER_WINDOW);
    int most = Math.min(LARGEST_MTU, datagram) / MTU_STEP * MTU_STEP;
    if (options.mtu() > most) {
      throw new IllegalArgumentException(
          "COMM_AERON_MTU: %d bytes, but with terms of %d bytes and socket buffers of at most %d only %d; make COMM_AERON_TERM or net.core.rmem_max larger"
              .formatted(options.mtu(), term, socketBufferBytes(), most));
    }
    int fitting = Math.max(Options.LEAST_MTU, datagramBytes / MTU_STEP * MTU_STEP);
    int mtu = options.mtu() != 0 ? options.mtu() : Math.min(most, fitting);
    return new Dimensions(mtu, term, window);
  }

  private static int termBytes(Options options, int ranks) {
    return options.termBytes() != 0
        ? options.termBytes()
        : Math.clamp(
            Integer.highestOneBit(LOGS_BYTES / (TERMS_PER_PEER * Math.max(1, ranks - 1))),
            SMALLEST_TERM,
            LARGEST_TERM);
  }

  /// The window, and the sockets' buffers, where the system allows them.
  static int wantedWindowBytes(Options options, int ranks) {
    return termBytes(options, ranks) / 2;
  }

  /// How much memory a rank with a driver of its own takes at most, where driver folders are.
  long bytesPerRank(int ranks) {
    long logBytes = (long) TERMS_PER_LOG * termBytes + LOG_PAGE_BYTES;
    return DRIVER_BYTES + LOGS_PER_PEER * (ranks - 1L) * logBytes;
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
