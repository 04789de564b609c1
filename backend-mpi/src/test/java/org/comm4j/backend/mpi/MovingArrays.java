package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.HostData;
import org.comm4j.api.Partition;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;

/// Arrays that ranks communicate while the collector moves objects. Says on standard output how
/// many rounds were good.
final class MovingArrays {
  private static final int ROUNDS = 2;
  private static final int LENT_BY_STAGES = 20; // each call below lends one array or two

  private MovingArrays() {}

  static void run(Communicator communicator) {
    var isOver = new AtomicBoolean();
    var _ =
        Thread.ofPlatform()
            .daemon()
            .start(() -> {
              byte[][] objects = new byte[1_000][];
              for (int i = 0; !isOver.get(); i = (i + 1) % objects.length) {
                objects[i] = new byte[1_000];
              }
            });
    int good = 0;
    for (int round = 0; round < ROUNDS; round++) {
      boolean isGood = true;
      for (int count : new int[] {500, 2_047, 2_048, 20_000}) { // 8 KiB and more are pinned
        long before = ArrayPins.lent();
        isGood &= atOnce(communicator, round, count);
        long between = ArrayPins.lent();
        isGood &= byStages(communicator, round, count);
        boolean pins = Pinning.isPossible() && count >= 2_048;
        isGood &= between > before || !pins;
        isGood &= ArrayPins.lent() - between >= LENT_BY_STAGES || !pins;
      }
      good += isGood ? 1 : 0;
    }
    isOver.set(true);
    System.out.println("%d of %d rounds".formatted(good, ROUNDS));
    System.out.println("pins arrays: " + (ArrayPins.lent() > 0));
    System.out.println("has not back: " + (ArrayPins.lent() - ArrayPins.takenBack()));
  }

  /// What goes straight to the library.
  private static boolean atOnce(Communicator communicator, int round, int count) {
    int rank = communicator.rank();
    int size = communicator.size();
    float[] sum = new float[count];
    float[] own = new float[count];
    Arrays.fill(sum, rank);
    Arrays.fill(own, round + rank);
    float[] result = new float[count];
    communicator.allReduce(CommData.of(sum), ReduceOp.SUM);
    communicator.run(new Collective.AllReduce(CommData.of(own), CommData.of(result), ReduceOp.MAX));
    long[] all = new long[count / 2 * size]; // of 2,047 a part is not pinned and the whole is
    int part = count / 2;
    Arrays.fill(all, part * rank, part * (rank + 1), (long) round * size + rank);
    HostData gathered = CommData.of(all);
    communicator.run(new Collective.AllGather(gathered.slice((long) part * rank, part), gathered));
    byte[] news = new byte[4 * count + 1];
    Arrays.fill(news, rank == 1 ? (byte) round : -1);
    MemorySegment odd = MemorySegment.ofArray(news).asSlice(1); // no float may stand there
    communicator.broadcast(CommData.of(DataType.FLOAT32, odd), 1);
    short[] letter = new short[2 * count];
    Arrays.fill(letter, (short) rank);
    if (rank == 0) {
      communicator.send(CommData.of(letter), 1, 7);
    } else if (rank == 1) {
      communicator.receive(CommData.of(letter), 0, 7);
    }
    boolean isGood = isAll(sum, size * (size - 1) / 2f) && isAll(own, round + rank);
    isGood &= isAll(result, round + size - 1f) && news[0] == (rank == 1 ? round : -1);
    for (int i = 0; i < all.length; i++) {
      isGood &= all[i] == (long) round * size + i / part;
    }
    for (int i = 1; i < news.length; i++) {
      isGood &= news[i] == round;
    }
    for (short each : letter) {
      isGood &= each == (rank == 1 ? 0 : rank);
    }
    return isGood;
  }

  /// What goes by stages: one function of the library or several, or messages.
  private static boolean byStages(Communicator communicator, int round, int count) {
    int rank = communicator.rank();
    int size = communicator.size();
    int last = size - 1;
    int ranks = size * (size - 1) / 2;
    int[] own = new int[count];
    int[] parts = new int[count * size];
    int[] result = new int[count];
    int[] all = new int[count * size];

    Arrays.fill(own, round + rank);
    communicator.reduce(CommData.of(own), CommData.of(result), ReduceOp.SUM, last);
    boolean isGood = rank != last || isAll(result, 0, count, size * round + ranks);
    communicator.gather(CommData.of(own), CommData.of(all), 0);
    for (int peer = 0; peer < size; peer++) {
      isGood &= rank != 0 || isAll(all, peer * count, count, round + peer);
      Arrays.fill(parts, peer * count, (peer + 1) * count, 100 * (round + rank) + peer);
    }
    communicator.scatter(CommData.of(parts), CommData.of(result), last);
    isGood &= isAll(result, 0, count, 100 * (round + last) + rank);
    communicator.reduceScatter(CommData.of(parts), CommData.of(result), ReduceOp.SUM);
    isGood &= isAll(result, 0, count, 100 * (size * round + ranks) + size * rank);
    communicator.run(new Collective.AllToAll(CommData.of(parts), CommData.of(all)));
    for (int peer = 0; peer < size; peer++) {
      isGood &= isAll(all, peer * count, count, 100 * (round + peer) + rank);
    }

    Partition uneven =
        Partition.of(IntStream.range(0, size).mapToLong(peer -> count - peer).toArray());
    Partition even = Partition.even(size, count);
    HostData mine = CommData.of(own).slice(0, count - rank);
    Arrays.fill(all, -1);
    communicator.run(new Collective.AllGatherV(mine, CommData.of(all), uneven));
    isGood &= hasAll(all, uneven, round);
    Arrays.fill(all, -1);
    communicator.run(new Collective.GatherV(mine, CommData.of(all), uneven, last));
    isGood &= rank != last || hasAll(all, uneven, round);
    int to = (rank + 1) % size;
    int from = (rank + last) % size;
    communicator.run(
        new PointToPoint.SendReceive(CommData.of(own), to, 3, CommData.of(result), from, 3));
    isGood &= isAll(result, 0, count, round + from) && isAll(own, 0, count, round + rank);

    communicator.run(
        new Collective.ScatterV(
            CommData.of(all), uneven, CommData.of(result).slice(0, count - rank), last));
    isGood &= isAll(result, 0, count - rank, round + rank);
    communicator.run(
        new Collective.ReduceScatterV(
            CommData.of(parts), uneven, CommData.of(result).slice(0, count - rank), ReduceOp.MAX));
    isGood &= size > 2 || isAll(result, 0, count - rank, 100 * (round + last) + rank);
    communicator.run(new Collective.AllToAllV(CommData.of(parts), even, CommData.of(all), even));
    for (int peer = 0; peer < size; peer++) {
      isGood &= isAll(all, peer * count, count, 100 * (round + peer) + rank);
    }
    communicator.run(new Collective.Scan(CommData.of(own), CommData.of(result), ReduceOp.MIN));
    isGood &= isAll(result, 0, count, round);
    communicator.reduce(CommData.of(own), CommData.of(own), ReduceOp.SUM, last); // in place
    return isGood && isAll(own, 0, count, rank == last ? size * round + ranks : round + rank);
  }

  private static boolean hasAll(int[] values, Partition parts, int round) {
    boolean isGood = true;
    for (int rank = 0; rank < parts.ranks(); rank++) {
      int first = (int) parts.displacement(rank);
      isGood &= isAll(values, first, (int) parts.count(rank), round + rank);
    }
    return isGood;
  }

  private static boolean isAll(int[] values, int first, int count, int expected) {
    return Arrays.stream(values, first, first + count).allMatch(value -> value == expected);
  }

  private static boolean isAll(float[] values, float expected) {
    for (float value : values) {
      if (value != expected) {
        return false;
      }
    }
    return true;
  }
}
