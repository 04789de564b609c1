package org.comm4j.backend.mpi;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;

/// Which version this is, as Maven wrote it into the jar.
final class Version {
  private static final String PROPERTIES =
      "/META-INF/maven/org.comm4j/comm4j-backend-mpi/pom.properties";

  private Version() {}

  static String ofThis() {
    try (InputStream in = Version.class.getResourceAsStream(PROPERTIES)) {
      var properties = new Properties();
      if (in != null) {
        properties.load(in);
      }
      return properties.getProperty("version", "development");
    } catch (IOException | IllegalArgumentException e) {
      return "development";
    }
  }
}
