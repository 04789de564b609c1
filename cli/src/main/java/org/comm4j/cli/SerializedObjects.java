package org.comm4j.cli;

import java.io.ObjectInputFilter;

/// None is expected by comm-cli, from anywhere: its JVM, and those of ranks that run its own
/// programs, refuse to read them. Users' programs may: ranks that run one are left alone, as
/// threads of this JVM too.
final class SerializedObjects {
  private static final String NONE = "!*";

  /// What a JVM is given that refuses them.
  static final String REFUSED = "-Djdk.serialFilter=" + NONE;

  private SerializedObjects() {}

  /// Makes this JVM refuse them, unless its user has said what it may read.
  static synchronized void refuse() {
    if (ObjectInputFilter.Config.getSerialFilter() == null) {
      ObjectInputFilter.Config.setSerialFilter(ObjectInputFilter.Config.createFilter(NONE));
    }
  }
}
