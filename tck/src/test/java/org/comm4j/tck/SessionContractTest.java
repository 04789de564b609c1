package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.InMemorySessions;
import org.junit.jupiter.api.Test;

/// The contract of sessions is tested too, with some that are broken on purpose.
class SessionContractTest {
  @Test
  void barrier_doesNothing_isCaught() {
    SessionContract contract =
        new SessionContract() {
          @Override
          protected Group open(int size) {
            return new Group(
                InMemorySessions.group(size).sessions().stream()
                    .map(SessionContractTest::withoutBarrier)
                    .toList(),
                null);
          }

          @Override
          protected Group openWithVictim(int size, Duration liveness) {
            throw new UnsupportedOperationException("no rank of these dies");
          }
        };
    assertThatThrownBy(contract::barrier_releasesNobodyBeforeTheLast)
        .isInstanceOf(AssertionError.class);
  }

  private static Session withoutBarrier(Session session) {
    return (Session)
        Proxy.newProxyInstance(
            Session.class.getClassLoader(),
            new Class<?>[] {Session.class},
            (_, method, arguments) -> {
              try {
                return method.getName().equals("barrier")
                    ? null
                    : method.invoke(session, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
