package org.comm4j.backend.cuda;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Tells sources by their hashes.
final class Sources {
  private Sources() {}

  /// {@return the SHA-256 of each file below a folder whose name matches, by its path in it}
  static Map<String, String> hashes(Path folder, String pattern) {
    try (Stream<Path> files = Files.walk(folder)) {
      return files
          .filter(file -> file.toString().matches(pattern))
          .collect(
              Collectors.toMap(
                  file -> folder.relativize(file).toString(),
                  Sources::hash,
                  (a, _) -> a,
                  TreeMap::new));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String hash(Path file) {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file));
      return HexFormat.of().formatHex(digest);
    } catch (IOException | NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }
}
