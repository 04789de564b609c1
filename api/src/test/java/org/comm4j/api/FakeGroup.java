package org.comm4j.api;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.RankGroup;
import org.jspecify.annotations.Nullable;

/// A group of threads in which every operation is a barrier.
final class FakeGroup implements RankGroup {
  static volatile @Nullable FakeGroup last;

  final List<FakeCommunicator> communicators;
  final List<Integer> failed = new ArrayList<>();
  final List<Integer> left = new ArrayList<>();
  final CountDownLatch ended = new CountDownLatch(1); // when it is closed
  boolean closed;
  private int waiting;
  private int round;

  FakeGroup(int size, String backend) {
    communicators = IntStream.range(0, size).mapToObj(rank -> make(rank, size, backend)).toList();
    last = this;
  }

  private FakeCommunicator make(int rank, int size, String backend) {
    var communicator = new FakeCommunicator(rank, size, backend);
    communicator.onRun =
        _ -> {
          barrier(communicator);
          return null;
        };
    return communicator;
  }

  private synchronized void barrier(FakeCommunicator me) {
    int mine = round;
    waiting++;
    if (waiting == communicators.size()) {
      waiting = 0;
      round++;
      notifyAll();
    }
    while (round == mine) {
      CommException failure = me.failure;
      if (failure != null) {
        throw failure;
      }
      try {
        wait(10);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        me.abort(new InterruptedCallException("interrupted"));
        breakOthers(me.rank, () -> new AbortedException(me.rank, "interrupted", null));
      }
    }
  }

  private void breakOthers(int rank, Supplier<CommException> failure) {
    communicators.stream()
        .filter(each -> each.rank != rank)
        .forEach(each -> each.abort(failure.get()));
  }

  @Override
  public int size() {
    return communicators.size();
  }

  @Override
  public BackendCommunicator communicator(int rank) {
    return communicators.get(rank);
  }

  @Override
  public synchronized void fail(int rank, Throwable cause) {
    failed.add(rank);
    List<Integer> ranks = List.of(rank);
    breakOthers(rank, () -> new PeerFailedException(ranks, ranks, "its thread ended", cause));
    notifyAll();
  }

  @Override
  public synchronized void leave(int rank) {
    if (!left.contains(rank) && !failed.contains(rank)) {
      left.add(rank);
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    ended.countDown();
  }
}
