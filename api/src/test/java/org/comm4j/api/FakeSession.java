package org.comm4j.api;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session;
import org.comm4j.api.spi.SessionFactory;
import org.jspecify.annotations.Nullable;

/// A session in which the test says what the other ranks said.
final class FakeSession implements Session {
  /// Joins as the only rank, or with others that answer what the test says.
  public static class Factory implements SessionFactory {
    final List<List<String>> others = new ArrayList<>();
    @Nullable FakeSession joined;
    @Nullable JoinException failure;

    @Override
    public Session join(CommConfig config, List<String> usableBackends) {
      if (failure != null) {
        throw failure;
      }
      List<List<String>> answers = new ArrayList<>(others);
      answers.add(config.rank().orElseThrow(), usableBackends);
      var session = new FakeSession(config.rank().orElseThrow(), answers);
      joined = session;
      return session;
    }
  }

  final List<List<String>> answers;
  boolean closed;
  private final int rank;

  private FakeSession(int rank, List<List<String>> answers) {
    this.rank = rank;
    this.answers = answers;
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int size() {
    return answers.size();
  }

  @Override
  public String id() {
    return "0123456789abcdef";
  }

  @Override
  public Member member(int rank) {
    return new Member(rank, new HostIdentity("host", "id"), 1, Set.of(), answers.get(rank));
  }

  @Override
  public List<byte[]> exchange(String key, byte[] mine, Duration timeout) {
    throw new UnsupportedOperationException("opening a communicator does not call it");
  }

  @Override
  public List<byte @Nullable []> agree(
      String key, List<Integer> members, byte[] mine, Duration timeout) {
    throw new UnsupportedOperationException("opening a communicator does not call it");
  }

  @Override
  public void put(String key, byte[] value) {}

  @Override
  public byte[] get(String key, Duration timeout) {
    throw new UnsupportedOperationException("opening a communicator does not call it");
  }

  @Override
  public void abort(long scope, byte[] reason) {}

  @Override
  public void abortProcesses(int code) {}

  @Override
  public News news() {
    return News.NONE;
  }

  @Override
  public NewsAction onNews(Runnable action) {
    return () -> {};
  }

  @Override
  public void close() {
    closed = true;
  }
}
