package org.comm4j.backend.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

/// Gives JCuda its native library.
///
/// By itself JCuda unpacks it into the folder for temporary files, under a fixed name, and trusts a
/// file that it finds there: anybody's, or one that another rank has written half; and among
/// modules it finds nothing to unpack. So our jar has the library, it is unpacked into a folder of
/// this process alone, JCuda is told that this is the folder for temporary files while it loads,
/// and what is loaded needs no file any more: nothing is left however the process ends.
final class JCudaLoader {
  /// How the names of folders begin, before the number of the process.
  static final String FOLDER = "comm4j-jcuda-";

  private static final String LIBRARY = "libJCudaDriver-12.6.0-linux-x86_64.so";
  private static final String FOLDER_PROPERTY = "java.io.tmpdir";
  private static boolean loaded;

  private JCudaLoader() {}

  /// Loads it unless that has happened.
  ///
  /// @throws UnsatisfiedLinkError if it can't be loaded, for want of a library that it needs
  /// @throws IOException if it can't be unpacked
  static synchronized void load() throws IOException {
    if (loaded) {
      return;
    }
    Path folder =
        Files.createTempDirectory(
            FOLDER + ProcessHandle.current().pid() + "-",
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    Path file = folder.resolve(LIBRARY);
    try (InputStream in = JCudaLoader.class.getResourceAsStream(LIBRARY)) {
      if (in == null) {
        throw new IOException(LIBRARY + " is not in the jar of backend-cuda");
      }
      Files.copy(in, file);
      initialiseJCuda(folder);
      loaded = true;
    } finally {
      Files.deleteIfExists(file);
      Files.delete(folder);
    }
  }

  private static void initialiseJCuda(Path folder) {
    String usual = System.setProperty(FOLDER_PROPERTY, folder.toString());
    try {
      Class.forName("jcuda.driver.JCudaDriver", true, JCudaLoader.class.getClassLoader());
    } catch (ClassNotFoundException e) {
      throw new AssertionError(e); // this module requires it
    } finally {
      System.setProperty(FOLDER_PROPERTY, usual);
    }
  }
}
