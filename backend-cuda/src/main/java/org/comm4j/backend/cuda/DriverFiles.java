package org.comm4j.backend.cuda;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.StringTokenizer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// What the files of a Linux host tell of NVIDIA's driver and its compiler, without loading them:
/// for listings.
final class DriverFiles {
  static final String LIBRARY = "libcuda.so.1";

  private static final Pattern KERNEL_MODULE =
      Pattern.compile("Kernel Module\\D*?(?:x86_64 +)?(\\d+)[.](\\d[\\d.]*)");
  private static final Pattern DEVICE = Pattern.compile("nvidia\\d+");
  private static final List<String> USUAL =
      List.of(
          "lib/x86_64-linux-gnu",
          "usr/lib/x86_64-linux-gnu",
          "lib64",
          "usr/lib64",
          "usr/lib",
          "usr/local/cuda/lib64"); // of the toolkit, which some don't tell the loader of

  private final String libraryPath;
  private final Path root;

  /// @param libraryPath what `LD_LIBRARY_PATH` says, perhaps nothing
  /// @param root the host's root folder; a test gives another
  DriverFiles(String libraryPath, Path root) {
    this.libraryPath = libraryPath;
    this.root = root;
  }

  /// {@return the driver's library, where the dynamic loader finds it}
  Optional<Path> library() {
    return library(LIBRARY);
  }

  /// {@return a library, where the dynamic loader finds it, or else in the CUDA toolkit's folder}
  ///
  /// @param name of its file
  Optional<Path> library(String name) {
    Set<Path> candidates = new LinkedHashSet<>();
    var folders = new StringTokenizer(libraryPath, ":;");
    while (folders.hasMoreTokens()) {
      candidates.add(Path.of(folders.nextToken()).resolve(name));
    }
    Matcher cached =
        Pattern.compile("(/[^\0]*/" + Pattern.quote(name) + ")\0").matcher(text("etc/ld.so.cache"));
    while (cached.find()) {
      candidates.add(root.resolve(cached.group(1).substring(1)));
    }
    for (String usual : USUAL) {
      candidates.add(root.resolve(usual).resolve(name));
    }
    return candidates.stream().filter(DriverFiles::isForThisProcessor).findFirst();
  }

  /// Whether a file is a library of 64 bits for x86: hosts have those of 32 bits beside them.
  static boolean isForThisProcessor(Path file) {
    try (var in = Files.newInputStream(file)) {
      byte[] header = in.readNBytes(20);
      return header.length == 20
          && header[0] == 0x7f
          && header[1] == 'E'
          && header[4] == 2
          && header[18] == 62;
    } catch (IOException _) {
      return false; // the loader passes over it, too
    }
  }

  /// {@return the version of the driver's part in the kernel, for example `535.104.05`; empty where
  /// it doesn't say}
  Optional<String> version() {
    Matcher found = KERNEL_MODULE.matcher(text("proc/driver/nvidia/version"));
    return found.find() ? Optional.of(found.group(1) + "." + found.group(2)) : Optional.empty();
  }

  /// {@return the device files, each of a GPU, or under WSL of all}
  List<Path> devices() {
    String[] names = root.resolve("dev").toFile().list(); // null where there is no folder
    return Stream.concat(
            Arrays.stream(names == null ? new String[0] : names)
                .filter(name -> DEVICE.matcher(name).matches())
                .sorted(),
            Stream.of("dxg").filter(name -> Files.exists(root.resolve("dev").resolve(name))))
        .map(name -> root.resolve("dev").resolve(name))
        .toList();
  }

  /// What is there as text, byte by byte; nothing where it can't be read.
  private String text(String file) {
    try {
      return Files.readString(root.resolve(file), StandardCharsets.ISO_8859_1);
    } catch (IOException _) {
      return "";
    }
  }
}
