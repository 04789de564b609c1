package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class PendingConnectionsTest {
  private static final long SEED = Long.getLong("comm4j.seed", 4242);
  private static final long SECOND_NS = Duration.ofSeconds(1).toNanos();

  private final List<String> lines = new ArrayList<>();
  private final PendingConnections pending =
      new PendingConnections(new SplittableRandom(SEED), lines::add);
  private final List<AutoCloseable> opened = new ArrayList<>();
  private ServerSocketChannel listener;
  private Selector selector;

  @BeforeEach
  void open() throws IOException {
    listener =
        ServerSocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    selector = Selector.open();
    opened.add(listener);
    opened.add(selector);
  }

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable each : opened) {
      each.close();
    }
  }

  private Connection connection() throws IOException {
    opened.add(SocketChannel.open(listener.getLocalAddress()));
    SocketChannel accepted = listener.accept();
    opened.add(accepted);
    return new Connection(accepted, selector, 0);
  }

  private List<Connection> add(int count, String source, long nowNs) throws IOException {
    List<Connection> added = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      Connection connection = connection();
      pending.add(connection, source, nowNs);
      added.add(connection);
    }
    return added;
  }

  @Test
  void add_allPlacesAreTaken_addressWithMostLosesThem() throws IOException {
    List<Connection> few = add(20, "a", 0);
    List<Connection> many = add(44, "b", 0);
    assertThat(pending.connections()).hasSize(PendingConnections.PLACES);
    many.addAll(add(100, "b", 0));
    assertThat(few).allMatch(Connection::isOpen);
    assertThat(many).filteredOn(Connection::isOpen).hasSize(44);
    few.addAll(add(12, "a", 0)); // as many as the others then
    assertThat(few).allMatch(Connection::isOpen);
    assertThat(many).filteredOn(Connection::isOpen).hasSize(32);
    assertThat(pending.connections())
        .hasSize(PendingConnections.PLACES)
        .allMatch(Connection::isOpen);
  }

  /// Neither the oldest nor the newest, or nobody at an address would get in beside a flood.
  @Test
  void add_oneAddressConnectsWithoutEnd_itsConnectionsLiveForSomeTime() throws IOException {
    List<Connection> all = add(PendingConnections.PLACES, "a", 0);
    int later = 32; // a chance of 0.6 to be there still, for each of 64
    add(later, "a", 0);
    assertThat(all).filteredOn(Connection::isOpen).as("seed %d", SEED).hasSizeBetween(33, 63);
  }

  @Test
  void endOld_afterFiveSeconds_endsThemAndSaysSo() throws IOException {
    List<Connection> early = add(2, "a", 0);
    List<Connection> late = add(1, "b", 2 * SECOND_NS);
    pending.endOld(5 * SECOND_NS);
    assertThat(early).allMatch(Connection::isOpen);
    pending.endOld(5 * SECOND_NS + 1);
    assertThat(early).noneMatch(Connection::isOpen);
    assertThat(late).allMatch(Connection::isOpen);
    assertThat(lines)
        .containsExactly(
            "a connection from a has been ended: it did not join within 5 s; others from there are told of after a minute");
  }

  @Test
  void tell_sameAddressAgain_oneLineAMinute() throws IOException {
    Connection one = add(1, "a", 0).getFirst();
    Connection other = add(1, "b", 0).getFirst();
    for (int second = 0; second < 60; second++) {
      pending.tell(one, "noise", second * SECOND_NS);
    }
    pending.tell(other, "noise", 0);
    assertThat(lines).hasSize(2);
    pending.tell(one, "noise", 60 * SECOND_NS);
    assertThat(lines).hasSize(3);
    assertThat(lines.getLast()).contains("from a ", "as were 59 others");
  }

  @Test
  void tell_manyAddresses_fewLinesAMinute() throws IOException {
    for (int i = 0; i < 200; i++) {
      pending.tell(add(1, "address " + i, 0).getFirst(), "noise", 0);
    }
    assertThat(lines).hasSize(64);
    pending.tell(add(1, "another", 0).getFirst(), "noise", 60 * SECOND_NS);
    assertThat(lines).hasSize(65);
  }

  @ParameterizedTest
  @CsvSource({
    "0a010203, 10.1.2.3",
    "20010db8000100020003000400050006, 2001:db8:1:2:0:0:0:0/64",
  })
  void source_isAnAddressOrANetwork(String bytes, String source) throws IOException {
    InetAddress address = InetAddress.getByAddress(HexFormat.of().parseHex(bytes));
    assertThat(PendingConnections.source(address)).isEqualTo(source);
  }
}
