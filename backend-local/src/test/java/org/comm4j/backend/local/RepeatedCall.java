package org.comm4j.backend.local;

import java.util.ArrayList;
import java.util.List;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.Epilogue;
import org.comm4j.api.HostData;
import org.comm4j.api.ReduceOp;

/// What [AllocatedBytes] has two ranks call over and over.
enum RepeatedCall {
  RECORD,

  /// Of many vectors and a part of one.
  LONG_RECORD,

  RECORD_WITH_EPILOGUE,

  BROADCAST_RECORD,

  RECORDS_IN_TURN,

  /// As a model's layers are reduced one after the other.
  RECORDS_OF_OTHER_SHAPES_IN_TURN,

  /// More shapes in turn than are kept, and then few, each of which was kept and thrown out before.
  FEW_RECORDS_AFTER_MANY,

  BARRIER,

  ONE_LINE;

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
      case BARRIER -> comm::barrier;
      case ONE_LINE -> {
        float[] values = new float[16];
        yield () -> comm.allReduce(values, ReduceOp.MAX);
      }
    };
  }

  private static Runnable again(Communicator comm, Collective operation) {
    return () -> comm.run(operation);
  }

  private static Runnable inTurn(Communicator comm, List<Collective> records) {
    int[] turn = new int[1];
    return () -> comm.run(records.get(turn[0]++ % records.size()));
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
