package org.comm4j.api;

import java.io.File;
import java.io.IOException;
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
import java.util.TreeMap;

/// Backends beside the class path (`COMM_PLUGIN_PATH`): jars, directories of classes, and `dir/*`
/// for the jars in a directory, separated as in a class path.
///
/// Their class loader is a child of the one that everything else comes from. It is made once for a
/// path and lives as long as the process: native code can be loaded by one class loader only.
///
/// @param loader sees the plugins, if there are any
/// @param problems entries that are not there, with the reason
record PluginPath(ClassLoader loader, Map<String, String> problems) {
  private static final Map<Key, PluginPath> KNOWN = new HashMap<>();

  private record Key(String path, ClassLoader parent) {}

  static PluginPath of(String path, ClassLoader parent) {
    if (path.isBlank()) {
      return new PluginPath(parent, Map.of());
    }
    synchronized (KNOWN) {
      return KNOWN.computeIfAbsent(new Key(path, parent), PluginPath::load);
    }
  }

  private static PluginPath load(Key key) {
    List<URL> urls = new ArrayList<>();
    Map<String, String> problems = new TreeMap<>();
    for (String entry : key.path().split(File.pathSeparator, -1)) {
      if (!entry.isBlank()) {
        try {
          add(entry, urls);
        } catch (IOException | InvalidPathException e) {
          problems.put(entry, "COMM_PLUGIN_PATH names it, but it can't be read: " + e);
        }
      }
    }
    URL[] all = urls.toArray(URL[]::new);
    return new PluginPath(new URLClassLoader("comm4j-plugins", all, key.parent()), problems);
  }

  private static void add(String entry, List<URL> urls) throws IOException {
    if (!entry.endsWith("*")) {
      urls.add(url(Path.of(entry).toRealPath()));
      return;
    }
    Path directory = Path.of(entry.substring(0, entry.length() - 1)).toRealPath();
    List<Path> jars = new ArrayList<>();
    try (DirectoryStream<Path> stream = Files.newDirectoryStream(directory, "*.jar")) {
      stream.forEach(jars::add);
    }
    jars.sort(null);
    for (Path jar : jars) {
      urls.add(url(jar));
    }
  }

  private static URL url(Path path) throws MalformedURLException {
    return path.toUri().toURL();
  }
}
