package org.comm4j.tck;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.JoinException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.DefaultSessionFactory;

/// A rank as a process of its own: joins, then does what the lines on its standard input say, and
/// prints one line for each. It is configured by its environment.
final class SessionRank {
  private static final Duration LONG = Duration.ofSeconds(30);

  private SessionRank() {}

  public static void main(String[] args) throws IOException, InterruptedException {
    Session session;
    try {
      session =
          new DefaultSessionFactory()
              .join(CommConfig.fromEnvironment(System.getenv()), List.of("x"));
    } catch (JoinException e) {
      System.out.println("refused " + e.reason() + " " + e.getMessage());
      return;
    }
    System.out.println("joined " + session.id());
    var news = new CountDownLatch(1);
    session.onNews(() -> {
      if (session.news().evicted() != null) {
        news.countDown();
      }
    });
    obey(session, news);
  }

  private static void obey(Session session, CountDownLatch evicted)
      throws IOException, InterruptedException {
    var in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ", -1);
      switch (words[0]) {
        case "exchange" ->
            background(() -> session.exchange(words[1], HexFormat.of().parseHex(words[2]), LONG));
        case "agree" -> {
          List<Integer> members = Stream.of(words[3].split(",", -1)).map(Integer::valueOf).toList();
          background(
              () -> session.agree(words[1], members, HexFormat.of().parseHex(words[2]), LONG));
        }
        case "evicted" -> {
          if (!evicted.await(20, TimeUnit.SECONDS)) {
            System.out.println("");
            continue;
          }
          System.out.println(session.news().evicted());
          continue;
        }
        case "news" -> {
          System.out.println(session.news());
          continue;
        }
        case "abortProcesses" -> session.abortProcesses(Integer.parseInt(words[1]));
        case "close" -> session.close();
        default -> throw new IllegalArgumentException(line);
      }
      // What was put or contributed first is also seen first: once this is back, so is that.
      String key = "sync " + session.rank() + " " + System.nanoTime();
      if (!words[0].equals("close")) {
        session.put(key, new byte[0]);
        session.get(key, LONG);
      }
      System.out.println("done");
    }
  }

  /// Starts a call and returns when it has contributed, which it does before it waits.
  private static void background(Runnable call) throws InterruptedException {
    var thread = new Thread(call);
    thread.setDaemon(true);
    thread.setUncaughtExceptionHandler((_, _) -> {});
    thread.start();
    while (thread.getState() != Thread.State.TIMED_WAITING && thread.isAlive()) {
      Thread.onSpinWait();
    }
  }
}
