package org.comm4j.core.session;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;

/// Which comm4j this is: the build writes it into a resource, so that it is the same on the class
/// path and on the module path, in a jar and in a folder of classes.
final class Versions {
  private Versions() {}

  static String comm4j() {
    try (InputStream in = Versions.class.getResourceAsStream("comm4j.properties")) {
      var properties = new Properties();
      if (in != null) {
        properties.load(in);
      }
      return properties.getProperty("version", "unknown");
    } catch (IOException e) {
      return "unknown";
    }
  }
}
