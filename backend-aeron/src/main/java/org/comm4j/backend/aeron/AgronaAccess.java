package org.comm4j.backend.aeron;

/// Whether Agrona, which Aeron is built on, may use what it needs of the JDK. Without it its first
/// class fails with an error that names no remedy; so this looks before any of it is initialised.
final class AgronaAccess {
  private static final String PACKAGE = "jdk.internal.misc";

  private AgronaAccess() {}

  static boolean isGiven() {
    return Object.class.getModule().isExported(PACKAGE, agrona());
  }

  /// What gives it, on the command line of java.
  static String flag() {
    Module agrona = agrona();
    return "--add-exports java.base/%s=%s"
        .formatted(PACKAGE, agrona.isNamed() ? agrona.getName() : "ALL-UNNAMED");
  }

  private static Module agrona() {
    try {
      return Class.forName("org.agrona.BufferUtil", false, AgronaAccess.class.getClassLoader())
          .getModule();
    } catch (ClassNotFoundException e) {
      throw new IllegalStateException("Agrona is not there", e);
    }
  }
}
