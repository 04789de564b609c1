package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Secret;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.DefaultSessionFactory;
import org.comm4j.core.session.SessionServer;
import org.comm4j.tck.ChildJvm;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Where a rank receives that knows of ranks on other hosts: another one is who sees other mounts.
class InterfacesTest {
  private static final InetAddress LOOPBACK = InetAddress.ofLiteral("127.0.0.1");

  @TempDir Path folder;

  private static CommConfig config(int rank, String address, int port) {
    return CommConfig.builder()
        .rank(rank)
        .worldSize(2)
        .masterAddress(address)
        .masterPort(port)
        .secret(Secret.of("0123456789abcdef"))
        .option(DefaultSessionFactory.HOSTED, "launcher")
        .build();
  }

  private static String chosen(CommConfig config) {
    try (Session session = new DefaultSessionFactory().join(config, List.of("aeron"))) {
      return Interfaces.choose(session, Options.of(config)).getHostAddress();
    }
  }

  /// The session tries them all, and is at another one.
  @Test
  void choose_firstAddressOfTheNameIsNotReached_isWhereTheRankHasMetOthers() throws Exception {
    assumeTrue(
        ChildJvm.run(List.of("unshare", "-m", "true")).startsWith("0:"),
        "needs the right to have mounts of its own");
    CommConfig ofHost = config(0, LOOPBACK.getHostAddress(), 1);
    try (var server =
            SessionServer.start(
                LOOPBACK, 0, "", 2, Authenticator.of(ofHost), new SessionServer.Listener() {});
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      CommConfig here = config(0, LOOPBACK.getHostAddress(), server.port());
      Future<String> first = threads.submit(() -> chosen(here));
      assertThat(chosenElsewhere(server.port())).isEqualToIgnoringNewLines("0: 127.0.0.1");
      assertThat(first.get()).isEqualTo("127.0.0.1");
    }
  }

  /// Of the rank 1, to which the name of the place means nobody's address first.
  private String chosenElsewhere(int port) throws Exception {
    Path names = Files.writeString(folder.resolve("hosts"), "192.0.2.1 alpha\n127.0.0.1 alpha\n");
    List<String> command = new ArrayList<>(List.of("unshare", "-m"));
    command.addAll(
        AeronGroups.JVM.command(
            List.of("-Djdk.net.hosts.file=" + names), Chooses.class, Integer.toString(port)));
    return ChildJvm.run(command);
  }

  /// A process that says what it has chosen.
  static final class Chooses {
    private Chooses() {}

    public static void main(String[] args) {
      System.out.println(chosen(config(1, "alpha", Integer.parseInt(args[0]))));
    }
  }
}
