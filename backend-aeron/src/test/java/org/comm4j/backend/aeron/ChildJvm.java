package org.comm4j.backend.aeron;

import io.aeron.Aeron;
import io.aeron.driver.MediaDriver;
import java.io.File;
import java.net.URI;
import java.nio.charset.Charset;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.agrona.DirectBuffer;
import org.assertj.core.api.Assertions;
import org.comm4j.api.spi.Session;
import org.comm4j.core.transport.Transport;
import org.comm4j.tck.ThreadGroups;

/// Runs other processes, also JVMs with a class of these tests, in class-path mode.
final class ChildJvm {
  /// What Agrona needs there.
  static final String OPENED = "--add-exports java.base/jdk.internal.misc=ALL-UNNAMED";

  private static final long BOUND_SECONDS = 60;

  private ChildJvm() {}

  static List<String> command(List<String> options, Class<?> main) {
    var command = new ArrayList<String>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-ea", "--add-modules", "jdk.incubator.vector"));
    options.forEach(each -> command.addAll(List.of(each.split(" "))));
    command.addAll(List.of("-cp", classPath(), main.getName()));
    return command;
  }

  /// The exit code, a colon, and all output.
  static String run(List<String> command) throws Exception {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    try {
      String output = new String(process.getInputStream().readAllBytes(), Charset.defaultCharset());
      return process.waitFor(BOUND_SECONDS, TimeUnit.SECONDS)
          ? process.exitValue() + ": " + output
          : "does not end: " + output;
    } finally {
      process.destroyForcibly();
    }
  }

  /// Where these tests and what they need were loaded from, be it class path or modules.
  private static String classPath() {
    return Stream.of(
            ChildJvm.class,
            AeronProvider.class,
            Aeron.class,
            MediaDriver.class,
            DirectBuffer.class,
            Transport.class,
            Session.class,
            ThreadGroups.class,
            Assertions.class)
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
