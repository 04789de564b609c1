package org.comm4j.backend.aeron;

import io.aeron.CncFileDescriptor;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.driver.reports.LossReportUtil;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.agrona.CloseHelper;
import org.agrona.ErrorHandler;

/// How the media drivers that we start are set: small, patient, and moved along by us.
final class DriverSettings {
  /// For clients, which the session knows to live, or not; and what is silent for Aeron may only be
  /// busy.
  static final long PATIENCE_NS = TimeUnit.DAYS.toNanos(1);

  private static final long LEAST_PEERS_NS = TimeUnit.SECONDS.toNanos(5);

  /// A driver that has had no turn for so large a part of that time has been stopped.
  private static final int STOPS_PER_SILENCE = 4;

  private static final int COUNTERS_BYTES = 1 << 20;
  private static final int COUNTER_BYTES = 128;
  private static final int COUNTERS_PER_PAIR = 12; // of ranks, for each direction
  private static final int ERRORS_BYTES = 4 << 20;
  private static final int KEPT_ERRORS_BYTES = 64 << 10; // some, with their stack traces
  private static final int LOSS_BYTES = 1 << 20; // Aeron wants no less
  private static final int KEPT_LOSS_BYTES = 512; // for each pair: channels, and how much was lost
  private static final int TRAILER_BYTES = 768; // of Agrona's ring and broadcast buffers
  private static final int COMMANDS_BYTES = (1 << 20) + TRAILER_BYTES;
  private static final int EVENTS_BYTES = 1 << 20;
  private static final int EVENTS_TRAILER_BYTES = 128;
  private static final int EVENT_BYTES = 512; // some for each pair of ranks
  private static final long MOST_BUFFER_BYTES = 1 << 30; // who has more pairs is told by Aeron
  private static final int MOST_STREAMS = 1 << 20;
  private static final long TIMER_NS = TimeUnit.MILLISECONDS.toNanos(10);
  private static final long STATUS_NS = TimeUnit.MILLISECONDS.toNanos(50);

  /// What was sent again and lost again is not sent again earlier. Aeron's 10 ms limit a sender to
  /// 1,600 repetitions a second, as it knows 16 at a time.
  private static final long REPEATED_NS = TimeUnit.MILLISECONDS.toNanos(2);

  private DriverSettings() {}

  /// How long nothing may come from a peer by UDP: its driver says something ten times a second,
  /// whatever the peer does. Long enough that the session has given up whoever does not live.
  static long peersNs(Duration liveness) {
    return Math.max(liveness.multipliedBy(2).toNanos(), LEAST_PEERS_NS);
  }

  /// @param directory for the driver's files; must not exist
  /// @param pairs how many ordered pairs of ranks have one end here
  /// @param peersNs how long a peer may be silent
  /// @param clientsNs how long a client may be silent
  static MediaDriver.Context of(
      Path directory,
      Dimensions dimensions,
      int pairs,
      long peersNs,
      long clientsNs,
      ErrorHandler onError) {
    return Frames.check(new MediaDriver.Context())
        .aeronDirectoryName(directory.toString())
        .threadingMode(ThreadingMode.INVOKER)
        .dirDeleteOnStart(true)
        .dirDeleteOnShutdown(true)
        .warnIfDirectoryExists(false)
        .termBufferSparseFile(false) // a full /dev/shm is an error then, not a SIGBUS
        .counterValuesBufferLength(
            atLeast(COUNTERS_BYTES, (long) pairs * COUNTERS_PER_PAIR * COUNTER_BYTES))
        .errorBufferLength(ERRORS_BYTES)
        .lossReportBufferLength(LOSS_BYTES)
        .conductorBufferLength(COMMANDS_BYTES)
        .toClientsBufferLength(
            atLeast(EVENTS_BYTES, (long) pairs * EVENT_BYTES) + EVENTS_TRAILER_BYTES)
        .mtuLength(dimensions.mtu())
        .publicationTermBufferLength(dimensions.termBytes())
        .initialWindowLength(dimensions.windowBytes())
        .socketRcvbufLength(dimensions.receiveBufferBytes())
        .socketSndbufLength(dimensions.sendBufferBytes())
        .streamSessionLimit(MOST_STREAMS)
        .epochClock(SteadyClock.EPOCH)
        .nanoClock(SteadyClock.withoutStops(peersNs / STOPS_PER_SILENCE, System::nanoTime))
        .timerIntervalNs(TIMER_NS)
        .statusMessageTimeoutNs(STATUS_NS)
        .retransmitUnicastLingerNs(REPEATED_NS)
        .imageLivenessTimeoutNs(peersNs)
        .publicationConnectionTimeoutNs(peersNs / 2) // it is only then that a peer is waited for
        .clientLivenessTimeoutNs(clientsNs)
        .publicationUnblockTimeoutNs(2 * Math.max(PATIENCE_NS, clientsNs))
        .publicationLingerTimeoutNs(0)
        .asyncExecutorEnabled(false)
        .errorHandler(onError);
  }

  /// Starts a driver with these settings, and gives it the memory that it needs. Aeron fills its
  /// control file with zeros, the 4 MiB for errors at its end too, which we don't read: a hole will
  /// do for most of those. The report of what was lost is one hole, and the first loss would be the
  /// end where `/dev/shm` is full by then.
  ///
  /// @param pairs how many ordered pairs of ranks have one end here
  static MediaDriver launch(MediaDriver.Context settings, int pairs) {
    MediaDriver driver = MediaDriver.launch(settings);
    try (FileChannel control = open(settings, CncFileDescriptor.CNC_FILE);
        FileChannel loss = open(settings, LossReportUtil.LOSS_REPORT_FILE_NAME)) {
      long bytes = control.size();
      control.truncate(bytes - ERRORS_BYTES + KEPT_ERRORS_BYTES);
      control.write(ByteBuffer.allocate(1), bytes - 1);
      fill(loss, lossBytes(pairs));
      return driver;
    } catch (IOException e) {
      CloseHelper.close(driver);
      throw new UncheckedIOException(e);
    } catch (Throwable e) {
      CloseHelper.close(driver);
      throw e;
    }
  }

  private static FileChannel open(MediaDriver.Context settings, String name) throws IOException {
    return FileChannel.open(Path.of(settings.aeronDirectoryName(), name), StandardOpenOption.WRITE);
  }

  /// How much of the report of what was lost has memory.
  ///
  /// @param pairs how many ordered pairs of ranks have one end here
  static int lossBytes(int pairs) {
    return (int) Math.min(LOSS_BYTES, (long) pairs * KEPT_LOSS_BYTES);
  }

  private static void fill(FileChannel file, int bytes) throws IOException {
    ByteBuffer zeros = ByteBuffer.allocate(bytes);
    while (zeros.hasRemaining()) {
      file.write(zeros, zeros.position());
    }
  }

  /// A power of two, as Aeron wants it.
  private static int atLeast(int least, long bytes) {
    return (int) Math.max(least, Math.min(MOST_BUFFER_BYTES, Long.highestOneBit(2 * bytes - 1)));
  }
}
