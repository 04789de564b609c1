package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.comm4j.api.spi.Session;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class MembersSessionTest {
  private final InMemorySessions sessions = InMemorySessions.group(4);

  private Session part(int rank, String name, List<Integer> members) {
    return MembersSession.of(sessions.session(rank), name, members);
  }

  @AfterEach
  void close() {
    sessions.close();
  }

  @Test
  void news_nothingNew_isTheSameObject() {
    Session part = part(1, "part", List.of(1, 3));
    Session.News before = part.news();

    assertThat(part.news()).isSameAs(before);
    sessions.session(3).abort(7, new byte[] {1});
    Session.News after = part.news();
    assertThat(after).isNotSameAs(before);
    assertThat(part.news()).isSameAs(after);
  }

  @Test
  void news_ofMembers_countsAsTheyDo() {
    Session part = part(1, "part", List.of(1, 3));
    sessions.fail(0, new IllegalStateException("of nobody's concern"));
    sessions.fail(3, new IllegalStateException("broken on purpose"));
    sessions.session(1).abort(7, new byte[0]);
    sessions.session(2).abort(8, new byte[0]);

    assertThat(part.news().failures()).extracting(Session.Failure::rank).containsExactly(1);
    assertThat(part.news().aborts())
        .singleElement()
        .satisfies(abort -> {
          assertThat(abort.scope()).isEqualTo(7);
          assertThat(abort.rank()).isZero();
          assertThat(abort.failuresBefore()).isOne();
        });
  }

  @Test
  void id_ofEachPart_isItsOwn() {
    Session part = part(1, "part", List.of(1, 3));

    assertThat(part.id()).matches("[0-9a-f]{16,32}").isEqualTo(part(3, "part", List.of(1, 3)).id());
    assertThat(List.of(sessions.session(1).id(), part(1, "other", List.of(1, 2)).id()))
        .doesNotContain(part.id());
    assertThat(part(1, "other", List.of(1, 3)).id()).isNotEqualTo(part.id());
  }
}
