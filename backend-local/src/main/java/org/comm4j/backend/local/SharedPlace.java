package org.comm4j.backend.local;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.session.OpenFiles;
import org.jspecify.annotations.Nullable;

/// Where shared memory comes from, and what to do when it gives none.
///
/// @param root the file system
/// @param option what sets the size of the windows
/// @param windowBytes their size
record SharedPlace(Path root, String option, long windowBytes) {
  private static final String TOO_LARGE = "File too large"; // in the system's words
  private static final long FULL_BYTES = 1 << 20;

  /// Says that something failed there.
  ///
  /// @param what that failed
  TransportFailedException failed(String what, Exception cause) {
    return isFull()
        ? noSpace(what, cause.toString(), cause)
        : new TransportFailedException(
            "%s in %s failed: %s%s".formatted(what, root, cause, OpenFiles.remedy(cause)), cause);
  }

  /// Says that there is no space, how full it is, and what helps.
  ///
  /// @param what that failed
  /// @param reason what the system says
  TransportFailedException noSpace(String what, String reason, @Nullable Throwable cause) {
    return new TransportFailedException(
        "%s in %s failed: %s%s; free space there, make it larger (mount -o remount,size=…, with Docker --shm-size), or lower %s (%d bytes), of which a part is for the engine"
            .formatted(what, root, reason, space(), option, windowBytes),
        cause);
  }

  /// Says that memory could not be mapped.
  ///
  /// @param what that was
  /// @param cause what mapping threw
  TransportFailedException notMapped(String what, IOException cause) {
    if (String.valueOf(cause.getMessage()).contains(TOO_LARGE)) {
      return new TransportFailedException(
          "%s in %s failed: %s; lower %s (%d bytes), or raise how large a file of a process may be (ulimit -f)"
              .formatted(what, root, TOO_LARGE, option, windowBytes),
          cause);
    }
    return cause.getCause() instanceof OutOfMemoryError
        ? new TransportFailedException(
            "%s in %s failed: too little address space; lower %s (%d bytes), or raise what limits it (ulimit -v, vm.max_map_count)"
                .formatted(what, root, option, windowBytes),
            cause)
        : failed(what, cause);
  }

  private boolean isFull() {
    try {
      return Files.getFileStore(root).getUsableSpace() < FULL_BYTES;
    } catch (IOException e) {
      return false;
    }
  }

  private String space() {
    try {
      var store = Files.getFileStore(root);
      return " (%d of %d bytes are free)".formatted(store.getUsableSpace(), store.getTotalSpace());
    } catch (IOException e) {
      return "";
    }
  }
}
