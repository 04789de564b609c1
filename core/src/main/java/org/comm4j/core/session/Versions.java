package org.comm4j.core.session;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;

/// Which comm4j this is.
public final class Versions {
  private Versions() {}

  /// The version of this module: the build writes it into a resource, so that it is the same on the
  /// class path and on the module path, in a jar and in a folder of classes.
  static String comm4j() {
    return read(Versions.class, "comm4j.properties", "unknown");
  }

  /// The version that Maven wrote into a jar.
  ///
  /// @param member a class of the jar
  /// @param artifact its artifact of the group org.comm4j
  /// @return `development` where there is no jar
  public static String ofJar(Class<?> member, String artifact) {
    return read(
        member, "/META-INF/maven/org.comm4j/" + artifact + "/pom.properties", "development");
  }

  private static String read(Class<?> member, String resource, String otherwise) {
    try (InputStream in = member.getResourceAsStream(resource)) {
      var properties = new Properties();
      if (in != null) {
        properties.load(in);
      }
      return properties.getProperty("version", otherwise);
    } catch (IOException | IllegalArgumentException e) {
      return otherwise;
    }
  }
}
