package org.comm4j.api;

import java.io.File;
import java.io.IOException;
import java.lang.module.FindException;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReader;
import java.lang.module.ModuleReference;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.comm4j.api.spi.BackendProvider;

/// Backends beside the class path (`COMM_PLUGIN_PATH`): jars, directories of classes, and `dir/*`
/// for the jars in a directory, separated as in a class path.
///
/// Their class loader is a child of the one that everything else comes from. It is made once for a
/// path and lives as long as the process: native code can be loaded by one class loader only.
///
/// @param loader sees the plugins, if there are any
/// @param problems entries that are not there, or of which no backend is seen
record PluginPath(ClassLoader loader, List<Problem> problems) {
  private static final String PROVIDER = BackendProvider.class.getName();
  private static final String SERVICES = "META-INF/services/" + PROVIDER;
  private static final Map<Key, PluginPath> KNOWN = new HashMap<>();

  private record Key(String path, ClassLoader parent) {}

  /// An entry from which nothing comes.
  record Problem(String entry, String reason, String remedy) {}

  static PluginPath of(String path, ClassLoader parent) {
    if (path.isBlank()) {
      return new PluginPath(parent, List.of());
    }
    synchronized (KNOWN) {
      return KNOWN.computeIfAbsent(new Key(path, parent), PluginPath::load);
    }
  }

  private static PluginPath load(Key key) {
    List<Path> entries = new ArrayList<>();
    List<Problem> problems = new ArrayList<>();
    List<URL> urls = new ArrayList<>();
    for (String entry : key.path().split(File.pathSeparator, -1)) {
      if (!entry.isBlank()) {
        try {
          add(entry, entries);
        } catch (IOException | InvalidPathException e) {
          problems.add(
              new Problem(
                  entry,
                  "COMM_PLUGIN_PATH names it, but it can't be read: " + e,
                  "update or remove " + entry));
        }
      }
    }
    for (Path entry : entries) {
      urls.add(url(entry));
      problem(entry).ifPresent(problems::add);
    }
    URL[] all = urls.toArray(URL[]::new);
    var loader = new URLClassLoader("comm4j-plugins", all, key.parent());
    return new PluginPath(loader, problems.stream().distinct().toList());
  }

  private static void add(String entry, List<Path> entries) throws IOException {
    if (!entry.endsWith("*")) {
      entries.add(Path.of(entry).toRealPath());
      return;
    }
    Path directory = Path.of(entry.substring(0, entry.length() - 1)).toRealPath();
    List<Path> jars = new ArrayList<>();
    try (DirectoryStream<Path> stream = Files.newDirectoryStream(directory, "*.jar")) {
      stream.forEach(jars::add);
    }
    jars.sort(null);
    entries.addAll(jars);
  }

  private static URL url(Path path) {
    try {
      return path.toUri().toURL();
    } catch (MalformedURLException e) {
      throw new IllegalStateException(e); // of a file there always is one
    }
  }

  /// What its `module-info` provides is not seen here: the loader makes no modules.
  private static Optional<Problem> problem(Path entry) {
    if (Files.isDirectory(entry) && !Files.exists(entry.resolve("module-info.class"))) {
      return Optional.empty();
    }
    try {
      for (ModuleReference module : ModuleFinder.of(entry).findAll()) {
        List<String> provided = provided(module);
        if (!provided.isEmpty()) {
          return Optional.of(
              new Problem(
                  entry.toString(),
                  "its module provides %s, but a plugin is no module here: what counts is META-INF/services, where it names none"
                      .formatted(String.join(", ", provided)),
                  "put a file %s into it, with the line %s"
                      .formatted(SERVICES, provided.getFirst())));
        }
      }
    } catch (FindException | IOException _) {
      // no module: what else it is the loader sees
    }
    return Optional.empty();
  }

  /// The providers of a module that are named there alone.
  private static List<String> provided(ModuleReference module) throws IOException {
    if (module.descriptor().isAutomatic()) {
      return List.of();
    }
    try (ModuleReader reader = module.open()) {
      return reader.find(SERVICES).isPresent()
          ? List.of()
          : module.descriptor().provides().stream()
              .filter(service -> service.service().equals(PROVIDER))
              .flatMap(service -> service.providers().stream())
              .toList();
    }
  }
}
