package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.aeron.AeronCounters;
import io.aeron.CncFileDescriptor;
import io.aeron.driver.status.SystemCounterDescriptor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.agrona.concurrent.status.CountersReader;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.Transport;
import org.comm4j.tck.ChildJvm;
import org.comm4j.tck.Promise;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Where ranks use a media driver that somebody else runs: what is wrong with it is said, and
/// nothing of it is changed.
class ExternalDriverTest {
  private static final int RANKS = 2;
  private static final CommConfig CONFIG =
      CommConfig.builder().timeout(Duration.ofSeconds(60)).liveness(Duration.ofSeconds(3)).build();
  private static final long SILENCE_NS = TimeUnit.SECONDS.toNanos(3);

  @TempDir Path root;

  @Test
  void check_driverLives_isFine() {
    try (ExternalDriver driver = ExternalDriver.start()) {
      DriverDirectory.check(driver.directory(), SILENCE_NS);
      assertThat(driver.directory()).exists();
    }
  }

  @Test
  void check_directoryIsNotThere_saysWhatToDo() {
    expectRefused(
        root.resolve("none"), "is not a directory", "start an Aeron media driver", "shared");
  }

  @Test
  void check_linkToADirectory_isRefused() throws Exception {
    Path link = Files.createSymbolicLink(root.resolve("link"), directory("real", "rwx------"));
    expectRefused(link, "is not a directory");
  }

  @Test
  void check_directoryOfAnotherUser_isRefused() throws Exception {
    Path directory = directory("theirs", "rwx------");
    assumeTrue(isGivenTo(directory, 65_534), "needs the right to give a file away");
    expectRefused(directory, "belongs to user 65534, this process to user");
  }

  /// The link `/proc/self` is root's in each process.
  @Test
  void check_ownDirectoryOfAUserWhoIsNotRoot_isHis() throws Exception {
    Path directory = directory("his", "rwx------");
    assumeTrue(isGivenTo(directory, 65_534), "needs the right to give a file away");
    List<String> command =
        new ArrayList<>(
            List.of(
                "setpriv",
                "--reuid=65534",
                "--inh-caps=+dac_override",
                "--ambient-caps=+dac_override"));
    command.addAll(AeronGroups.JVM.command(List.of(), Looks.class, directory.toString()));
    assertThat(ChildJvm.run(command)).startsWith("0:").contains("has no cnc.dat");
  }

  /// A process that says what it thinks of a directory.
  static final class Looks {
    private Looks() {}

    public static void main(String[] args) {
      System.out.println(DriverDirectory.look(Path.of(args[0]), SILENCE_NS));
    }
  }

  private static boolean isGivenTo(Path path, int user) throws IOException {
    try {
      Files.setAttribute(path, "unix:uid", user);
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  @Test
  void check_directoryThatOthersMayChange_isRefused() throws Exception {
    expectRefused(directory("open", "rwxrwxr-x"), "has mode rwxrwxr-x", "umask");
  }

  @Test
  void check_noControlFile_saysWhatToDo() throws Exception {
    expectRefused(directory("empty", "rwx------"), "has no cnc.dat", "start an Aeron media driver");
  }

  @Test
  void check_anotherVersion_isRefused() throws Exception {
    try (ExternalDriver driver = ExternalDriver.start()) {
      Path control = driver.directory().resolve(CncFileDescriptor.CNC_FILE);
      Path old = directory("old", "rwx------");
      Path copy = old.resolve(CncFileDescriptor.CNC_FILE);
      Files.copy(control, copy);
      ByteBuffer version = ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.nativeOrder());
      try (FileChannel file = FileChannel.open(copy, StandardOpenOption.WRITE)) {
        file.write(version.putInt(0, 9 << 16), CncFileDescriptor.cncVersionOffset(0));
      }
      expectRefused(old, "belongs to another version of Aeron", "9.0.0");
    }
  }

  /// Aeron's client ends itself when nobody moves it along for 10 s, and others may come later.
  @Test
  void open_waitsForOthers_isNotSilent() throws Exception {
    try (ExternalDriver driver = ExternalDriver.start();
        var group = InMemorySessions.group(1)) {
      AtomicBoolean isHeard = new AtomicBoolean();
      Session late =
          (Session)
              Proxy.newProxyInstance(
                  Session.class.getClassLoader(),
                  new Class<?>[] {Session.class},
                  (_, method, arguments) -> {
                    if (method.getName().equals("exchange")) {
                      isHeard.set(isHeardAgain(driver));
                    }
                    return method.invoke(group.session(0), arguments);
                  });
      new Rendezvous(late, driver.config(CONFIG)).open().close();
      assertThat(isHeard).isTrue();
    }
  }

  /// Whether the only client gives a new sign of life.
  private static boolean isHeardAgain(ExternalDriver driver) {
    CountersReader counters = driver.driver().context().countersManager();
    int heartbeat = heartbeatOfOnlyClient(counters);
    long before = counters.getCounterValue(heartbeat);
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(9);
    while (counters.getCounterValue(heartbeat) == before && System.nanoTime() - endNs < 0) {
      Thread.yield();
    }
    return counters.getCounterValue(heartbeat) > before;
  }

  private static int heartbeatOfOnlyClient(CountersReader counters) {
    List<Integer> clients = new ArrayList<>();
    counters.forEach((counter, type, _, _) -> {
      if (type == AeronCounters.DRIVER_HEARTBEAT_TYPE_ID) {
        clients.add(counter);
      }
    });
    assertThat(clients).hasSize(1);
    return clients.getFirst();
  }

  /// At the end of a term is what no message fits; it hides none that begins the next one.
  @Test
  void hasNews_messageBeginsATerm_isNews() throws Exception {
    try (ExternalDriver driver = ExternalDriver.start()) {
      CommConfig config = CONFIG.toBuilder().option("COMM_AERON_TERM", "64KiB").build();
      List<AeronTransport> group = new AeronGroups(driver.config(config)).transports(RANKS);
      long[] header = new long[Transport.HEADER_LONGS];
      MemorySegment payload = MemorySegment.ofArray(new byte[1000]);
      List<Integer> unseen = new ArrayList<>();
      try {
        send(group, header, payload);
        for (int sent = 0; sent < 200; sent++) { // three terms
          while (group.get(1).hasNews()) { // of the driver, or of peers
            assertThat(group.get(1).poll((_, _, _) -> {}, 1)).isZero();
          }
          long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
          while (!group.get(0).offer(1, header, payload)) { // the driver gives room
            assertThat(System.nanoTime() - endNs).isNegative();
          }
          if (!group.get(1).hasNews()) {
            unseen.add(sent);
          }
          int arrived = 0;
          while (arrived == 0 && System.nanoTime() - endNs < 0) {
            arrived = group.get(1).poll((_, _, _) -> {}, 2);
          }
          assertThat(arrived).isEqualTo(1);
        }
        assertThat(unseen).isEmpty();
      } finally {
        group.forEach(Transport::close);
      }
    }
  }

  /// The first one, which has to wait until there is a way.
  private static void send(List<AeronTransport> group, long[] header, MemorySegment payload) {
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    boolean isTaken = false;
    int arrived = 0;
    while (arrived == 0 && System.nanoTime() - endNs < 0) {
      isTaken = isTaken || group.get(0).offer(1, header, payload);
      arrived = group.get(1).poll((_, _, _) -> {}, 1);
    }
    assertThat(arrived).isEqualTo(1);
  }

  @Test
  void driverIsKilled_callsSayWhich_andSoDoesTheNextOpen() throws Exception {
    Process process =
        new ProcessBuilder(AeronGroups.JVM.command(List.of(AeronGroups.OPENED), RunsDriver.class))
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    try (var out = process.inputReader()) {
      Path directory = Path.of(String.valueOf(out.readLine()));
      CommConfig config = ExternalDriver.config(CONFIG, directory);
      try (LocalGroup group = new AeronGroups(config).communicators(RANKS)) {
        assertThat(DriverFaultTest.sums(group)).containsOnly("2");
        long start = System.nanoTime();
        process.destroyForcibly();
        assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();
        expectEnd(group, directory);
        Promise.AT_ONCE.keep("a driver that is silent", "to hear of it", start + SILENCE_NS);
      }
      expectRefused(directory, "has no live media driver", "start an Aeron media driver");
      assertThat(directory).as("of somebody else").exists();
      DriverFaultTest.remove(directory);
    } finally {
      process.destroyForcibly();
    }
  }

  @Test
  void driverEndsInOrder_callsSayWhich() throws Exception {
    ExternalDriver driver = ExternalDriver.start();
    try (LocalGroup group = new AeronGroups(driver.config(CONFIG)).communicators(RANKS)) {
      assertThat(DriverFaultTest.sums(group)).containsOnly("2");
      long start = System.nanoTime();
      driver.close();
      expectEnd(group, driver.directory());
      Promise.AT_ONCE.keep("a driver that ends", "to hear of it", start);
    }
  }

  private static void expectEnd(LocalGroup group, Path directory) throws Exception {
    assertThat(DriverFaultTest.sumsUntilFailure(group))
        .allMatch(each -> each.contains("the media driver in %s has failed".formatted(directory)))
        .anyMatch(each -> each.startsWith(TransportFailedException.class.getName()));
  }

  @Test
  void close_leavesTheDriverAsItWas() throws Exception {
    try (ExternalDriver driver = ExternalDriver.start()) {
      Set<Path> before = files(driver.directory());
      try (LocalGroup group = new AeronGroups(driver.config(CONFIG)).communicators(RANKS)) {
        assertThat(DriverFaultTest.sums(group)).containsOnly("2");
        assertThat(files(driver.directory())).hasSizeGreaterThan(before.size());
        assertThat(sent(driver)).as("bytes over UDP").isZero();
      }
      long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
      while (!files(driver.directory()).equals(before) && System.nanoTime() - endNs < 0) {
        Thread.yield(); // the driver lets logs linger
      }
      assertThat(files(driver.directory())).isEqualTo(before);
      DriverDirectory.check(driver.directory(), SILENCE_NS);
    }
  }

  private static long sent(ExternalDriver driver) {
    return driver.driver().context().systemCounters().get(SystemCounterDescriptor.BYTES_SENT).get();
  }

  private static Set<Path> files(Path directory) throws IOException {
    Set<Path> files = new HashSet<>();
    Files.walkFileTree(
        directory,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
            files.add(file);
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
            if (e instanceof NoSuchFileException) {
              return FileVisitResult.CONTINUE; // the driver has just removed it
            }
            throw e;
          }
        });
    return files;
  }

  /// A process that is nothing but a media driver.
  static final class RunsDriver {
    private RunsDriver() {}

    public static void main(String[] args) throws Exception {
      ExternalDriver driver = ExternalDriver.start();
      System.out.println(driver.directory());
      new CountDownLatch(1).await();
    }
  }

  private Path directory(String name, String mode) throws IOException {
    Path directory = Files.createDirectory(root.resolve(name));
    return Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString(mode));
  }

  private static void expectRefused(Path directory, String... texts) {
    assertThatThrownBy(() -> DriverDirectory.check(directory, SILENCE_NS))
        .isInstanceOf(TransportFailedException.class)
        .hasMessageContaining("the media driver's directory " + directory)
        .hasMessageContainingAll(texts);
  }
}
