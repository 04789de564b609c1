package org.comm4j.cli;

import java.io.FileDescriptor;
import org.jspecify.annotations.Nullable;

/// Gives `System.err` back its terminal or file.
///
/// The `comm-cli` script starts the JVM with its standard error on a filter, which takes out the
/// JVM's line about the incubating vector module, and hands over the original as another
/// descriptor. From [#reconnect] on, `System.err` writes there directly: a terminal is a terminal,
/// and all is written when the process ends. Native code still writes through the filter.
final class StandardError {
  private StandardError() {}

  /// Call it before anything is written.
  ///
  /// @param descriptor the original's number, the property `comm4j.stderr`; null when the JVM was
  ///   not started by the script
  static void reconnect(@Nullable String descriptor) {
    if (descriptor == null) {
      return;
    }
    try {
      var number = FileDescriptor.class.getDeclaredField("fd");
      number.setAccessible(true);
      number.setInt(FileDescriptor.err, Integer.parseInt(descriptor));
    } catch (ReflectiveOperationException | RuntimeException e) {
      // Then all goes through the filter: later than it could, but nothing is lost.
    }
  }
}
