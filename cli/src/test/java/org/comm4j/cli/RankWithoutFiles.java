package org.comm4j.cli;

import java.io.FileInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.ZoneId;
import java.util.ArrayDeque;
import java.util.List;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.tck.Promise;
import org.comm4j.tck.ThreadGroups;

/// A process of [OpenFilesTest] that may open few files, and does all of this again when it has used
/// them up, but for none, one, two …, until they are enough: joins a launch whose other ranks never
/// come, and opens a group of threads. Then a group makes communicators while there are none.
///
///     <backend>
///
/// Prints a line for each attempt, with what it has thrown.
final class RankWithoutFiles {
  static final String ENOUGH = "enough: ";
  private static final int MOST_LEFT = 100;

  private final BackendProvider provider;
  private final CommConfig config;
  private final ArrayDeque<FileInputStream> taken = new ArrayDeque<>();

  private RankWithoutFiles(BackendProvider provider, CommConfig config) {
    this.provider = provider;
    this.config = config;
  }

  public static void main(String[] arguments) throws Exception {
    CommConfig config = CommConfig.fromEnvironment(System.getenv());
    var rank = new RankWithoutFiles(provider(config.backend()), config);
    loadClasses();
    rank.sweep("join", rank::join);
    rank.sweep("open", () -> rank.open().close());
    rank.makeCommunicators();
  }

  /// Those in folders would take a file each; jars are open.
  private static void loadClasses() throws Exception {
    var _ = ZoneId.systemDefault().getRules(); // for whatever is logged
    for (String entry : System.getProperty("java.class.path").split(":", -1)) {
      Path folder = Path.of(entry);
      if (!entry.isEmpty() && Files.isDirectory(folder.resolve("org/comm4j"))) {
        try (Stream<Path> files = Files.walk(folder.resolve("org/comm4j"))) {
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
      Class.forName(name, false, RankWithoutFiles.class.getClassLoader());
    } catch (NoClassDefFoundError _) {
      // a test's, of what is not on the class path
    }
  }

  private static BackendProvider provider(String name) {
    return ServiceLoader.load(BackendProvider.class).stream()
        .map(ServiceLoader.Provider::get)
        .filter(each -> each.name().equals(name))
        .findFirst()
        .orElseThrow();
  }

  private void join() {
    Communicators.open(config).close();
  }

  private LocalGroup open() {
    return ThreadGroups.open(provider, 2, CommConfig.builder().build());
  }

  /// With as many files as it likes first, which loads native libraries.
  private void sweep(String what, Runnable action) throws IOException {
    String enough = withoutNumbers(outcome(action));
    boolean isEnough = false;
    for (int left = 0; !isEnough; left++) {
      if (left > MOST_LEFT) {
        throw new AssertionError("%s never ends as before: %s".formatted(what, enough));
      }
      takeAllBut(left);
      String outcome;
      try {
        outcome = outcome(action);
      } finally {
        giveBack();
      }
      isEnough = withoutNumbers(outcome).equals(enough);
      System.out.println(
          "%s, %d left: %s%s".formatted(what, left, isEnough ? ENOUGH : "", outcome));
    }
  }

  /// How long it took is one of them.
  private static String withoutNumbers(String outcome) {
    return outcome.replaceAll("[0-9.]+", "");
  }

  private static String outcome(Runnable action) {
    long startNs = System.nanoTime();
    try {
      action.run();
      return "works";
    } catch (RuntimeException | Error e) {
      String text = e.toString();
      if (text.contains("ulimit")) {
        Promise.NO_SPACE.keep("no file may be opened", "to say so", startNs);
      }
      return text;
    }
  }

  private void makeCommunicators() throws Exception {
    try (LocalGroup group = open();
        var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      takeAllBut(0);
      List<Callable<String>> ranks =
          group.communicators().stream()
              .map(comm -> (Callable<String>) () -> outcome(() -> makeCommunicators(comm)))
              .toList();
      List<String> outcomes;
      try {
        outcomes = threads.invokeAll(ranks).stream().map(Future::resultNow).toList();
      } finally {
        giveBack();
      }
      outcomes.forEach(each -> System.out.println("group: " + each));
    }
  }

  private static void makeCommunicators(Communicator comm) {
    try (Communicator copy = comm.duplicate();
        Communicator part = comm.split(0, comm.rank()).orElseThrow()) {
      if (copy.allReduce(1L, ReduceOp.SUM) + part.allReduce(1L, ReduceOp.SUM) != 4) {
        throw new AssertionError("a wrong sum");
      }
    }
  }

  private void takeAllBut(int left) throws IOException {
    try {
      while (true) {
        taken.add(new FileInputStream("/dev/null"));
      }
    } catch (IOException e) {
      if (!String.valueOf(e.getMessage()).contains("Too many open files")) {
        throw e;
      }
    }
    for (int i = 0; i < left; i++) {
      taken.remove().close();
    }
  }

  private void giveBack() throws IOException {
    while (!taken.isEmpty()) {
      taken.remove().close();
    }
  }
}
