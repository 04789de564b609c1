package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.PointToPoint;
import org.junit.jupiter.api.Test;

class LeaversTest {
  private static final CommData DATA = CommData.of(1);
  private static final CommData OTHER = CommData.of(new int[1]);

  private final Leavers leavers = new Leavers(0, 4);

  @Test
  void neededBy_collective_isWhoHadNoPartInIt() {
    leavers.add(3, 7);
    leavers.add(1, 5);

    assertThat(leavers.neededBy(4)).isEmpty();
    assertThat(leavers.neededBy(5)).containsExactly(1);
    assertThat(leavers.neededBy(7)).containsExactly(1, 3);
  }

  @Test
  void neededBy_message_isItsOtherEnd() {
    leavers.add(2, 9);

    assertThat(leavers.neededBy(new PointToPoint.Send(DATA, 2, 0))).containsExactly(2);
    assertThat(leavers.neededBy(new PointToPoint.Send(DATA, 1, 0))).isEmpty();
    assertThat(leavers.neededBy(new PointToPoint.Receive(DATA, 2, 0))).containsExactly(2);
    assertThat(leavers.neededBy(new PointToPoint.Probe(3, 0))).isEmpty();
    assertThat(leavers.neededBy(both(1, 2))).containsExactly(2);
    assertThat(leavers.neededBy(both(2, 1))).containsExactly(2);
    assertThat(leavers.neededBy(both(1, 3))).isEmpty();
  }

  @Test
  void neededBy_anySource_isNobodyWhileOneIsThere() {
    int any = Communicator.ANY_SOURCE;
    leavers.add(2, 0);
    leavers.add(1, 0);

    assertThat(leavers.neededBy(new PointToPoint.Receive(DATA, any, 0))).isEmpty();
    assertThat(leavers.neededBy(both(3, any))).isEmpty();
    assertThat(leavers.neededBy(both(1, any))).containsExactly(1);

    leavers.add(3, 0);

    assertThat(leavers.neededBy(new PointToPoint.Probe(any, 0))).containsExactly(1, 2, 3);
  }

  @Test
  void amongst_someHaveLeft_areThose() {
    leavers.add(3, 0);
    leavers.add(1, 0);

    assertThat(leavers.amongst(List.of(0, 1, 2))).containsExactly(1);
  }

  private static PointToPoint both(int destination, int source) {
    return new PointToPoint.SendReceive(DATA, destination, 0, OTHER, source, 0);
  }
}
