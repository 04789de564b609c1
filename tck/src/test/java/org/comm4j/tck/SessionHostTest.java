package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.Authenticator;
import org.comm4j.core.session.SessionServer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A launcher whose session fails. Its ranks hear no more than that their connections have closed.
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class SessionHostTest {
  @Test
  void thread_fails_isLogged() {
    var logged = new CompletableFuture<LogRecord>();
    Handler handler = handler(logged);
    Logger logger = Logger.getLogger(SessionServer.class.getName());
    logger.addHandler(handler);
    logger.setUseParentHandlers(false);
    var failing =
        new SessionServer.Listener() {
          @Override
          public void left(int rank) {
            throw new OutOfMemoryError("a test's");
          }
        };
    try (var server =
        SessionServer.start(
            InetAddress.getLoopbackAddress(), 0, "job", 1, Authenticator.NONE, failing)) {
      int port = server.port();
      ((Session) Joining.join(Joining.rank(Configs.launched(1, port), 0))).close();
      LogRecord why = logged.orTimeout(20, TimeUnit.SECONDS).join();
      assertThat(why.getLevel()).isEqualTo(Level.SEVERE);
      assertThat(why.getMessage())
          .isEqualTo(
              "the session of job 'job' at port %d has ended for all its ranks: the session's thread failed: java.lang.OutOfMemoryError: a test's"
                  .formatted(port));
      assertThat(why.getThrown()).isInstanceOf(OutOfMemoryError.class);
    } finally {
      logger.removeHandler(handler);
      logger.setUseParentHandlers(true);
    }
  }

  private static Handler handler(CompletableFuture<LogRecord> logged) {
    return new Handler() {
      @Override
      public void publish(LogRecord each) {
        logged.complete(each);
      }

      @Override
      public void flush() {}

      @Override
      public void close() {}
    };
  }
}
