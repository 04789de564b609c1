package org.comm4j.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ForkJoinPool;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// How output of ranks is passed on: of processes, and of threads.
@Timeout(120)
class RankLineTest {
  private final Shown shown = new Shown();
  private final SharedStream all = new SharedStream(new PrintStream(shown, false, UTF_8));

  /// What a user sees, which can be waited for.
  private static final class Shown extends OutputStream {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    @Override
    public synchronized void write(int b) {
      bytes.write(b);
      notifyAll();
    }

    synchronized String text() {
      return bytes.toString(UTF_8);
    }

    synchronized void await(String wanted) throws InterruptedException {
      long endNs = System.nanoTime() + Duration.ofSeconds(60).toNanos();
      while (!text().equals(wanted)) {
        long leftMs = (endNs - System.nanoTime()) / 1_000_000;
        assertThat(leftMs).as("ms left to wait for '%s'; got '%s'", wanted, text()).isPositive();
        wait(leftMs);
      }
    }
  }

  /// A rank that asks; its process.
  private final class Asking {
    private final PipedOutputStream to = new PipedOutputStream();
    private final RankOutput output;

    Asking(String label) throws Exception {
      output = RankOutput.copy(new PipedInputStream(to), all, label);
    }

    void write(String text) throws Exception {
      to.write(text.getBytes(UTF_8));
      to.flush();
    }

    void end() throws Exception {
      to.close();
      RankOutput.await(List.of(output), all);
    }
  }

  /// News of ended ranks come by the common pool, which has one thread on two processors.
  @Test
  void output_unfinishedLinesThatNobodyReads_keepNoThreadOfTheCommonPool() throws Exception {
    int threads = ForkJoinPool.getCommonPoolParallelism();
    var waiting = new CountDownLatch(threads);
    var isRead = new CountDownLatch(1);
    try {
      for (int i = 0; i < threads; i++) {
        var pipe = new SharedStream(new PrintStream(full(waiting, isRead)));
        new RankLine(pipe, "").add(new byte[] {'x'}, 0, 1);
      }
      assertThat(waiting.await(60, SECONDS)).isTrue();
      CompletableFuture.runAsync(() -> {}).get(30, SECONDS);
    } finally {
      isRead.countDown();
    }
  }

  /// Takes nothing until it is read.
  private static OutputStream full(CountDownLatch waiting, CountDownLatch isRead) {
    return new OutputStream() {
      @Override
      public void write(int b) throws IOException {
        waiting.countDown();
        try {
          isRead.await();
        } catch (InterruptedException e) {
          throw new IOException(e);
        }
      }
    };
  }

  @Test
  void output_question_isShownBeforeItsLineEnds() throws Exception {
    var rank = new Asking("[0] ");
    rank.write("Name? ");
    shown.await("[0] Name? ");
    rank.write("Hello\n");
    shown.await("[0] Name? Hello\n");
    rank.end();
  }

  @Test
  void output_othersWriteBehindAQuestion_eachLineIsOfOne() throws Exception {
    var asking = new Asking("[0] ");
    var other = new Asking("[1] ");
    asking.write("Name? ");
    shown.await("[0] Name? ");
    other.write("x\n");
    shown.await("[0] Name? \n[1] x\n");
    asking.write("Age? ");
    shown.await("[0] Name? \n[1] x\n[0] Age? ");
    all.println("comm-cli: rank 1 ended");
    asking.end();
    other.end();
    assertThat(shown.text())
        .isEqualToNormalizingNewlines("[0] Name? \n[1] x\n[0] Age? \ncomm-cli: rank 1 ended\n");
  }

  /// One that ends as on Windows, however its bytes come.
  @ParameterizedTest
  @ValueSource(strings = {"a\r\nb\r\n", "a|\r\nb\r|\n", "a\r|\n|b|\r|\n"})
  void output_carriageReturnAndNewline_isOneEndOfLine(String chunks) {
    var rank = new RankLine(all, "[0] ");
    for (String chunk : chunks.split("\\|", -1)) {
      rank.add(chunk.getBytes(UTF_8), 0, chunk.length());
    }
    rank.end();
    assertThat(shown.text()).isEqualTo("[0] a\r\n[0] b\r\n");
  }

  @Test
  void output_progressBar_eachStateHasItsLabel() {
    var rank = new RankLine(all, "[0] ");
    rank.add("1 %\r2 %\r\n\n".getBytes(UTF_8), 0, 10);
    rank.end();
    assertThat(shown.text()).isEqualTo("[0] 1 %\r[0] 2 %\r\n[0] \n");
  }

  @Test
  void output_otherWritesBehindACarriageReturn_eachLineIsOfOne() {
    var rank = new RankLine(all, "[0] ");
    var other = new RankLine(all, "[1] ");
    rank.add("a\r".getBytes(UTF_8), 0, 2);
    other.add("x\r\n".getBytes(UTF_8), 0, 3);
    rank.add("\n".getBytes(UTF_8), 0, 1);
    assertThat(shown.text()).isEqualTo("[0] a\r[1] x\r\n[0] \n");
  }

  @Test
  void output_veryLongLine_comesInPieces() throws Exception {
    String piece = "x".repeat(8192);
    var rank = new Asking("[0] ");
    int pieces = RankLine.LONGEST / piece.length();
    for (int i = 0; i < pieces; i++) {
      rank.write(piece);
    }
    shown.await("[0] " + piece.repeat(pieces));
    rank.write("end");
    rank.end();
    assertThat(shown.text()).isEqualTo("[0] " + piece.repeat(pieces) + "end\n");
  }

  @Test
  void output_notesOfTheJvm_areLeftOut() throws Exception {
    var rank = new Asking("[0] ");
    rank.write("NOTE: Picked up JDK_JAVA_OPTIONS: --x\n");
    rank.write("WARNING: Using incubator modules: jdk.incubator.vector\n");
    rank.write("WARNING: Using\n");
    rank.end();
    assertThat(shown.text()).isEqualTo("[0] WARNING: Using\n");
  }

  /// Of ranks that have left processes behind.
  @Test
  void await_outputsThatStayOpen_takesNotASecondForEach() throws Exception {
    List<RankOutput> outputs = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      outputs.add(RankOutput.copy(new PipedInputStream(new PipedOutputStream()), all, ""));
    }
    long startNs = System.nanoTime();
    RankOutput.await(outputs, all);
    assertThat(Duration.ofNanos(System.nanoTime() - startNs)).isLessThan(Duration.ofSeconds(10));
  }

  /// The same, and they go on writing: more than a pipe has room for is theirs, not the ranks'.
  @Test
  void await_outputIsWrittenForEver_endsAndSaysSo() throws Exception {
    var to = new PipedOutputStream();
    var output = RankOutput.copy(new PipedInputStream(to, 1 << 16), all, "");
    byte[] lines = ("x".repeat(1023) + "\n").repeat(64).getBytes(UTF_8);
    var writer =
        Thread.ofPlatform()
            .start(() -> {
              try {
                while (true) {
                  to.write(lines);
                }
              } catch (IOException _) {
                // nobody reads it any more
              }
            });
    RankOutput.await(List.of(output), all);
    writer.join();
    assertThat(shown.text()).startsWith("xxx").contains("the rest is left out");
  }

  @Test
  void threads_unfinishedLine_isShownAtTheEnd() {
    var ranks = new LabelledStream(all);
    PrintStream stream = ranks.stream();
    stream.print("half ");
    stream.print("and half");
    ranks.end();
    assertThat(shown.text()).isEqualTo("half and half\n");
  }
}
