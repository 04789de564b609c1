package org.comm4j.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What `comm-cli` says to a wrong command line.
class SentencesTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "explain allReduce -n 2 --bytes 1GiBx | --bytes: '1GiBx' (expected: a number with B, KiB",
        "bench all -n 2 --sizes 8B..4B | --sizes: '8B..4B' (expected: a range",
        "bench all -n 2 --dtype nonsense | --dtype: 'nonsense' (expected: f64, f32,",
        "explain nonsense -n 2 | OPERATION: 'nonsense' (expected: barrier, broadcast, reduce, allReduce",
        "bench foo -n 2 | OPERATION: 'foo' (expected: allreduce, reduce, broadcast,",
        "bench allreduce,foo -n 2 | OPERATION: 'foo' (expected: allreduce, reduce, broadcast,",
        "bench all foo -n 2 | foo: unknown argument of comm-cli bench (expected: nothing more)",
        "explain allReduce -n 2 --op nonsense | --op: 'nonsense' (expected: sum,",
        "bench all -n two | -n: 'two' (expected: a whole number)",
        "explain allReduce -n 0 | -n: 0 (expected: 1..",
        "bench all --backend local -n 0 | -n: 0 (expected: 1 or more",
        "bench all -n 2 --beside COMM_CHECK | --beside: 'COMM_CHECK' (expected: VARIABLE=VALUE)",
        "bench all | -n: not given (expected: how many ranks",
        "run true | -n: not given (expected: N)",
        "bench all --backend local -n 2 --sizes 0 | --sizes: 0 (expected: multiples of 4",
        "help nonsense | nonsense: unknown argument of comm-cli (expected: available-backends, ",
        "benhc | ; did you mean bench?",
        "help benhc | ; did you mean bench?",
        "run -n 2 --bakend shm true | ; did you mean --backend?"
      })
  void wrongUse_namesValueAndExpectationAndWhereToRead(String line, String expected) {
    String said = said(line);
    assertThat(said).startsWith("comm-cli: ").contains(expected);
    assertThat(said.lines()).hasSize(2).last().asString().startsWith("Try 'comm-cli");
  }

  @ParameterizedTest
  @ValueSource(strings = {"nonsense", "help nonsense", "bench all --nonsense"})
  void wrongUse_nothingNear_suggestsNothing(String line) {
    assertThat(said(line)).doesNotContain("did you mean");
  }

  /// Before the compiler misses what should be there.
  @Test
  void of_tooManyOpenFiles_saysWhatToDo() {
    var system = new IOException("Too many open files");
    assertThat(Sentences.of(new IllegalStateException("rank 3 can't be started", system)))
        .startsWith("rank 3 can't be started; ")
        .contains("ulimit -n");
  }

  @Test
  void classPath_entryIsMissing_isNamed() {
    String existing = Path.of("").toAbsolutePath().toString();
    assertThat(
            said(
                "run -n 1 -cp %s%snodir ../examples/Hello.java"
                    .formatted(existing, File.pathSeparator)))
        .startsWith("comm-cli: --class-path: nodir: no such file (expected: ");
  }

  /// No line of help is about what is wrong in a program.
  @Test
  void wrongProgram_isOneLine() {
    assertThat(said("run -n 2 --backend local true").lines()).hasSize(1);
  }

  private static String said(String line) {
    var err = new StringWriter();
    int code =
        Main.commandLine(new Main()).setErr(new PrintWriter(err)).execute(line.split(" ", -1));
    assertThat(code).isEqualTo(ExitCode.USAGE);
    return err.toString();
  }
}
