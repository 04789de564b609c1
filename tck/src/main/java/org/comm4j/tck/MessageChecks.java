package org.comm4j.tck;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.function.Function;
import org.comm4j.api.Capability;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Received;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Request;

/// Messages between two ranks.
final class MessageChecks {
  private static final int ANY_SOURCE = Communicator.ANY_SOURCE;
  private static final int ANY_TAG = Communicator.ANY_TAG;

  private MessageChecks() {}

  private static Request startSend(Communicator comm, CommData data, int to, int tag) {
    return comm.start(new PointToPoint.Send(data, to, tag));
  }

  private static Request startReceive(Communicator comm, CommData data, int from, int tag) {
    return comm.start(new PointToPoint.Receive(data, from, tag));
  }

  private static byte[] bytes(int count, long seed) {
    byte[] bytes = new byte[count];
    new SplittableRandom(seed).nextBytes(bytes);
    return bytes;
  }

  private static int right(LiveRank r) {
    return (r.rank() + 1) % r.size();
  }

  private static int left(LiveRank r) {
    return (r.rank() + r.size() - 1) % r.size();
  }

  /// Round a ring, every type, short and long, from memory of every kind.
  @Rule({"P1", "P12", "D6", "D4"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void message_anyTypeAndLength_arrivesUnchanged(LiveRank r) {
    Communicator comm = r.comm();
    List<CommBuffer> buffers = new ArrayList<>();
    List<Function<byte[], HostData>> places =
        List.of(
            CommData::of,
            content -> {
              CommBuffer buffer = comm.allocate(DataType.INT8, content.length + 1L);
              buffers.add(buffer);
              if (!(buffer.data() instanceof HostData whole)) {
                return CommData.of(content); // a device's memory is another check's
              }
              HostData part = whole.slice(1, content.length);
              part.segment().copyFrom(MemorySegment.ofArray(content));
              return part;
            },
            content -> {
              MemorySegment segment = Arena.ofAuto().allocate(content.length + 3L).asSlice(3);
              segment.copyFrom(MemorySegment.ofArray(content));
              return CommData.of(DataType.INT8, segment);
            },
            content -> {
              long[] longs = new long[content.length / 8 + 1];
              MemorySegment segment = MemorySegment.ofArray(longs).asSlice(0, content.length);
              segment.copyFrom(MemorySegment.ofArray(content));
              return CommData.of(DataType.INT8, segment);
            });
    int number = 0;
    for (DataType type : DataType.values()) {
      for (int count : new int[] {0, 1, 3, 100, 1000, 70_000 / type.bytes()}) {
        number++;
        byte[] sent = bytes(count * type.bytes(), r.seed() + r.rank() + number);
        HostData from = places.get(number % places.size()).apply(sent);
        HostData to = places.get((number + 1) % places.size()).apply(new byte[sent.length]);
        int tag = number * 37 % (Communicator.MAX_TAG + 1);
        Request receive = startReceive(comm, CommData.of(type, to.segment()), left(r), tag);
        comm.send(CommData.of(type, from.segment()), right(r), tag);
        receive.await();
        byte[] expected = bytes(count * type.bytes(), r.seed() + left(r) + number);
        Expect.that(
            "P1",
            Arrays.equals(to.segment().toArray(java.lang.foreign.ValueLayout.JAVA_BYTE), expected),
            "%s × %d from rank %d is not what was sent",
            type,
            count,
            left(r));
        Expect.equal("P1", "received", receive.result(), new Received(left(r), tag, count));
        Expect.that(
            "D4",
            Arrays.equals(from.segment().toArray(java.lang.foreign.ValueLayout.JAVA_BYTE), sent),
            "a send changed its data");
        buffers.forEach(CommBuffer::close);
        buffers.clear();
      }
    }
  }

  @Rule({"P1", "P12", "P11"})
  @Needs(ranks = 2, capabilities = Capability.POINT_TO_POINT)
  static void message_manyMebibytes_arriveUnchanged(LiveRank r) {
    Communicator comm = r.comm();
    int bytes = 9_000_001;
    if (r.rank() == 0) {
      byte[] sent = bytes(bytes, r.seed());
      comm.send(CommData.of(sent), 1, 0);
      Arrays.fill(sent, (byte) 0); // it may be changed now
      comm.send(CommData.of(bytes(bytes, r.seed() + 1)), 1, 0);
      try (CommBuffer buffer = comm.allocate(DataType.INT8, bytes / 3)) {
        buffer.write(0, CommData.of(bytes(bytes / 3, r.seed() + 2)));
        comm.send(buffer.data(), 1, 0);
        buffer.write(0, CommData.of(new byte[bytes / 3]));
      }
    } else if (r.rank() == 1) {
      for (int i = 0; i < 3; i++) {
        byte[] got = new byte[i < 2 ? bytes : bytes / 3];
        comm.receive(CommData.of(got), 0, 0);
        Expect.that(
            i == 1 ? "P1" : "P11",
            Arrays.equals(got, bytes(got.length, r.seed() + i)),
            "a long message is not what was sent");
      }
    }
  }

  @Rule({"P1", "P2"})
  @Needs(ranks = 2, capabilities = Capability.POINT_TO_POINT)
  static void message_ofAnotherTypeBehindALongOne_waitsForItsReceive(LiveRank r) {
    Communicator comm = r.comm();
    int count = 4_000_001;
    for (int round = 0; round < 3; round++) {
      if (r.rank() == 0) {
        Request first = startSend(comm, CommData.of(bytes(count, round)), 1, 7);
        Request second = startSend(comm, CommData.of(new int[] {round}), 1, 7);
        Request.waitAll(List.of(first, second));
      } else if (r.rank() == 1) {
        byte[] got = new byte[count];
        int[] behind = new int[1];
        comm.receive(CommData.of(got), 0, 7);
        comm.receive(CommData.of(behind), 0, 7);
        Expect.that("P1", Arrays.equals(got, bytes(count, round)), "it is not what was sent");
        Expect.equal("P2", "the message behind it", behind[0], round);
      }
    }
  }

  @Rule({"P2", "P11"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void messages_sameTag_matchInOrder(LiveRank r) {
    Communicator comm = r.comm();
    int messages = 300;
    List<int[]> got = new ArrayList<>();
    List<Request> receives = new ArrayList<>();
    // some receives are posted before, some after the messages come
    for (int i = 0; i < messages / 2; i++) {
      got.add(new int[2000]);
      receives.add(startReceive(comm, CommData.of(got.get(i)), left(r), 5));
    }
    List<Request> sends = new ArrayList<>();
    SplittableRandom random = r.random();
    int[] lengths = new int[messages];
    for (int i = 0; i < messages; i++) {
      // short ones must not overtake long ones
      lengths[i] = random.nextInt(4) == 0 ? 2000 : 1 + random.nextInt(3);
      int[] sent = new int[lengths[i]];
      Arrays.fill(sent, i);
      sends.add(startSend(comm, CommData.of(sent), right(r), 5));
      if (i % 50 == 1) {
        sends.getLast().isDone();
      }
    }
    for (int i = messages / 2; i < messages; i++) {
      got.add(new int[2000]);
      receives.add(startReceive(comm, CommData.of(got.get(i)), left(r), 5));
    }
    Request.waitAll(receives);
    Request.waitAll(sends);
    for (int i = 0; i < messages; i++) {
      int number = i;
      Expect.equal(
          "P2", "length of message " + i, receives.get(i).result().count(), (long) lengths[i]);
      Expect.that(
          "P2",
          Arrays.stream(got.get(i), 0, lengths[i]).allMatch(value -> value == number),
          "receive %d got message %d",
          i,
          got.get(i)[0]);
    }
  }

  @Rule("P2")
  @Needs(ranks = 2, capabilities = Capability.POINT_TO_POINT)
  static void receives_someWaitedForSomeStarted_matchInOrder(LiveRank r) {
    Communicator comm = r.comm();
    int messages = 400;
    SplittableRandom random = r.random();
    int[] lengths = random.ints(messages, 1, 4).map(i -> i == 3 ? 20_000 : i).toArray();
    if (r.rank() == 0) {
      List<Request> sends = new ArrayList<>();
      for (int i = 0; i < messages; i++) {
        int[] sent = new int[lengths[i]];
        Arrays.fill(sent, i);
        if (i % 3 == 0) {
          comm.send(CommData.of(sent), 1, 6); // also where the ones before have not gone out
        } else {
          sends.add(startSend(comm, CommData.of(sent), 1, 6));
        }
      }
      Request.waitAll(sends);
    } else if (r.rank() == 1) {
      List<int[]> got = new ArrayList<>();
      List<Request> started = new ArrayList<>();
      for (int i = 0; i < messages; i++) {
        got.add(new int[20_000]);
        int source = i % 7 == 0 ? Communicator.ANY_SOURCE : 0;
        if (i % 5 < 2) {
          started.add(startReceive(comm, CommData.of(got.get(i)), source, 6));
        } else {
          Received received = comm.receive(CommData.of(got.get(i)), source, 6);
          Expect.equal("P2", "length of message " + i, received.count(), (long) lengths[i]);
        }
      }
      Request.waitAll(started);
      for (int i = 0; i < messages; i++) {
        int number = i;
        Expect.that(
            "P2",
            Arrays.stream(got.get(i), 0, lengths[i]).allMatch(value -> value == number),
            "receive %d got message %d",
            i,
            got.get(i)[0]);
      }
    }
  }

  @Rule("P3")
  @Needs(ranks = 2, capabilities = Capability.POINT_TO_POINT)
  static void receive_tag_takesOnlyItsTag(LiveRank r) {
    Communicator comm = r.comm();
    int[] tags = {0, 1, 2, 255, 256, 4096, Communicator.MAX_TAG};
    if (r.rank() == 0) {
      for (int tag : tags) {
        comm.start(new PointToPoint.Send(CommData.of(tag), 1, tag));
      }
      comm.sync();
    } else if (r.rank() == 1) {
      for (int i = tags.length - 1; i >= 0; i--) { // in another order than they were sent
        int[] got = new int[1];
        Received received = comm.receive(CommData.of(got), 0, tags[i]);
        Expect.equal("P3", "the message with tag " + tags[i], got[0], tags[i]);
        Expect.equal("P3", "its tag", received.tag(), tags[i]);
      }
    }
  }

  /// The message that is received first is sent when the others are there.
  @Rule("P3")
  @Needs(ranks = 3, capabilities = Capability.POINT_TO_POINT)
  static void receive_source_takesOnlyItsSource(LiveRank r) {
    Communicator comm = r.comm();
    int last = r.size() - 1;
    if (r.rank() != 0) {
      if (r.rank() == last) {
        comm.receive(CommData.of(new int[1]), 0, 4);
      }
      comm.send(CommData.of(r.rank()), 0, 3);
      return;
    }
    for (int source = 1; source < last; source++) {
      comm.run(new PointToPoint.Probe(source, 3));
    }
    comm.send(CommData.of(0), last, 4);
    for (int source = last; source > 0; source--) {
      int[] got = new int[1];
      Received received = comm.receive(CommData.of(got), source, 3);
      Expect.equal("P3", "the message of rank " + source, got[0], source);
      Expect.equal("P3", "its source", received.source(), source);
    }
  }

  @Rule({"P4", "P5", "P2"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void receive_anySourceAndTag_takesEachMessageOnce(LiveRank r) {
    Communicator comm = r.comm();
    int each = 20;
    List<Request> sends = new ArrayList<>();
    for (int i = 0; i < each; i++) {
      sends.add(startSend(comm, CommData.of(r.rank(), i), 0, 100 + i));
    }
    if (r.rank() == 0) {
      BitSet seen = new BitSet();
      int[] next = new int[r.size()];
      for (int i = 0; i < each * r.size(); i++) {
        int[] got = new int[2];
        Received received = comm.receive(CommData.of(got), ANY_SOURCE, ANY_TAG);
        Expect.equal("P4", "source", received.source(), got[0]);
        Expect.equal("P5", "tag", received.tag(), 100 + got[1]);
        Expect.that("P4", !seen.get(got[0] * each + got[1]), "a message came twice");
        Expect.equal("P2", "message of rank " + got[0], got[1], next[got[0]]++);
        seen.set(got[0] * each + got[1]);
      }
    }
    Request.waitAll(sends);
  }

  @Rule({"P4", "P5"})
  @Needs(ranks = 2, capabilities = Capability.POINT_TO_POINT)
  static void receive_anySourceWithTag_leavesOtherTags(LiveRank r) {
    Communicator comm = r.comm();
    if (r.rank() != 0) {
      Request first = startSend(comm, CommData.of(1), 0, 11);
      comm.send(CommData.of(2), 0, 12);
      first.await();
      return;
    }
    int[] got = new int[1];
    for (int i = 1; i < r.size(); i++) {
      comm.receive(CommData.of(got), ANY_SOURCE, 12);
      Expect.equal("P4", "what came with tag 12", got[0], 2);
    }
    for (int source = 1; source < r.size(); source++) {
      Received received = comm.receive(CommData.of(got), source, ANY_TAG);
      Expect.equal("P5", "what was left", got[0], 1);
      Expect.equal("P5", "its tag", received.tag(), 11);
    }
  }

  @Rule("P6")
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void receive_shorterMessage_leavesTheRest(LiveRank r) {
    Communicator comm = r.comm();
    for (int count : new int[] {0, 1, 7, 5000}) {
      short[] got = new short[6000];
      Arrays.fill(got, (short) -1);
      short[] sent = new short[count];
      Arrays.fill(sent, (short) 9);
      Request receive = startReceive(comm, CommData.of(got), left(r), 2);
      comm.send(CommData.of(sent), right(r), 2);
      receive.await();
      Expect.equal("P6", "count", receive.result().count(), (long) count);
      for (int i = 0; i < got.length; i++) {
        Expect.equal("P6", "element " + i, got[i], (short) (i < count ? 9 : -1));
      }
    }
  }

  @Rule({"P7", "F1"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void receive_longerMessageOrOtherType_isAMismatch(LiveRank r) {
    for (boolean isLonger : new boolean[] {true, false}) {
      try (Communicator comm = r.comm().duplicate()) {
        if (r.rank() == 0) {
          CommData data = isLonger ? CommData.of(new int[8]) : CommData.of(new float[4]);
          Mismatches.untilBroken("P7", comm, () -> comm.send(data, 1, 4));
        } else if (r.rank() == 1) {
          Mismatches.untilBroken("P7", comm, () -> comm.receive(CommData.of(new int[4]), 0, 4));
        } else {
          Mismatches.untilBroken("P7", comm, () -> {});
        }
      }
    }
  }

  /// A message that is too long may have come before this rank looks for it again: taking the
  /// receive back then must not make it a success.
  @Rule({"P7", "P14"})
  @Needs(
      ranks = 2,
      capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void cancel_longerMessageHasCome_isAMismatchStill(LiveRank r) {
    Communicator all = r.comm();
    try (Communicator comm = all.duplicate()) {
      int[] got = new int[4];
      Request receive = r.rank() == 1 ? startReceive(comm, CommData.of(got), 0, 4) : null;
      all.barrier();
      Request send = r.rank() == 0 ? startSend(comm, CommData.of(new int[8]), 1, 4) : null;
      all.barrier();
      int[] isTaken = {receive != null && receive.cancel() ? 1 : 0};
      all.broadcast(CommData.of(isTaken), 1);
      if (isTaken[0] == 1) { // nothing had matched it, so the message is for the next one
        if (receive != null) {
          comm.receive(CommData.of(new int[8]), 0, 4);
        }
        if (send != null) {
          send.await();
        }
      } else {
        Mismatches.untilBroken(
            "P7",
            comm,
            () -> {
              if (receive != null) {
                receive.await();
              }
            });
      }
    }
  }

  @Rule("P8")
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void probe_message_leavesItForTheNextReceive(LiveRank r) {
    Communicator comm = r.comm();
    Request first = startSend(comm, CommData.of(1.0, 2.0, 3.0), right(r), 21);
    Request second = startSend(comm, CommData.of(4.0), right(r), 21);
    for (int source : new int[] {left(r), ANY_SOURCE}) {
      for (int tag : new int[] {21, ANY_TAG}) {
        Expect.equal("P8", "probe", comm.probe(source, tag), new Received(left(r), 21, 3));
      }
    }
    double[] got = new double[3];
    Expect.equal("P8", "received", comm.receive(CommData.of(got), left(r), 21).count(), 3L);
    Expect.that("P8", got[2] == 3.0, "the receive got another message than the probe");
    Expect.equal("P8", "the next", comm.probe(ANY_SOURCE, 21), new Received(left(r), 21, 1));
    comm.receive(CommData.of(got), left(r), 21);
    Expect.that("P8", got[0] == 4.0, "the second message is another one");
    Request probe = comm.start(new PointToPoint.Probe(left(r), 22));
    Expect.that("P8", !probe.isDone(), "a probe found a message that was not sent");
    probe.cancel();
    Request.waitAll(List.of(first, second));
    comm.barrier(); // a rank that closed before would end the others' probes
  }

  @Rule({"P8", "P2"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void probe_messagesOfSeveralTypes_tellsTheFirst(LiveRank r) {
    Communicator comm = r.comm();
    Request first = startSend(comm, CommData.of(new int[10]), right(r), 23);
    Request second = startSend(comm, CommData.of(1.0, 2.0, 3.0), right(r), 23);
    Request last = startSend(comm, CommData.of(5L), right(r), 24);
    Expect.equal("P8", "the last", comm.probe(left(r), 24), new Received(left(r), 24, 1));
    for (int source : new int[] {left(r), ANY_SOURCE}) {
      Expect.equal("P8", "the first", comm.probe(source, 23), new Received(left(r), 23, 10));
    }
    comm.receive(CommData.of(new int[10]), left(r), 23);
    Expect.equal("P8", "the next", comm.probe(left(r), 23), new Received(left(r), 23, 3));
    comm.receive(CommData.of(new double[3]), left(r), 23);
    comm.receive(CommData.of(new long[1]), left(r), 24);
    Request.waitAll(List.of(first, second, last));
    comm.barrier(); // a rank that closed before would end the others' probes
  }

  @Rule({"P9", "P2"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void message_toItself_arrives(LiveRank r) {
    Communicator comm = r.comm();
    int me = r.rank();
    for (int count : new int[] {0, 1, 1000, 300_000}) {
      int[] sent = new int[count];
      Arrays.fill(sent, me + 1);
      int[] got = new int[count];
      Request receive = startReceive(comm, CommData.of(got), me, 1);
      comm.send(CommData.of(sent), me, 1);
      receive.await();
      Expect.that("P9", Arrays.equals(sent, got), "a message to itself is not what was sent");
      Expect.equal("P9", "received", receive.result(), new Received(me, 1, count));
      // the message first, then its receive
      Arrays.fill(got, 0);
      Request send = startSend(comm, CommData.of(sent), me, 2);
      comm.receive(CommData.of(got), ANY_SOURCE, ANY_TAG);
      send.await();
      Expect.that("P9", Arrays.equals(sent, got), "a message to itself is not what was sent");
      Received both = comm.sendReceive(CommData.of(sent), me, CommData.of(got), me, 3);
      Expect.equal("P9", "received", both, new Received(me, 3, count));
    }
  }

  @Rule("P10")
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void sendReceive_ring_neverWaitsForEver(LiveRank r) {
    Communicator comm = r.comm();
    for (int count : new int[] {0, 1, 1000, 400_000}) {
      float[] sent = new float[count];
      Arrays.fill(sent, r.rank());
      float[] got = new float[count];
      Received received =
          comm.sendReceive(CommData.of(sent), right(r), CommData.of(got), left(r), 9);
      Expect.equal("P10", "received", received, new Received(left(r), 9, count));
      for (float each : got) {
        Expect.that("P10", each == left(r), "got %s (expected: %d)", each, left(r));
      }
      // two tags, any source
      Received any =
          comm.run(
              new PointToPoint.SendReceive(
                  CommData.of(sent), left(r), 3, CommData.of(got), ANY_SOURCE, 3));
      Expect.equal("P10", "received", any, new Received(right(r), 3, count));
    }
  }

  @Rule({"P13", "P2"})
  @Needs(ranks = 2, capabilities = Capability.POINT_TO_POINT)
  static void messages_nobodyReceivesThem_takeBoundedMemory(LiveRank r) {
    Communicator comm = r.comm();
    int messages = 100; // whose sends all have one deadline
    int bytes = 100_000;
    long bound = (long) messages * bytes / 2; // all of them can't be there
    if (r.rank() == 0) {
      byte[] sent = new byte[bytes]; // one for all: what grows is not this
      List<Request> sends = new ArrayList<>();
      for (int i = 0; i < messages; i++) {
        sends.add(startSend(comm, CommData.of(sent), 1, 1));
      }
      sends.add(startSend(comm, CommData.of(77), 1, 2));
      sends.add(startSend(comm, CommData.of(78), 1, 3));
      Request.waitAll(sends);
    } else if (r.rank() == 1) {
      long before = Allocations.heldBytes();
      int[] passed = new int[1];
      comm.receive(CommData.of(passed), 0, 2);
      Expect.equal("P13", "what passed the others", passed[0], 77);
      comm.receive(CommData.of(passed), 0, 3);
      Expect.equal("P13", "what passed the others", passed[0], 78);
      long grown = Allocations.heldBytes() - before;
      Expect.that(
          "P13",
          grown < bound,
          "%d messages of %d bytes took %d bytes (expected: fewer than %d)",
          messages,
          bytes,
          grown,
          bound);
      byte[] got = new byte[bytes];
      for (int i = 0; i < messages; i++) {
        Expect.equal("P13", "length", comm.receive(CommData.of(got), 0, 1).count(), (long) bytes);
      }
    }
  }

  @Rule({"P13", "P2"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void messages_toMyself_takeBoundedMemory(LiveRank r) {
    Communicator comm = r.comm();
    int messages = 400;
    int count = 15_000;
    int[][] sent = new int[messages][count];
    List<Request> sends = new ArrayList<>();
    for (int i = 0; i < messages; i++) {
      sent[i][0] = i;
      sends.add(startSend(comm, CommData.of(sent[i]), r.rank(), 1));
    }
    long kept = sends.stream().filter(Request::isDone).count();
    Expect.that(
        "P13",
        kept < messages / 2,
        "%d of %d messages of %d bytes were sent to oneself before one was received (expected: fewer than half)",
        kept,
        messages,
        Integer.BYTES * count);
    int[] got = new int[count];
    for (int i = 0; i < messages; i++) {
      Expect.equal(
          "P2", "length", comm.receive(CommData.of(got), r.rank(), 1).count(), (long) count);
      Expect.equal("P2", "message", got[0], i);
    }
    Request.waitAll(sends);
  }

  /// Many ranks send many messages to one that takes them later.
  @Rule({"P13", "P2"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void messages_fromAllToOne_arriveInOrder(LiveRank r) {
    Communicator comm = r.comm();
    int each = 500;
    List<Request> sends = new ArrayList<>();
    for (int i = 0; i < each; i++) {
      int[] sent = new int[1 + i * 7 % 3000];
      Arrays.fill(sent, i);
      sends.add(startSend(comm, CommData.of(sent), 0, i % 2));
    }
    comm.run(new Collective.Barrier()); // collectives pass them
    if (r.rank() == 0) {
      int[] got = new int[3000];
      for (int tag = 1; tag >= 0; tag--) {
        for (int i = tag; i < each; i += 2) {
          for (int source = 0; source < r.size(); source++) {
            Received received = comm.receive(CommData.of(got), source, tag);
            Expect.equal("P2", "message", got[0], i);
            Expect.equal("P2", "count", received.count(), 1L + i * 7 % 3000);
          }
        }
      }
    }
    Request.waitAll(sends);
  }

  @Rule("P14")
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void cancel_unmatched_takesBack(LiveRank r) {
    Communicator comm = r.comm();
    int[] first = {-1};
    int[] second = {-1};
    Request receive = startReceive(comm, CommData.of(first), left(r), 1);
    Request probe = comm.start(new PointToPoint.Probe(left(r), 1));
    Expect.that("P14", !receive.isDone(), "a receive has ended without a message");
    Expect.that("P14", receive.cancel(), "cancel() of a receive is false");
    Expect.that("P14", probe.cancel(), "cancel() of a probe is false");
    Expect.that("P14", receive.isDone() && probe.isDone(), "what was cancelled is not done");
    Expect.thrown("P14", CancellationException.class, "await", receive::await);
    Expect.thrown("P14", CancellationException.class, "await", probe::await);
    Expect.thrown("P14", IllegalStateException.class, "result()", receive::result);
    comm.run(new Collective.Barrier());
    startSend(comm, CommData.of(5), right(r), 1);
    Request next = startReceive(comm, CommData.of(second), left(r), 1);
    next.await();
    Expect.equal("P14", "what the next receive got", second[0], 5);
    Expect.equal("P14", "the cancelled receive's data", first[0], -1);
    Expect.that("P14", !next.cancel(), "cancel() after a match is true");
    Request other =
        comm.start(new Collective.AllReduce(CommData.of(first), CommData.of(first), ReduceOp.SUM));
    Expect.thrown("P14", IllegalStateException.class, "cancel() of allReduce", other::cancel);
    other.await();
    Request send = startSend(comm, CommData.of(1), r.rank(), 8);
    Expect.thrown("P14", IllegalStateException.class, "cancel() of a send", send::cancel);
    comm.receive(CommData.of(first), r.rank(), 8);
    send.await();
  }

  /// Another thread takes back what a barrier waits for: before, while, or after it looks.
  @Rule({"O25", "P14"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void barrier_receiveTakenBackMeanwhile_goesOn(LiveRank r) throws InterruptedException {
    Communicator comm = r.comm();
    for (int i = 0; i < 20; i++) {
      Request receive = startReceive(comm, CommData.of(new int[1]), left(r), 90);
      CountDownLatch begins = new CountDownLatch(1);
      CompletableFuture<Void> barrier =
          ThreadChecks.async(
              Thread.ofPlatform(),
              () -> {
                begins.countDown();
                comm.barrier();
              });
      begins.await();
      for (long start = System.nanoTime(); System.nanoTime() - start < i * 20_000L; ) {
        Thread.onSpinWait();
      }
      Expect.that("P14", receive.cancel(), "cancel() of a receive is false");
      ThreadChecks.join("O25", barrier);
    }
  }

  @Rule("P15")
  @Needs(
      ranks = 2,
      setting = Needs.Setting.SYNCHRONOUS_SEND,
      capabilities = Capability.POINT_TO_POINT)
  static void send_synchronous_waitsForItsReceive(LiveRank r) {
    Communicator comm = r.comm();
    int[] got = new int[1];
    if (r.rank() == 0) {
      Request send = startSend(comm, CommData.of(1), 1, 1);
      Request toItself = startSend(comm, CommData.of(2), 0, 1);
      comm.receive(CommData.of(got), 1, 2); // by now the first one has been at rank 1
      Expect.that("P15", !send.isDone(), "a synchronous send ended before its receive");
      Expect.that("P15", !toItself.isDone(), "a synchronous send to itself ended");
      Request answer = startSend(comm, CommData.of(3), 1, 3);
      send.await();
      answer.await();
      comm.receive(CommData.of(got), 0, 1);
      toItself.await();
    } else if (r.rank() == 1) {
      comm.probe(0, 1);
      comm.send(CommData.of(2), 0, 2);
      comm.receive(CommData.of(got), 0, 3);
      comm.receive(CommData.of(got), 0, 1);
      Expect.equal("P15", "message", got[0], 1);
    }
  }

  /// One without content has nothing to carry its end: it is easily overlooked.
  @Rule({"P15", "P12"})
  @Needs(
      ranks = 2,
      setting = Needs.Setting.SYNCHRONOUS_SEND,
      capabilities = Capability.POINT_TO_POINT)
  static void send_synchronousAndEmpty_endsWithItsReceive(LiveRank r) {
    Communicator comm = r.comm();
    int[] none = new int[0];
    for (boolean isExpected : new boolean[] {true, false}) {
      if (r.rank() == 0) {
        comm.receive(CommData.of(none), 1, 2);
        comm.send(CommData.of(none), 1, 1);
        comm.send(CommData.of(none), 1, 3);
      } else if (r.rank() == 1) {
        Request expected = startReceive(comm, CommData.of(none), 0, isExpected ? 1 : 3);
        comm.send(CommData.of(none), 0, 2);
        comm.receive(CommData.of(none), 0, isExpected ? 3 : 1);
        expected.await();
      }
    }
  }

  @Rule({"P16", "G4"})
  @Needs(capabilities = {Capability.POINT_TO_POINT, Capability.SPLIT})
  static void messages_otherCommunicator_areOthers(LiveRank r) {
    try (Communicator other = r.comm().duplicate();
        Communicator turned = r.comm().split(0, -r.rank()).orElseThrow()) {
      Communicator comm = r.comm();
      int last = r.size() - 1;
      int me = r.rank();
      // the same two ranks, the same tag, three communicators; received in another order
      List<Request> sends = new ArrayList<>();
      sends.add(startSend(comm, CommData.of(1), right(r), 1));
      sends.add(startSend(other, CommData.of(2), right(r), 1));
      sends.add(startSend(turned, CommData.of(3), last - right(r), 1));
      int[] got = new int[1];
      comm.allReduce(new long[] {1}, ReduceOp.SUM);
      Received received = turned.receive(CommData.of(got), ANY_SOURCE, ANY_TAG);
      Expect.equal("P16", "in the third communicator", got[0], 3);
      Expect.equal("P16", "its source", received.source(), last - left(r));
      other.receive(CommData.of(got), ANY_SOURCE, ANY_TAG);
      Expect.equal("P16", "in the second communicator", got[0], 2);
      other.allReduce(new long[] {1}, ReduceOp.SUM);
      comm.receive(CommData.of(got), ANY_SOURCE, ANY_TAG);
      Expect.equal("P16", "in the first communicator", got[0], 1);
      Expect.equal("P16", "rank", turned.rank(), last - me);
      Request.waitAll(sends);
    }
  }

  /// Messages and collectives in flight at once, in any order.
  @Rule({"P16", "O23", "X8"})
  @Needs(capabilities = Capability.POINT_TO_POINT)
  static void messages_besideCollectives_dontMeet(LiveRank r) {
    Communicator comm = r.comm();
    SplittableRandom random = r.random();
    List<Request> requests = new ArrayList<>();
    List<long[]> sums = new ArrayList<>();
    List<int[]> got = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      if (random.nextBoolean()) {
        long[] sum = new long[1 + random.nextInt(2000)];
        Arrays.fill(sum, sums.size() + r.rank());
        sums.add(sum);
        CommData view = CommData.of(sum);
        requests.add(comm.start(new Collective.AllReduce(view, view, ReduceOp.SUM)));
      } else {
        int[] sent = new int[1 + random.nextInt(2000)];
        Arrays.fill(sent, got.size() * r.size() + r.rank());
        int[] to = new int[sent.length];
        got.add(to);
        requests.add(startSend(comm, CommData.of(sent), right(r), 1));
        requests.add(startReceive(comm, CommData.of(to), left(r), 1));
      }
    }
    int awaited = 0;
    List<Request> open = new ArrayList<>(requests);
    while (!open.isEmpty()) {
      open.remove(Request.waitAny(open)).await();
      awaited++;
    }
    Expect.equal("X8", "how many were awaited", awaited, requests.size());
    for (int i = 0; i < got.size(); i++) {
      int expected = i * r.size() + left(r);
      Expect.that(
          "P16",
          Arrays.stream(got.get(i)).allMatch(value -> value == expected),
          "message %d is not what was sent",
          i);
    }
    for (int i = 0; i < sums.size(); i++) {
      long expected = (long) i * r.size() + r.size() * (r.size() - 1L) / 2;
      Expect.that(
          "P16",
          Arrays.stream(sums.get(i)).allMatch(value -> value == expected),
          "not all of sum %d is %d",
          i,
          expected);
    }
  }
}
