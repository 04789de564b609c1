package org.comm4j.benchmarks.walls;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.Location;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReference;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.jar.JarFile;

/// Our modules as they are on the class path of these tests: folders or jars.
///
/// The tests of the walls are in `benchmarks`, because it is the one module that is never published
/// and may see all others.
final class House {
  /// The modules that a user can get, by name.
  static final List<String> NAMES =
      List.of(
          "org.comm4j.api",
          "org.comm4j.backend.aeron",
          "org.comm4j.backend.cuda",
          "org.comm4j.backend.local",
          "org.comm4j.backend.mpi",
          "org.comm4j.cli",
          "org.comm4j.core",
          "org.comm4j.guice",
          "org.comm4j.tck");

  /// Where the modules are; Maven runs tests in the folder of theirs.
  private static final Path ROOT = Path.of("..");

  static final Map<String, ModuleReference> MODULES = findModules();

  /// All classes of all modules; imported once, since that takes a second.
  static final JavaClasses CLASSES =
      new ClassFileImporter()
          .importLocations(MODULES.values().stream().map(House::location).toList());

  private House() {}

  private static Location location(ModuleReference module) {
    var path = Path.of(module.location().orElseThrow());
    try {
      return Files.isDirectory(path) ? Location.of(path) : Location.of(new JarFile(path.toFile()));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static ModuleDescriptor descriptor(String module) {
    return MODULES.get(module).descriptor();
  }

  /// The names of the files in a module, as `/`-separated paths.
  static List<String> files(String module, Predicate<String> condition) {
    try (var reader = MODULES.get(module).open();
        var names = reader.list()) {
      return names.filter(name -> !name.endsWith("/")).filter(condition).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String read(String module, String file) {
    try (var reader = MODULES.get(module).open();
        var in = reader.open(file).orElseThrow()) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// All Java sources of the repository, as `module/folder/…/Name.java`.
  static List<Path> sources() {
    var found = new ArrayList<Path>();
    try {
      Files.walkFileTree(
          ROOT,
          new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
              String name = folder.getFileName().toString();
              boolean isBuilt =
                  name.equals("target") || (name.startsWith(".") && !folder.equals(ROOT));
              return isBuilt ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
              if (file.toString().endsWith(".java")) {
                found.add(ROOT.relativize(file));
              }
              return FileVisitResult.CONTINUE;
            }
          });
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return found;
  }

  /// The file of a source.
  static Path file(Path source) {
    return ROOT.resolve(source);
  }

  private static Map<String, ModuleReference> findModules() {
    var found = new TreeMap<String, ModuleReference>();
    for (var entry : classPath()) {
      for (var module : ModuleFinder.of(entry).findAll()) {
        if (NAMES.contains(module.descriptor().name())) {
          found.put(module.descriptor().name(), module);
        }
      }
    }
    return found;
  }

  private static List<Path> classPath() {
    return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator, -1))
        .map(Path::of)
        .filter(
            path -> path.endsWith("classes") || path.getFileName().toString().startsWith("comm4j-"))
        .toList();
  }
}
