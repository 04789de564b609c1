package org.comm4j.backend.local;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.CollectiveTimeoutException;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session;
import org.jspecify.annotations.Nullable;

/// As much of a session as the rendezvous needs, between processes that know a directory.
class MeetingSession implements Session {
  private final Path directory;
  private final int rank;
  private final int size;
  private final String id;

  MeetingSession(Path directory, int rank, int size, String id) {
    this.directory = directory;
    this.rank = rank;
    this.size = size;
    this.id = id;
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return size;
  }

  @Override
  public String id() {
    return id;
  }

  @Override
  public Member member(int peer) {
    return new Member(peer, new HostIdentity("here", "here"), 1, Set.of(), List.of("shm"));
  }

  @Override
  public List<byte[]> exchange(String key, byte[] mine, Duration timeout) {
    long end = System.nanoTime() + timeout.toNanos();
    try {
      Path mineUnfinished = directory.resolve(key + "-" + rank + ".new");
      Files.write(mineUnfinished, mine);
      Files.move(mineUnfinished, file(key, rank), StandardCopyOption.ATOMIC_MOVE);
      var all = new ArrayList<byte[]>();
      for (int peer = 0; peer < size; peer++) {
        while (!Files.exists(file(key, peer))) {
          if (System.nanoTime() - end > 0) {
            throw new CollectiveTimeoutException(List.of(peer), key);
          }
          LockSupport.parkNanos(200_000);
        }
        all.add(Files.readAllBytes(file(key, peer)));
      }
      return all;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private Path file(String key, int peer) {
    return directory.resolve(key + "-" + peer);
  }

  @Override
  public List<byte @Nullable []> agree(
      String key, List<Integer> members, byte[] mine, Duration timeout) {
    throw new UnsupportedOperationException("the rendezvous does not call it");
  }

  @Override
  public void put(String key, byte[] value) {
    throw new UnsupportedOperationException("the rendezvous does not call it");
  }

  @Override
  public byte[] get(String key, Duration timeout) {
    throw new UnsupportedOperationException("the rendezvous does not call it");
  }

  @Override
  public void abort(long scope, byte[] reason) {
    throw new UnsupportedOperationException("the rendezvous does not call it");
  }

  @Override
  public void abortProcesses(int code) {
    throw new UnsupportedOperationException("the rendezvous does not call it");
  }

  @Override
  public News news() {
    return News.NONE;
  }

  @Override
  public NewsAction onNews(Runnable action) {
    return () -> {};
  }

  @Override
  public void close() {}
}
