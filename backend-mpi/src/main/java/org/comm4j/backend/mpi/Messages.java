package org.comm4j.backend.mpi;

import java.util.List;
import org.comm4j.api.CommData;
import org.comm4j.api.HostData;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.UnsupportedException;

/// Makes calls of messages.
final class Messages {
  private final MpiGroup group;
  private final boolean synchronous;
  private final int largest;

  Messages(MpiGroup group) {
    this.group = group;
    this.synchronous = group.job().config().synchronousSend();
    this.largest = group.job().largestCount();
  }

  MessageCall call(PointToPoint operation, CallMemory memory) {
    return switch (operation) {
      case PointToPoint.Send send ->
          new MessageCall(
              group,
              send,
              memory,
              List.of(send(memory, send.data(), send.destination(), send.tag())),
              send.destination(),
              null);
      case PointToPoint.Receive receive ->
          new MessageCall(
              group,
              receive,
              memory,
              List.of(receive(memory, receive.data(), receive.source(), receive.tag())),
              -1,
              expected(receive.data(), receive.source(), receive.tag()));
      case PointToPoint.SendReceive both ->
          new MessageCall(
              group,
              both,
              memory,
              List.of(
                  new Both(
                      receive(memory, both.input(), both.source(), both.receiveTag()),
                      send(memory, both.output(), both.destination(), both.sendTag()))),
              both.destination(),
              expected(both.input(), both.source(), both.receiveTag()));
      case PointToPoint.Probe probe -> new ProbeCall(group, probe, memory);
    };
  }

  private static MessageCall.Expected expected(CommData data, int source, int tag) {
    return new MessageCall.Expected(source, tag, data.type(), data.count());
  }

  /// The memory of host data.
  static HostData host(CommData data) {
    if (data instanceof HostData host) {
      return host;
    }
    throw new UnsupportedException(
        data + ": this backend moves data in host memory only; copy it there first");
  }

  /// What is received first comes first among the requests.
  private record Both(Stage receive, Stage send) implements Stage {
    @Override
    public int requests() {
      return 2;
    }

    @Override
    public void start(Requests requests) {
      receive.start(requests);
      send.start(requests);
    }

    @Override
    public void end(Requests requests) {
      receive.end(requests);
    }
  }

  private Stage send(CallMemory memory, CommData data, int destination, int tag) {
    var buffer = memory.input(host(data).segment(), data.type().bytes());
    Amount amount = Amount.of(data.count(), data.type(), largest);
    int tagOfType = Tags.of(tag, data.type());
    long comm = group.messages();
    return synchronous
        ? Stage.of(
            "Ssend",
            request ->
                Mpi.issend(
                    buffer, amount.count(), amount.type(), destination, tagOfType, comm, request),
            () -> Mpi.ssend(buffer, amount.count(), amount.type(), destination, tagOfType, comm),
            amount)
        : Stage.of(
            "Send",
            request ->
                Mpi.isend(
                    buffer, amount.count(), amount.type(), destination, tagOfType, comm, request),
            () -> Mpi.send(buffer, amount.count(), amount.type(), destination, tagOfType, comm),
            amount);
  }

  private Stage receive(CallMemory memory, CommData data, int source, int tag) {
    return new Receive(group, memory, host(data), source, tag, largest);
  }

  /// A receive; what it writes to an array is as long as the message.
  private static final class Receive implements Stage {
    private final MpiGroup group;
    private final CallMemory memory;
    private final HostData data;
    private final java.lang.foreign.MemorySegment buffer;
    private final boolean isCopied;
    private final Amount amount;
    private final int source;
    private final int tag;

    Receive(MpiGroup group, CallMemory memory, HostData data, int source, int tag, int largest) {
      this.group = group;
      this.memory = memory;
      this.data = data;
      memory.uses(data.segment());
      var direct = memory.direct(data.segment(), data.type().bytes());
      this.isCopied = direct == null;
      this.buffer = direct == null ? memory.take(data.bytes()) : direct;
      this.amount = Amount.of(data.count(), data.type(), largest);
      this.source = Tags.source(source);
      this.tag = Tags.of(tag, data.type());
    }

    @Override
    public void start(Requests requests) {
      int code =
          Mpi.irecv(
              buffer,
              amount.count(),
              amount.type(),
              source,
              tag,
              group.messages(),
              requests.next());
      amount.free();
      Errors.check(code, "MPI_Irecv");
    }

    @Override
    public void run(Requests requests) {
      int code =
          Mpi.recv(
              buffer,
              amount.count(),
              amount.type(),
              source,
              tag,
              group.messages(),
              requests.blockingStatus());
      amount.free();
      if (Errors.isTruncation(code)) {
        throw new TruncatedException(requests.source(0), requests.tag(0));
      }
      Errors.check(code, "MPI_Recv");
    }

    @Override
    public void end(Requests requests) {
      if (isCopied) {
        long bytes = Math.min(requests.bytes(0), data.bytes());
        memory.copyAtEnd(buffer, 0, data.segment(), 0, bytes);
      }
    }
  }
}
