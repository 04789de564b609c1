package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.comm4j.api.BackendUnavailableException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// How JCuda gets its library. What happens once in a JVM is tested in classes loaded again.
class JCudaLoaderTest {
  private static final Path TEMPORARY = temporary();
  private static final byte[] NO_LIBRARY = {1, 2, 3};

  @BeforeEach
  void findDriver() {
    ModelDriver.get().reset();
  }

  private static Path temporary() {
    return Path.of(System.getProperty("java.io.tmpdir"));
  }

  @Test
  void load_unpackedLibrary_leavesNoFile() throws IOException {
    assertThat(CudaDriver.load().devices()).isEqualTo(2);

    assertThat(temporary()).isEqualTo(TEMPORARY);
    assertThat(foldersLeft()).isEmpty();
  }

  @Test
  void load_brokenLibrary_saysTheReasonEachTime() throws Exception {
    Method load = loadAgain(NO_LIBRARY, _ -> {});

    for (int i = 0; i < 2; i++) {
      assertThatThrownBy(() -> call(load))
          .isInstanceOfSatisfying(
              BackendUnavailableException.class,
              e -> assertThat(e.reason()).contains("JCuda's library", "file too short"));
    }
    assertThat(temporary()).isEqualTo(TEMPORARY);
    assertThat(foldersLeft()).isEmpty();
  }

  @Test
  void load_anotherThreadLeavesAFile_isNoFailure() throws Throwable {
    List<Path> foreign = new ArrayList<>();
    Method load =
        loadAgain(
            null,
            name -> {
              if (name.equals("jcuda.LibUtils")) { // while JCuda loads its library
                foreign.add(createFile(temporary().resolve("foreign")));
              }
            });

    assertThat(call(load)).isNotNull();

    assertThat(foreign).hasSize(1);
    assertThat(foreign.getFirst()).exists();
    assertThat(foldersLeft()).containsExactly(foreign.getFirst().getParent());
    Files.delete(foreign.getFirst());
    Files.delete(foreign.getFirst().getParent());
  }

  private static Path createFile(Path file) {
    try {
      return Files.createFile(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static List<Path> foldersLeft() throws IOException {
    String mine = JCudaLoader.FOLDER + ProcessHandle.current().pid() + "-";
    try (Stream<Path> files = Files.list(TEMPORARY)) {
      return files.filter(file -> file.getFileName().toString().startsWith(mine)).toList();
    }
  }

  /// [CudaDriver#load()] of classes that nobody has loaded yet, JCuda's too.
  ///
  /// @param library instead of JCuda's, if given
  /// @param loading is told the name of each class that is loaded
  private static Method loadAgain(byte @Nullable [] library, Consumer<String> loading)
      throws ReflectiveOperationException {
    var loader =
        new ClassLoader(CudaDriver.class.getClassLoader()) {
          @Override
          protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("jcuda.") && !name.startsWith("org.comm4j.backend.cuda.")) {
              return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
              Class<?> loaded = findLoadedClass(name);
              return loaded != null ? loaded : define(name);
            }
          }

          private Class<?> define(String name) throws ClassNotFoundException {
            loading.accept(name);
            try (InputStream in =
                getParent().getResourceAsStream(name.replace('.', '/') + ".class")) {
              if (in == null) {
                throw new ClassNotFoundException(name);
              }
              byte[] bytes = in.readAllBytes();
              return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException e) {
              throw new ClassNotFoundException(name, e);
            }
          }

          @Override
          public @Nullable InputStream getResourceAsStream(String name) {
            return library != null && name.endsWith(".so")
                ? new ByteArrayInputStream(library)
                : JCudaLoader.class.getResourceAsStream("/" + name);
          }
        };
    Method load = loader.loadClass(CudaDriver.class.getName()).getDeclaredMethod("load");
    load.setAccessible(true);
    return load;
  }

  private static Object call(Method load) throws Throwable {
    try {
      return load.invoke(null);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
