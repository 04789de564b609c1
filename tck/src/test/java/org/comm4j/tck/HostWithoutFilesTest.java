package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.comm4j.api.JoinException;
import org.comm4j.api.JoinException.Reason;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.SessionServer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// Where the process that hosts a session may open no more files, and so accepts nobody, ranks hear
/// of that, as soon as it can tell them.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@EnabledOnOs(OS.LINUX)
class HostWithoutFilesTest {
  @Test
  void join_hostMayOpenNoMoreFiles_isTold() throws Exception {
    List<String> command =
        new ArrayList<>(List.of("bash", "-c", "ulimit -n 256 && exec \"$0\" \"$@\""));
    command.addAll(new ChildJvm().command(List.of(), Host.class));
    Process host =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    try (var out = host.inputReader()) {
      int port = Integer.parseInt(String.valueOf(out.readLine()));
      Object result = Joining.join(Joining.rank(Configs.launched(2, port), 1));
      assertThat(result)
          .isInstanceOfSatisfying(
              JoinException.class,
              e -> {
                assertThat(e.reason()).isEqualTo(Reason.ADDRESS);
                assertThat(e)
                    .hasMessageContaining("the session's host (pid " + host.pid())
                    .hasMessageContaining("ulimit -n");
              });
    } finally {
      host.destroyForcibly();
    }
  }

  /// A process that takes all files that it may have, but for the time when it has given up.
  static final class Host {
    private Host() {}

    public static void main(String[] args) throws Exception {
      loadClasses();
      var gaveUp = new CountDownLatch(1);
      List<FileInputStream> taken = new ArrayList<>();
      try (var server =
          SessionServer.start(
              InetAddress.getLoopbackAddress(),
              0,
              "",
              2,
              Authenticator.NONE,
              new SessionServer.Listener() {
                @Override
                public void notFormed(JoinException reason) {
                  gaveUp.countDown();
                }
              })) {
        System.getLogger("").log(System.Logger.Level.WARNING, "its classes are loaded");
        takeAll(taken);
        System.out.println(server.port());
        var _ = gaveUp.await(20, TimeUnit.SECONDS);
        for (FileInputStream each : taken) {
          each.close();
        }
        var _ = System.in.read(); // until the test ends it
      }
    }

    private static void takeAll(List<FileInputStream> taken) throws IOException {
      while (true) {
        try {
          taken.add(new FileInputStream("/dev/null"));
        } catch (FileNotFoundException none) {
          return;
        }
      }
    }

    /// Those in folders would take a file each; jars are open.
    private static void loadClasses() throws Exception {
      for (String entry : System.getProperty("java.class.path").split(":", -1)) {
        Path folder = Path.of(entry);
        Path classes = folder.resolve("org/comm4j");
        if (!entry.isEmpty() && Files.isDirectory(classes)) {
          try (Stream<Path> files = Files.walk(classes)) {
            for (Path file : files.filter(each -> each.toString().endsWith(".class")).toList()) {
              String name = folder.relativize(file).toString().replace('/', '.');
              load(name.substring(0, name.length() - ".class".length()));
            }
          }
        }
      }
    }

    private static void load(String name) throws ClassNotFoundException {
      try {
        Class.forName(name, false, Host.class.getClassLoader());
      } catch (NoClassDefFoundError _) {
        // a test's, of what is not on the class path
      }
    }
  }
}
