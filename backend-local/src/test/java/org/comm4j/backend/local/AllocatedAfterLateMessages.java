package org.comm4j.backend.local;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Request;
import org.comm4j.tck.Allocations;
import org.comm4j.tck.ThreadGroups;

/// Counts what a small message allocates on both ranks together, before and after messages that had
/// to wait; prints both counts. One thread is both ranks, so that the messages that are counted are
/// there when they are received.
///
///     <provider>
final class AllocatedAfterLateMessages {
  private static final int CALLS = 100;
  private static final int LARGER = 2000; // elements: credit ends before the ring has no room
  private static final int ROUNDS = 10;

  private final Communicator sender;
  private final Communicator receiver;
  private final PointToPoint.Send send = send(100);
  private final PointToPoint.Receive receive = receive(100);

  private AllocatedAfterLateMessages(LocalGroup group) {
    this.sender = group.communicator(0);
    this.receiver = group.communicator(1);
  }

  private static PointToPoint.Send send(int count) {
    return new PointToPoint.Send(CommData.of(new double[count]), 1, 7);
  }

  private static PointToPoint.Receive receive(int count) {
    return new PointToPoint.Receive(CommData.of(new double[count]), 0, 7);
  }

  public static void main(String[] args) {
    CommConfig config = CommConfig.builder().build();
    try (LocalGroup group = ThreadGroups.open(AllocatedBytes.provider(args[0]), 2, config)) {
      var messages = new AllocatedAfterLateMessages(group);
      double before = messages.least();
      messages.late();
      System.out.println(before + " " + messages.least());
    }
  }

  /// The first messages load classes.
  private double least() {
    return IntStream.range(0, ROUNDS)
        .mapToDouble(_ -> Allocations.perCall(CALLS, this::message))
        .min()
        .orElseThrow();
  }

  private void message() {
    sender.run(send);
    receiver.run(receive);
  }

  /// One whose receive has asked for it, then so many larger ones that the last finds no credit,
  /// and asks for its receive.
  private void late() {
    Request early = receiver.start(receive);
    RepeatedCall.awaitInVain(early);
    sender.run(send);
    early.await();
    List<Request> all = new ArrayList<>();
    do {
      all.add(sender.start(send(LARGER)));
    } while (all.getLast().isDone());
    RepeatedCall.awaitInVain(all.getLast());
    int sent = all.size();
    for (int i = 0; i < sent; i++) {
      all.add(receiver.start(receive(LARGER)));
    }
    Request.waitAll(all);
  }
}
