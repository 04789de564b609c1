package org.comm4j.backend.aeron;

import io.aeron.Aeron;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.ConductorServiceTimeoutException;
import io.aeron.exceptions.DriverTimeoutException;
import io.aeron.exceptions.StorageSpaceException;
import java.nio.file.FileSystemException;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.agrona.CloseHelper;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentTerminationException;
import org.comm4j.api.TransportFailedException;
import org.jspecify.annotations.Nullable;

/// The media driver of this rank and its client, without threads of their own: whoever holds the
/// transport's lock moves them along with [#work].
final class Driver implements AutoCloseable {
  private static final int COUNTERS_BYTES = 1 << 20;
  private static final int ERRORS_BYTES = 4 << 20;
  private static final int LOSS_BYTES = 1 << 20;
  private static final int TRAILER_BYTES = 768; // of Agrona's ring and broadcast buffers
  private static final int COMMANDS_BYTES = (1 << 20) + TRAILER_BYTES;
  private static final int EVENTS_BYTES = (1 << 20) + 128;
  private static final int MOST_STREAMS = 1 << 20;

  /// The session knows who lives; what is silent for Aeron may only be busy.
  private static final long PATIENCE_NS = TimeUnit.DAYS.toNanos(1);

  private static final long TIMER_NS = TimeUnit.MILLISECONDS.toNanos(10);

  /// The client hears of new peers, which is no matter of microseconds.
  private static final long CLIENT_NS = TimeUnit.MICROSECONDS.toNanos(100);

  private static final long STATUS_NS = TimeUnit.MILLISECONDS.toNanos(50);

  /// What was sent again and lost again is not sent again earlier. Aeron's 10 ms limit a sender to
  /// 1,600 repetitions a second, as it knows 16 at a time.
  private static final long REPEATED_NS = TimeUnit.MILLISECONDS.toNanos(2);

  /// A turn that ends with an exception may do so once; a driver of which a tenth of the turns do
  /// is broken.
  private static final int TROUBLE = 10;

  private static final int MOST_TROUBLE = 1000;

  private final DriverFolder folder;
  private final MediaDriver driver;
  private final Aeron aeron;
  private final Agent driverAgent;
  private final Agent clientAgent;
  private volatile @Nullable Throwable fatal;
  private long clientNs;
  private int trouble;

  private Driver(
      DriverFolder folder, Dimensions dimensions, UnaryOperator<MediaDriver.Context> changes) {
    this.folder = folder;
    String path = folder.driver().toString();
    MediaDriver.Context settings =
        Frames.check(new MediaDriver.Context())
            .aeronDirectoryName(path)
            .threadingMode(ThreadingMode.INVOKER)
            .dirDeleteOnStart(true)
            .dirDeleteOnShutdown(true)
            .warnIfDirectoryExists(false)
            .termBufferSparseFile(false) // a full /dev/shm is an error then, not a SIGBUS
            .counterValuesBufferLength(COUNTERS_BYTES)
            .errorBufferLength(ERRORS_BYTES)
            .lossReportBufferLength(LOSS_BYTES)
            .conductorBufferLength(COMMANDS_BYTES)
            .toClientsBufferLength(EVENTS_BYTES)
            .mtuLength(dimensions.mtu())
            .publicationTermBufferLength(dimensions.termBytes())
            .initialWindowLength(dimensions.windowBytes())
            .socketRcvbufLength(dimensions.windowBytes())
            .socketSndbufLength(dimensions.windowBytes())
            .streamSessionLimit(MOST_STREAMS)
            .timerIntervalNs(TIMER_NS)
            .statusMessageTimeoutNs(STATUS_NS)
            .retransmitUnicastLingerNs(REPEATED_NS)
            .imageLivenessTimeoutNs(PATIENCE_NS)
            .publicationConnectionTimeoutNs(PATIENCE_NS)
            .clientLivenessTimeoutNs(PATIENCE_NS)
            .publicationUnblockTimeoutNs(2 * PATIENCE_NS)
            .publicationLingerTimeoutNs(0)
            .asyncExecutorEnabled(false)
            .errorHandler(this::onError);
    driver = MediaDriver.launch(changes.apply(settings));
    try {
      driverAgent = driver.sharedAgentInvoker().agent();
      aeron =
          Aeron.connect(
              new Aeron.Context()
                  .aeronDirectoryName(path)
                  .useConductorAgentInvoker(true)
                  .driverAgentInvoker(driver.sharedAgentInvoker())
                  .driverTimeoutMs(TimeUnit.NANOSECONDS.toMillis(PATIENCE_NS))
                  .resourceLingerDurationNs(0)
                  .errorHandler(this::onError)
                  .subscriberErrorHandler(this::onError));
      clientAgent = aeron.conductorAgentInvoker().agent();
    } catch (RuntimeException | InternalError e) {
      driver.close();
      throw e;
    }
  }

  /// @param changes to the driver's settings; tests lose datagrams with them
  static Driver start(Dimensions dimensions, UnaryOperator<MediaDriver.Context> changes) {
    DriverFolder folder = DriverFolder.create(DriverFolder.root());
    try {
      return new Driver(folder, dimensions, changes);
    } catch (RuntimeException | InternalError e) {
      folder.close();
      throw new TransportFailedException("the media driver does not start: " + reason(e), e);
    }
  }

  Aeron aeron() {
    return aeron;
  }

  /// Does what there is to do: sends, receives, answers. Not by Aeron's invokers, which close the
  /// driver for good when they find the calling thread interrupted.
  ///
  /// @return how much it was
  int work() {
    boolean interrupted = Thread.interrupted();
    try {
      int done = doWork(driverAgent);
      long nowNs = System.nanoTime();
      if (nowNs - clientNs > CLIENT_NS) {
        clientNs = nowNs;
        done += doWork(clientAgent);
      }
      return done;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private int doWork(Agent agent) {
    try {
      int done = agent.doWork();
      trouble = Math.max(0, trouble - 1);
      return done;
    } catch (Exception | LinkageError | VirtualMachineError e) {
      onError(e);
      trouble += TROUBLE;
      if (trouble > MOST_TROUBLE && fatal == null) {
        fatal = e;
      }
      return 0;
    }
  }

  /// Whether there is no driver any more.
  boolean hasFailed() {
    return fatal != null || aeron.isClosed();
  }

  /// @throws TransportFailedException if there is no driver any more
  void check() {
    if (hasFailed()) {
      Throwable cause = fatal;
      throw new TransportFailedException(
          "the media driver of this rank has failed" + (cause == null ? "" : ": " + reason(cause)),
          cause);
    }
  }

  /// What happened, and what to do about it where that is known. Java throws an InternalError where
  /// the system has no page for a file that is mapped.
  static String reason(Throwable cause) {
    return cause instanceof StorageSpaceException || cause instanceof InternalError
        ? "%s; there seems to be no space in %s: %s"
            .formatted(cause, DriverFolder.root(), DriverFolder.REMEDY)
        : cause.toString();
  }

  /// Called by Aeron; by default it would end the JVM.
  private void onError(Throwable error) {
    boolean isFatal =
        error instanceof DriverTimeoutException
            || error instanceof ConductorServiceTimeoutException
            || error instanceof AgentTerminationException
            || error instanceof StorageSpaceException // no place for what a peer sends
            || error instanceof FileSystemException // or somebody has removed the folder
            || (error instanceof AeronException known
                && known.category() == AeronException.Category.FATAL)
            || error instanceof VirtualMachineError;
    if (isFatal && fatal == null) {
      fatal = error;
    } // others concern one datagram: a peer's port that is closed already, for example
  }

  @Override
  public void close() {
    boolean interrupted = Thread.interrupted();
    try {
      CloseHelper.closeAll(aeron, driver);
    } finally {
      folder.close();
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
