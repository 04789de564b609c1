package org.comm4j.backend.mpi;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringTokenizer;

/// The folders in which a Linux host keeps libraries: those of `LD_LIBRARY_PATH`, then those in
/// which the dynamic loader looks by `/etc/ld.so.conf`, then those in which distributions and
/// vendors put MPI without telling the loader.
final class LibraryFolders {
  private static final int MOST_INCLUDED_FILES = 1000;

  /// For each of Java's processor names that of Debian's folders.
  private static final Map<String, String> MULTIARCH =
      Map.of(
          "amd64", "x86_64-linux-gnu",
          "aarch64", "aarch64-linux-gnu",
          "riscv64", "riscv64-linux-gnu",
          "ppc64le", "powerpc64le-linux-gnu",
          "s390x", "s390x-linux-gnu");

  /// Those of the loader first.
  private static final List<String> USUAL =
      List.of(
          "lib64",
          "usr/lib64",
          "lib/ARCH",
          "usr/lib/ARCH",
          "lib",
          "usr/lib",
          "usr/lib64/openmpi/lib",
          "usr/lib64/mpich/lib",
          "usr/lib64/mpi/gcc/*/lib64",
          "usr/lib/ARCH/openmpi/lib",
          "usr/lib/openmpi/lib",
          "usr/local/lib64",
          "usr/local/lib",
          "usr/local/*/lib",
          "opt/*/lib64",
          "opt/*/lib",
          "opt/*/*/lib",
          "opt/intel/oneapi/mpi/latest/lib",
          "opt/intel/oneapi/mpi/latest/lib/release",
          "opt/cray/pe/mpich/default/ofi/*/*/lib");

  private final Path root;

  /// @param root the host's root folder; a test gives another
  LibraryFolders(Path root) {
    this.root = root;
  }

  /// {@return the folders of `LD_LIBRARY_PATH`, also those that are not there}
  static List<Path> ofPath(String path) {
    Set<Path> folders = new LinkedHashSet<>();
    var texts = new StringTokenizer(path, ":;");
    while (texts.hasMoreTokens()) {
      folders.add(Path.of(texts.nextToken()));
    }
    return List.copyOf(folders);
  }

  /// {@return where else there may be libraries, also folders that are not there}
  List<Path> ofHost() {
    Set<Path> folders = new LinkedHashSet<>();
    readConfiguration(root.resolve("etc/ld.so.conf"), folders, new HashSet<>());
    for (String usual : USUAL) {
      folders.addAll(matches(root, ofHere(usual)));
    }
    return List.copyOf(folders);
  }

  private static String ofHere(String pattern) {
    String arch = System.getProperty("os.arch");
    return pattern.replace("ARCH", MULTIARCH.getOrDefault(arch, arch + "-linux-gnu"));
  }

  /// One line each: a folder, or `include` and patterns of further files; `#` begins a comment.
  private void readConfiguration(Path file, Set<Path> folders, Set<Path> seen) {
    if (!seen.add(file) || seen.size() > MOST_INCLUDED_FILES || !Files.isRegularFile(file)) {
      return;
    }
    for (String line : lines(file)) {
      if (line.indexOf('\0') >= 0) {
        continue; // no path has it
      }
      int comment = line.indexOf('#');
      var words = new StringTokenizer(comment < 0 ? line : line.substring(0, comment), " \t:,");
      String first = words.hasMoreTokens() ? words.nextToken() : "";
      if (first.equals("include")) {
        while (words.hasMoreTokens()) {
          for (Path each : included(file, words.nextToken())) {
            readConfiguration(each, folders, seen);
          }
        }
      } else if (!first.equals("hwcap")) {
        add(first, folders);
        while (words.hasMoreTokens()) {
          add(words.nextToken(), folders);
        }
      }
    }
  }

  /// @param folder may end with `=` and the kind of library
  private void add(String folder, Set<Path> folders) {
    int kind = folder.indexOf('=');
    String path = kind < 0 ? folder : folder.substring(0, kind);
    if (path.startsWith("/")) {
      folders.addAll(matches(root, path.substring(1)));
    }
  }

  private static List<String> lines(Path file) {
    try {
      return Files.readAllLines(file, StandardCharsets.ISO_8859_1);
    } catch (IOException _) {
      return List.of(); // the loader passes over what it can't read, too
    }
  }

  private List<Path> included(Path by, String pattern) {
    boolean fromRoot = pattern.startsWith("/");
    return matches(
        fromRoot ? root : by.resolveSibling(""), fromRoot ? pattern.substring(1) : pattern);
  }

  /// {@return what is at these paths, sorted; a component may have one `*`, which stands for any
  /// characters}
  private static List<Path> matches(Path start, String pattern) {
    List<Path> found = List.of(start);
    for (String component : pattern.split("/", -1)) {
      List<Path> next = new ArrayList<>();
      for (Path folder : found) {
        int star = component.indexOf('*');
        if (star >= 0) {
          next.addAll(entries(folder, component.substring(0, star), component.substring(star + 1)));
        } else {
          next.add(folder.resolve(component));
        }
      }
      found = next;
    }
    return found;
  }

  private static List<Path> entries(Path folder, String start, String end) {
    String[] names = folder.toFile().list(); // null where there is no folder
    List<Path> entries = new ArrayList<>();
    for (String name : names == null ? new String[0] : names) {
      boolean fits = name.length() >= start.length() + end.length();
      if (fits && name.startsWith(start) && name.endsWith(end)) {
        entries.add(folder.resolve(name));
      }
    }
    entries.sort(null);
    return entries;
  }
}
