package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class PlacesTest {
  private static final InetAddress ONE = InetAddress.ofLiteral("192.0.2.1");
  private static final InetAddress TWO = InetAddress.ofLiteral("192.0.2.2");

  private long nowNs;
  private int asked;

  private void pass(long seconds) {
    nowNs += TimeUnit.SECONDS.toNanos(seconds);
  }

  private List<InetAddress> unknown() throws UnknownHostException {
    asked++;
    throw new UnknownHostException();
  }

  /// Who waits for the name service connects to nobody, and a host may come at any time.
  @Test
  void next_allWereTried_asksForTheNameNowAndThen() {
    var places = new Places(1, List.of(ONE), this::unknown, () -> nowNs);
    for (int second = 1; second <= 35; second++) {
      pass(1);
      places.next();
      assertThat(places.current().getAddress()).isEqualTo(ONE);
      assertThat(asked).isEqualTo(second / 10);
    }
  }

  @Test
  void next_nameMeansAnotherHost_goesThere() {
    var places = new Places(1, List.of(ONE, ONE), () -> List.of(TWO), () -> nowNs);
    pass(10);
    places.next();
    assertThat(places.current().getAddress()).isEqualTo(ONE);
    places.next();
    assertThat(places.current().getAddress()).isEqualTo(TWO);
  }

  @Test
  void troubles_ofATryThatHadLittleTime_areNoBetter() {
    var places = new Places(1, List.of(ONE, TWO), this::unknown, () -> nowNs);
    places.note("refused");
    places.noteUnlessKnown("no answer");
    places.next();
    places.noteUnlessKnown("no answer");
    assertThat(places.troubles()).isEqualTo("192.0.2.1: refused, 192.0.2.2: no answer");
    assertThat(places).hasToString("192.0.2.1, 192.0.2.2 port 1");
    var one = new Places(1, List.of(ONE), this::unknown, () -> nowNs);
    assertThat(one.troubles()).isEqualTo("nobody listens");
  }
}
