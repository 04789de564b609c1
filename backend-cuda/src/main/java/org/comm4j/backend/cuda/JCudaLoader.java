package org.comm4j.backend.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.jspecify.annotations.Nullable;

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

  private static final System.Logger LOG = System.getLogger("org.comm4j.backend.cuda");

  private static final String LIBRARY = "libJCudaDriver-12.6.0-linux-x86_64.so";
  private static final String FOLDER_PROPERTY = "java.io.tmpdir";
  private static boolean loaded;
  private static @Nullable String failure;

  private JCudaLoader() {}

  /// Loads it unless that has happened.
  ///
  /// @throws UnsatisfiedLinkError if it can't be loaded, for want of a library that it needs; for
  ///   the same reason each time, as a class that has failed to initialise gives none any more
  /// @throws IOException if it can't be unpacked
  static synchronized void load() throws IOException {
    if (failure != null) {
      throw new UnsatisfiedLinkError(failure);
    }
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
    } catch (LinkageError e) {
      failure = reason(e);
      throw (UnsatisfiedLinkError) new UnsatisfiedLinkError(failure).initCause(e);
    } finally {
      delete(file, folder);
    }
  }

  /// For a moment the whole process has another folder for temporary files. The JDK's own methods
  /// don't see it: they have read the property when the process began.
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

  /// JCuda's message is a page: what it tried, each with the trace of its failure, ours the last.
  private static String reason(LinkageError e) {
    String message = String.valueOf(e.getMessage());
    String prefix = UnsatisfiedLinkError.class.getName() + ": ";
    return message
        .lines()
        .filter(line -> line.startsWith(prefix))
        .map(line -> line.substring(prefix.length()))
        .reduce((_, last) -> last)
        .orElse(message);
  }

  /// What others have put there in that moment stays, and is no failure of the load.
  private static void delete(Path file, Path folder) {
    try {
      Files.deleteIfExists(file);
      Files.delete(folder);
    } catch (IOException e) {
      LOG.log(System.Logger.Level.WARNING, "can't delete " + folder + "; delete it", e);
    }
  }
}
