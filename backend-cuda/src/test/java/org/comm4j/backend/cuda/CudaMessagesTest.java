package org.comm4j.backend.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.ConcurrentUseException;
import org.comm4j.api.DataType;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;
import org.comm4j.api.StreamSync;
import org.junit.jupiter.api.Test;

/// Messages whose ends are on devices. On the model of the driver.
class CudaMessagesTest extends ModelGroups {
  /// Of more than a call through the host pins, and of more than one piece, which is 1 MiB.
  @Test
  void message_tooLargeToBePinned_arrives() {
    int count = 4 * 65_536 + (1 << 20) + 8;
    var values = new byte[count];
    for (int i = 0; i < count; i++) {
      values[i] = (byte) ((i * 31) >> 7);
    }
    onRanks(
        2,
        options(Map.of("COMM_CUDA_CHUNK", "65536")),
        comm -> {
          try (CommBuffer buffer = comm.allocate(DataType.INT8, count)) {
            if (comm.rank() == 0) {
              buffer.write(0, CommData.of(values));
              comm.send(buffer.data(), 1, 1); // to a device
              comm.send(buffer.data(), 1, 2); // to the host
            } else {
              comm.receive(buffer.data(), 0, 1);
              var got = new byte[count];
              buffer.read(0, CommData.of(got));
              assertThat(got).isEqualTo(values);
              var direct = new byte[count];
              comm.receive(CommData.of(direct), 0, 2);
              assertThat(direct).isEqualTo(values);
            }
          }
        });
  }

  @Test
  void message_betweenDevicesAndHosts_arrives() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (CommBuffer buffer = comm.allocate(DataType.INT32, 5)) {
            if (comm.rank() == 0) {
              fill(buffer, i -> i);
              comm.send(buffer.data(), 1, 1); // to a device
              comm.send(buffer.data(), 1, 2); // to the host
              comm.send(CommData.of(7, 8), 1, 3); // from the host, shorter than the receive
            } else {
              Request first = comm.start(new PointToPoint.Receive(buffer.data(), 0, 1));
              comm.sync();
              assertThat(first.isDone()).isTrue();
              assertElements(buffer, i -> i);
              int[] values = new int[5];
              comm.receive(CommData.of(values), 0, 2);
              assertThat(values).containsExactly(0, 1, 2, 3, 4);
              assertThat(comm.receive(buffer.data(), 0, 3).count()).isEqualTo(2);
              assertElements(buffer, i -> i < 2 ? 7 + i : i);
            }
            int other = 1 - comm.rank();
            fill(buffer, i -> 10 * comm.rank() + i);
            try (CommBuffer got = comm.allocate(DataType.INT32, 5)) {
              comm.sendReceive(buffer.data(), other, got.data(), other, 4);
              assertElements(got, i -> 10 * other + i);
            }
          }
        });
  }

  /// Of another communicator, so that only the engine refuses that.
  @Test
  void receive_awaitedByAnOperator_goesOn() {
    var thrown = new ConcurrentLinkedQueue<Throwable>();
    onRanks(
        2,
        CONFIG,
        comm -> {
          int peer = 1 - comm.rank();
          try (Communicator other = comm.duplicate();
              CommBuffer sent = comm.allocate(DataType.INT32, 100);
              CommBuffer got = comm.allocate(DataType.INT32, 100)) {
            fill(sent, i -> 7 * i + comm.rank());
            Request receive = other.start(new PointToPoint.Receive(got.data(), peer, 3));
            ReduceOp awaiting =
                ReduceOp.of("awaiting", (_, _, _, _) -> thrown.add(catchThrowable(receive::await)));
            comm.allReduce(new double[] {1, 2, 3}, awaiting);
            comm.barrier(); // nothing has come before all operators are over
            other.send(sent.data(), peer, 3);
            receive.await();
            assertElements(got, i -> 7 * i + peer);
          }
        });
    assertThat(thrown)
        .isNotEmpty()
        .allSatisfy(each -> assertThat(each).isInstanceOf(ConcurrentUseException.class));
  }

  /// A call that waits for the peer is no reason for a message to wait, also where one waits for an
  /// event.
  @Test
  void send_behindACallThatThePeerMakesLater_goesOut() {
    onRanks(
        2,
        CONFIG,
        comm -> {
          try (CommBuffer reduced = comm.allocate(DataType.INT32, 100);
              CommBuffer sent = comm.allocate(DataType.INT32, 100)) {
            comm.allReduce(reduced.data(), ReduceOp.SUM);
            fill(reduced, i -> i);
            fill(sent, i -> 7 * i + comm.rank());
            var call = new Collective.AllReduce(reduced.data(), reduced.data(), ReduceOp.SUM);
            if (comm.rank() == 0) {
              StreamSync sync = comm.streamSync().orElseThrow();
              try (StreamSync.Event before = sync.createEvent()) {
                sync.recordOnCommunicator(before);
                sync.communicatorWait(before);
              }
              Request first = comm.start(call);
              comm.send(sent.data(), 1, 3);
              first.await();
            } else {
              comm.receive(sent.data(), 0, 3);
              comm.run(call);
            }
            assertElements(sent, i -> 7 * i);
            assertElements(reduced, i -> 2 * i);
          }
        });
  }
}
