package org.comm4j.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/// Namespaces with a network of their own that connects them: to a process each is another host.
/// Only root can make them, and not in every container.
final class NetworkNamespaces implements AutoCloseable {
  private static final Path NAMES = Path.of("/run/netns"); // where ip has them
  private static final AtomicInteger MADE = new AtomicInteger();

  private final String prefix =
      "comm4j-%d-%d-".formatted(ProcessHandle.current().pid(), MADE.incrementAndGet());
  private final List<String> names = new ArrayList<>();

  private NetworkNamespaces() {}

  /// Whether this user may make what they are made of, and `ip` is there: found out without the
  /// methods here, which are to fail where they are wrong.
  static boolean canBeMade() throws InterruptedException {
    String parts =
        "mount -t tmpfs tmpfs /run && ip netns add one && ip link add bridge type bridge && ip link add eth type veth peer name port netns one";
    try {
      run(List.of("unshare", "--net", "--mount", "sh", "-c", parts));
      return true;
    } catch (IOException | IllegalStateException e) {
      return false;
    }
  }

  /// Makes some, whose interfaces join a bridge.
  static NetworkNamespaces make(int count) throws IOException, InterruptedException {
    var made = new NetworkNamespaces();
    boolean whole = false;
    try {
      made.add(count);
      made.ip(count, "link add bridge type bridge");
      made.ip(count, "link set bridge up");
      for (int i = 0; i < count; i++) {
        made.add(i);
        made.ip(i, "link add eth type veth peer name port%d netns %s", i, made.name(count));
        made.ip(count, "link set port%d master bridge", i);
        made.ip(count, "link set port%d up", i);
        made.ip(i, "addr add %s/24 dev eth", made.address(i));
        made.ip(i, "link set eth up");
        made.ip(i, "link set lo up");
      }
      whole = true;
      return made;
    } finally {
      if (!whole) {
        made.close();
      }
    }
  }

  private String name(int index) {
    return prefix + index;
  }

  /// The address of one in the network.
  String address(int index) {
    return "10.99.0." + (index + 1);
  }

  /// What stands before a command that is to run in one.
  List<String> in(int index) {
    return List.of("ip", "netns", "exec", name(index));
  }

  /// Cuts one off from the others.
  void cutOff(int index) throws IOException, InterruptedException {
    ip(index, "link set eth down");
  }

  /// Ends what [#cutOff] did.
  void reconnect(int index) throws IOException, InterruptedException {
    ip(index, "link set eth up");
  }

  /// Loses on the way what one sends to another, and not what comes back. The sender does not
  /// notice: it goes to the address of an interface that does not exist.
  void loseFrom(int from, int to) throws IOException, InterruptedException {
    ip(from, "neigh replace %s lladdr 02:00:00:00:00:01 nud permanent dev eth", address(to));
  }

  /// Ends what [#loseFrom] did.
  void deliverFrom(int from, int to) throws IOException, InterruptedException {
    ip(from, "neigh del %s dev eth", address(to));
  }

  /// A killed process of the same number may have left one of that name.
  private void add(int index) throws IOException, InterruptedException {
    if (Files.exists(NAMES.resolve(name(index)))) {
      run(List.of("ip", "netns", "del", name(index)));
    }
    run(List.of("ip", "netns", "add", name(index)));
    names.add(name(index));
  }

  private void ip(int index, String command, Object... values)
      throws IOException, InterruptedException {
    List<String> all = new ArrayList<>(List.of("ip", "-n", name(index)));
    all.addAll(List.of(command.formatted(values).split(" ")));
    run(all);
  }

  private static void run(List<String> command) throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    if (!process.waitFor(20, TimeUnit.SECONDS) || process.exitValue() != 0) {
      throw new IllegalStateException(command + " failed");
    }
  }

  @Override
  public void close() {
    for (String name : names) {
      try {
        run(List.of("ip", "netns", "del", name));
      } catch (IOException | InterruptedException e) {
        throw new IllegalStateException(name, e);
      }
    }
  }
}
