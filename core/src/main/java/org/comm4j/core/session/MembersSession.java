package org.comm4j.core.session;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.spi.Session;
import org.jspecify.annotations.Nullable;

/// A session of some of another session's ranks, which build something together. They count from 0
/// and have keys of their own; it ends with the whole session, and [#close] does nothing.
public final class MembersSession implements Session {
  private static final int ID_BYTES = 16;

  private final Session whole;
  private final String name;
  private final List<Integer> members;
  private final String id;
  private volatile Known known = new Known(News.NONE, News.NONE);

  /// News of the whole session, and what of them concerns members.
  private record Known(News all, News ours) {}

  private MembersSession(Session whole, String name, List<Integer> members) {
    this.whole = whole;
    this.name = name;
    this.members = List.copyOf(members);
    this.id = idOf(whole, name);
  }

  /// {@return the ranks that run where this one does, in order}
  ///
  /// @param session whose members know their hosts
  public static List<Integer> ranksOfThisHost(Session session) {
    String here = session.member(session.rank()).host().id();
    return IntStream.range(0, session.size())
        .filter(rank -> session.member(rank).host().id().equals(here))
        .boxed()
        .toList();
  }

  /// {@return a part of a session}
  ///
  /// @param whole of all ranks
  /// @param name of the part, the same on all its members and no other part's
  /// @param members ranks of the session, this one among them; the same on all of them
  public static MembersSession of(Session whole, String name, List<Integer> members) {
    if (!members.contains(whole.rank())) {
      throw new IllegalArgumentException(
          "members: %s (expected: rank %d among them)".formatted(members, whole.rank()));
    }
    return new MembersSession(whole, name, members);
  }

  @Override
  public int rank() {
    return members.indexOf(whole.rank());
  }

  @Override
  public int size() {
    return members.size();
  }

  /// Follows from the whole session's and the part's name.
  @Override
  public String id() {
    return id;
  }

  private static String idOf(Session whole, String name) {
    byte[] names = (whole.id() + "/" + name).getBytes(StandardCharsets.UTF_8);
    try { // SHA-256, as not every JVM may use MD5, of which UUIDs of names are made
      byte[] hash = MessageDigest.getInstance("SHA-256").digest(names);
      return HexFormat.of().formatHex(hash, 0, ID_BYTES);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e); // every Java has it
    }
  }

  @Override
  public Member member(int rank) {
    Member member = whole.member(members.get(rank));
    return new Member(rank, member.host(), member.pid(), member.processors(), member.backends());
  }

  private String own(String key) {
    return name + "/" + key;
  }

  private List<Integer> ranks(List<Integer> some) {
    return some.stream().map(members::get).toList();
  }

  @Override
  public List<byte[]> exchange(String key, byte[] mine, Duration timeout) {
    List<byte @Nullable []> all = whole.agree(own(key), members, mine, timeout);
    List<Integer> missing = new ArrayList<>();
    for (int each = 0; each < all.size(); each++) {
      if (all.get(each) == null) {
        missing.add(members.get(each));
      }
    }
    if (!missing.isEmpty()) {
      throw new PeerFailedException(missing, missing, evidence(missing.getFirst()), null);
    }
    return all.stream().map(Objects::requireNonNull).toList();
  }

  private String evidence(int rank) {
    return whole.news().failures().stream()
        .filter(failure -> failure.rank() == rank)
        .map(Failure::evidence)
        .findFirst()
        .orElse("gone");
  }

  @Override
  public List<byte @Nullable []> agree(
      String key, List<Integer> some, byte[] mine, Duration timeout) {
    return whole.agree(own(key), ranks(some), mine, timeout);
  }

  @Override
  public void put(String key, byte[] value) {
    whole.put(own(key), value);
  }

  @Override
  public byte[] get(String key, Duration timeout) {
    return whole.get(own(key), timeout);
  }

  @Override
  public void abort(long scope, byte[] reason) {
    whole.abort(scope, reason);
  }

  @Override
  public void abortProcesses(int code) {
    whole.abortProcesses(code);
  }

  /// What concerns members.
  @Override
  public News news() {
    Known last = known;
    return last.all == whole.news() ? last.ours : translated();
  }

  /// One at a time, so that all threads see the same object.
  private synchronized News translated() {
    News all = whole.news();
    if (known.all != all) {
      known = new Known(all, ours(all));
    }
    return known.ours;
  }

  private News ours(News all) {
    List<Failure> failures = ofMembers(all.failures());
    List<Abort> aborts =
        all.aborts().stream()
            .filter(abort -> members.contains(abort.rank()))
            .map(abort ->
                new Abort(
                    abort.scope(),
                    members.indexOf(abort.rank()),
                    abort.reason(),
                    ofMembers(all.failures().subList(0, abort.failuresBefore())).size()))
            .toList();
    return new News(failures, aborts, all.evicted());
  }

  private List<Failure> ofMembers(List<Failure> failures) {
    return failures.stream()
        .filter(failure -> members.contains(failure.rank()))
        .map(failure ->
            new Failure(members.indexOf(failure.rank()), failure.evidence(), failure.cause()))
        .toList();
  }

  @Override
  public NewsAction onNews(Runnable action) {
    return whole.onNews(action);
  }

  @Override
  public void close() {}
}
