package org.comm4j.backend.local;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;

/// What [AllocatedBytes] has two ranks call over and over.
enum RepeatedCall {
  RECORD,
  RECORD_WITH_EPILOGUE,
  BROADCAST_RECORD,
  RECORDS_IN_TURN,
  BARRIER,
  REDUCE,
  GATHER,
  SCATTER,
  ALL_GATHER,
  REDUCE_SCATTER,
  ALL_TO_ALL,
  SCAN,
  EXCLUSIVE_SCAN,

  /// Of many vectors and a part of one.
  LONG_RECORD,

  /// As a model's layers are reduced one after the other.
  RECORDS_OF_OTHER_SHAPES_IN_TURN,

  /// More shapes in turn than are kept, and then few, each of which was kept and thrown out before.
  FEW_RECORDS_AFTER_MANY,

  /// Rank 1 asked where its message was, and got it later.
  RECORD_AFTER_A_LATE_MESSAGE,

  /// One way: who only sends does not wait.
  SEND_OR_RECEIVE,

  SEND_RECEIVE,

  ONE_LINE;

  /// A call asks its peer where it is after a tenth of a second.
  private static final Duration TIME_TO_ASK = Duration.ofMillis(300);

  /// The call on this rank.
  Runnable on(Communicator comm) {
    return switch (this) {
      case RECORD -> again(comm, allReduce(100));
      case LONG_RECORD -> again(comm, allReduce(10_003));
      case RECORD_WITH_EPILOGUE -> again(comm, allReduceWithEpilogue());
      case BROADCAST_RECORD -> again(comm, broadcast(5000));
      case RECORDS_IN_TURN -> inTurn(comm, List.of(allReduce(100), allReduce(100), allReduce(100)));
      case RECORDS_OF_OTHER_SHAPES_IN_TURN -> {
        List<Collective> records = allReduces(7);
        records.add(broadcast(10));
        yield inTurn(comm, records);
      }
      case FEW_RECORDS_AFTER_MANY -> {
        List<Collective> records = allReduces(100);
        Runnable many = inTurn(comm, records);
        for (int i = 0; i < 300; i++) {
          many.run();
        }
        yield inTurn(comm, records.subList(0, 5));
      }
      case RECORD_AFTER_A_LATE_MESSAGE -> {
        lateMessage(comm);
        yield again(comm, allReduce(100));
      }
      case BARRIER -> comm::barrier;
      case REDUCE -> again(comm, new Collective.Reduce(data(100), data(100), ReduceOp.SUM, 1));
      case GATHER -> again(comm, new Collective.Gather(data(100), data(200), 1));
      case SCATTER -> again(comm, new Collective.Scatter(data(200), data(100), 1));
      case ALL_GATHER -> again(comm, new Collective.AllGather(data(100), data(200)));
      case REDUCE_SCATTER ->
          again(comm, new Collective.ReduceScatter(data(200), data(100), ReduceOp.SUM));
      case ALL_TO_ALL -> again(comm, new Collective.AllToAll(data(200), data(200)));
      case SCAN -> again(comm, new Collective.Scan(data(100), data(100), ReduceOp.SUM));
      case EXCLUSIVE_SCAN ->
          again(comm, new Collective.ExclusiveScan(data(100), data(100), ReduceOp.SUM));
      case SEND_OR_RECEIVE ->
          again(
              comm,
              comm.rank() == 0
                  ? new PointToPoint.Send(data(100), 1, 7)
                  : new PointToPoint.Receive(data(100), 0, 7));
      case SEND_RECEIVE -> {
        int other = 1 - comm.rank();
        yield again(comm, new PointToPoint.SendReceive(data(100), other, 7, data(100), other, 7));
      }
      case ONE_LINE -> {
        float[] values = new float[16];
        yield () -> comm.allReduce(values, ReduceOp.MAX);
      }
    };
  }

  private static Runnable again(Communicator comm, Operation operation) {
    return () -> comm.run(operation);
  }

  private static Runnable inTurn(Communicator comm, List<Collective> records) {
    int[] turn = new int[1];
    return () -> comm.run(records.get(turn[0]++ % records.size()));
  }

  /// In the all-reduce, not before, rank 0 hears that rank 1 has asked.
  private static void lateMessage(Communicator comm) {
    if (comm.rank() == 1) {
      Request receive = comm.start(new PointToPoint.Receive(data(100), 0, 7));
      awaitInVain(receive);
      comm.allReduce(0L, ReduceOp.SUM);
      receive.await();
    } else {
      comm.allReduce(0L, ReduceOp.SUM);
      comm.run(new PointToPoint.Send(data(100), 1, 7));
    }
  }

  /// Until it has asked its peer where that is.
  static void awaitInVain(Request request) {
    try {
      request.await(TIME_TO_ASK);
    } catch (TimeoutException _) {
      return;
    }
    throw new AssertionError(request + " has ended");
  }

  private static HostData data(int count) {
    return CommData.of(new double[count]);
  }

  private static Collective allReduce(int count) {
    HostData data = CommData.of(new double[count]);
    return new Collective.AllReduce(data, data, ReduceOp.SUM);
  }

  private static Collective allReduceWithEpilogue() {
    HostData data = CommData.of(new double[100]);
    var epilogue = Epilogue.scale(0.5).plusBias(CommData.of(new double[7])).plusResidual(data);
    return new Collective.AllReduce(data, data, ReduceOp.SUM, epilogue);
  }

  private static Collective broadcast(int count) {
    return new Collective.Broadcast(CommData.of(new int[count]), 1);
  }

  /// Of 1, 2, 3 … elements.
  private static List<Collective> allReduces(int most) {
    List<Collective> records = new ArrayList<>();
    for (int count = 1; count <= most; count++) {
      records.add(allReduce(count));
    }
    return records;
  }
}
