package org.comm4j.backend.aeron;

import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.ConductorServiceTimeoutException;
import io.aeron.exceptions.DriverTimeoutException;
import io.aeron.exceptions.StorageSpaceException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.FileSystemException;
import java.nio.file.Path;
import org.agrona.ErrorHandler;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentTerminationException;
import org.jspecify.annotations.Nullable;

/// What goes wrong in a media driver or a client, and whether it can go on.
///
/// It moves their agents along, not by Aeron's invokers, which close them for good when they find
/// the calling thread interrupted. One thread at a time calls [#work]; errors may come from any.
final class Faults implements ErrorHandler {
  /// A turn that ends with an exception may do so once; an agent of which a tenth of the turns do
  /// is broken.
  private static final int TROUBLE = 10;

  private static final int MOST_TROUBLE = 1000;

  private volatile @Nullable Throwable fatal;
  private int trouble;

  /// One turn.
  ///
  /// @return how much there was to do
  int work(Agent agent) {
    try {
      int done = agent.doWork();
      trouble = Math.max(0, trouble - 1);
      return done;
    } catch (Exception | LinkageError | VirtualMachineError e) {
      onError(e);
      trouble += TROUBLE;
      if (trouble > MOST_TROUBLE) {
        fail(e);
      }
      return 0;
    }
  }

  /// {@return why it can't go on; null while it can}
  @Nullable Throwable fatal() {
    return fatal;
  }

  /// It can't go on; the first reason stays.
  void fail(Throwable cause) {
    if (fatal == null) {
      fatal = cause;
    }
  }

  /// Called by Aeron, which by default would end the JVM.
  @Override
  public void onError(Throwable error) {
    boolean isFatal =
        error instanceof DriverTimeoutException
            || error instanceof ConductorServiceTimeoutException
            || error instanceof AgentTerminationException
            || error instanceof StorageSpaceException // no place for what a peer sends
            || error instanceof FileSystemException // or somebody has removed the folder
            || (error instanceof AeronException known
                && known.category() == AeronException.Category.FATAL)
            || error instanceof VirtualMachineError
            || isInterrupted(error);
    if (isFatal) {
      fail(error);
    } // others concern one datagram: a peer's port that is closed already, for example
  }

  /// Whether an interrupt has hit the mapping of a log, which is not tried again.
  private static boolean isInterrupted(Throwable error) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (each instanceof ClosedByInterruptException) {
        return true;
      }
    }
    return false;
  }

  /// What happened, and what to do about it where that is known. Java throws an InternalError where
  /// the system has no page for a file that is mapped.
  ///
  /// @param directory of the driver
  static String reason(Throwable cause, Path directory) {
    return cause instanceof StorageSpaceException || cause instanceof InternalError
        ? "%s; there seems to be no space in %s: %s"
            .formatted(cause, directory, DriverFolder.REMEDY)
        : cause.toString();
  }
}
