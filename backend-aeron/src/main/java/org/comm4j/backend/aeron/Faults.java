package org.comm4j.backend.aeron;

import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.ConductorServiceTimeoutException;
import io.aeron.exceptions.DriverTimeoutException;
import io.aeron.exceptions.StorageSpaceException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.FileSystemException;
import java.nio.file.Path;
import java.util.function.Predicate;
import org.agrona.ErrorHandler;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentTerminationException;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.OpenFiles;
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

  /// Against too many open files.
  static final String FILES_REMEDY = "raise how many a process may have (ulimit -n)";

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

  /// Called by Aeron, which by default would end the JVM. What ends no driver concerns one
  /// datagram: a peer's port that is closed already, for example.
  @Override
  public void onError(Throwable error) {
    boolean isFatal =
        error instanceof DriverTimeoutException
            || error instanceof ConductorServiceTimeoutException
            || error instanceof AgentTerminationException
            || error instanceof StorageSpaceException // no place for what a peer sends
            || (error instanceof AeronException known
                && known.category() == AeronException.Category.FATAL)
            || find(error, Faults::leavesUnmapped) != null;
    if (isFatal) {
      fail(error);
    }
  }

  /// Whether a log may not have been mapped, which is not tried again: who was to read it would be
  /// deaf, and would not know. Too many files are open, or mapped, the folder was removed, or an
  /// interrupt has hit. Of sockets come other exceptions.
  private static boolean leavesUnmapped(Throwable error) {
    return error instanceof FileSystemException
        || error instanceof UncheckedIOException // of a driver's files
        || error instanceof VirtualMachineError
        || error instanceof ClosedByInterruptException;
  }

  /// What is thrown where Aeron can't be opened. Errors of the JVM's are left as they are, but for
  /// those that say that there is no space.
  ///
  /// @param what could not be done
  /// @param directory of the driver
  static TransportFailedException failed(String what, Throwable cause, Path directory) {
    if (cause instanceof Error error && !(error instanceof InternalError)) {
      throw error;
    }
    return new TransportFailedException(what + ": " + reason(cause, directory), cause);
  }

  /// What happened, and what to do about it where that is known. Java throws an InternalError where
  /// the system has no page for a file that is mapped.
  ///
  /// @param directory of the driver
  static String reason(Throwable cause, Path directory) {
    if (cause instanceof StorageSpaceException || find(cause, Faults::isOfSpace) != null) {
      return "%s; there seems to be no space in %s: %s"
          .formatted(cause, directory, DriverFolder.REMEDY);
    }
    Throwable file = find(cause, each -> each.getClass() == FileSystemException.class);
    if (file != null) {
      return "%s; if too many files are open, %s".formatted(both(cause, file), FILES_REMEDY);
    }
    Throwable mapping = find(cause, Faults::isFailedMapping);
    return mapping == null
        ? cause + OpenFiles.remedy(cause)
        : "%s; raise how much a process may map (vm.max_map_count, ulimit -v)"
            .formatted(both(cause, mapping));
  }

  private static String both(Throwable outer, Throwable inner) {
    String text = outer.toString();
    return text.contains(inner.toString()) ? text : text + ": " + inner;
  }

  private static boolean isOfSpace(Throwable error) {
    return error instanceof InternalError
        || (error instanceof IOException
            && String.valueOf(error.getMessage()).contains("No space left on device"));
  }

  private static boolean isFailedMapping(Throwable error) {
    return error instanceof IOException && error.getCause() instanceof OutOfMemoryError;
  }

  /// {@return the first that is such, of an error and its causes; null if none is}
  private static @Nullable Throwable find(Throwable error, Predicate<Throwable> what) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (what.test(each)) {
        return each;
      }
    }
    return null;
  }
}
