package org.comm4j.backend.local;

import java.io.File;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.spi.Session;
import org.comm4j.core.transport.Transport;
import org.comm4j.tck.Allocations;

/// Starts JVMs that run a class of these tests, in class-path mode.
final class ChildJvm {
  private ChildJvm() {}

  static ProcessBuilder start(Class<?> main, String... arguments) {
    return start(List.of(), main, arguments);
  }

  /// @param options for the JVM
  static ProcessBuilder start(List<String> options, Class<?> main, String... arguments) {
    var command = new ArrayList<String>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(options);
    command.addAll(
        List.of("-ea", "--enable-native-access=ALL-UNNAMED", "-cp", classPath(), main.getName()));
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command);
  }

  /// Where these tests and what they need were loaded from, be it class path or modules.
  private static String classPath() {
    return Stream.of(
            ChildJvm.class,
            SharedMemoryTransport.class,
            Transport.class,
            Session.class,
            Allocations.class)
        .map(ChildJvm::placeOf)
        .collect(Collectors.joining(File.pathSeparator));
  }

  private static String placeOf(Class<?> type) {
    String name = "/" + type.getName().replace('.', '/') + ".class";
    String url = String.valueOf(type.getResource(name));
    String place = url.substring(0, url.length() - name.length());
    boolean isJar = place.startsWith("jar:");
    return Path.of(
            URI.create(isJar ? place.substring("jar:".length(), place.length() - 1) : place + "/"))
        .toString();
  }
}
