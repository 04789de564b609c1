package org.comm4j.core.session;

import org.jspecify.annotations.Nullable;

/// What to do where a process may open no more files.
public final class OpenFiles {
  private static final String TOO_MANY = "Too many open files"; // in the system's words
  private static final String NO_MOUNTS = "Mount point not found"; // the JDK can't open their list

  private OpenFiles() {}

  /// A remedy for the end of a message, behind a semicolon; empty if this failure, and what caused
  /// it, has another reason, or names a remedy.
  public static String remedy(Throwable failure) {
    boolean isTooMany = false;
    int depth = 0;
    for (@Nullable Throwable each = failure; each != null && depth < 16; each = each.getCause()) {
      String message = String.valueOf(each.getMessage());
      if (message.contains("ulimit -n")) {
        return "";
      }
      isTooMany |= message.contains(TOO_MANY) || message.contains(NO_MOUNTS);
      depth++;
    }
    return isTooMany
        ? "; let its process open more files: ulimit -n 4096 in the shell that starts it, and where that is refused raise the hard limit"
        : "";
  }
}
