package org.comm4j.core.session;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.comm4j.api.CommConfig;

/// What of the configuration must be equal on all ranks, as a few lines of `name=value`: so a rank
/// that differs can be told in what. Values of backend options are hashed. Options that name
/// something of one host (by the end of their name: a device, a path, an address) may differ.
/// Nothing of it is in the words or digits of a host's locale, which may differ too.
final class Settings {
  /// How the names of options end that may differ.
  static final Set<String> OF_ONE_HOST =
      Set.of(
          "ADDRESS",
          "DEVICE",
          "DIR",
          "DIRECTORY",
          "FILE",
          "HOST",
          "INTERFACE",
          "LAUNCHER",
          "LIBRARY",
          "NVRTC",
          "PATH",
          "PORT",
          "PORTS");

  private static final int MAX_LINES_BYTES = 1024;

  private Settings() {}

  static String of(CommConfig config) {
    var lines = new ArrayList<String>();
    lines.add("backend=" + config.backend());
    lines.add("reduction=" + config.reduction());
    lines.add("check=" + config.check());
    lines.add("synchronousSend=" + config.synchronousSend());
    lines.add("liveness=" + config.liveness().toMillis() + " ms");
    List<String> options =
        new TreeMap<>(config.options())
            .entrySet().stream()
                .filter(option -> !isOfOneHost(option.getKey()))
                .map(option -> option.getKey() + "=#" + hash(option.getValue()))
                .toList();
    String text = String.join("\n", options);
    if (text.getBytes(StandardCharsets.UTF_8).length > MAX_LINES_BYTES) {
      lines.add("options=#" + hash(text));
    } else {
      lines.addAll(options);
    }
    return String.join("\n", lines);
  }

  private static boolean isOfOneHost(String name) {
    return OF_ONE_HOST.contains(name.substring(name.lastIndexOf('_') + 1));
  }

  /// Says what is in one and not in the other.
  static String difference(String here, String there) {
    return "%s here, %s there".formatted(without(here, there), without(there, here));
  }

  private static String without(String some, String others) {
    var rest = new HashSet<>(List.of(others.split("\n")));
    String lines =
        List.of(some.split("\n")).stream()
            .filter(line -> !rest.contains(line))
            .collect(Collectors.joining(", "));
    return lines.isEmpty() ? "nothing of it" : lines;
  }

  private static String hash(String text) {
    try {
      byte[] digest =
          MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(digest, 0, 4);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
  }
}
