package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import io.aeron.exceptions.AeronException;
import io.aeron.exceptions.StorageSpaceException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.PortUnreachableException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Which errors of Aeron's are the end: those after which something would never be mapped, so that
/// a rank is deaf or dumb to a peer. Aeron throws them as they are, or inside others.
class FaultsTest {
  private static final Path FOLDER = Path.of("/dev/shm/of-the-driver");

  private static IOException tooManyFiles() {
    return new FileSystemException("/dev/shm/1.logbuffer", null, "Too many open files");
  }

  private static IOException noMemory() {
    return new IOException("Map failed", new OutOfMemoryError("Map failed"));
  }

  static Stream<Throwable> ofSpace() {
    return Stream.of(
        new StorageSpaceException("no space for a log"),
        new InternalError("a fault occurred in an unsafe memory access operation"),
        new UncheckedIOException(new IOException("No space left on device")));
  }

  @ParameterizedTest
  @MethodSource("ofSpace")
  void reason_noSpace_namesTheRemedy(Throwable error) {
    assertThat(Faults.reason(error, FOLDER)).contains(FOLDER.toString(), DriverFolder.REMEDY);
  }

  static Stream<Throwable> fatal() {
    return Stream.of(
            tooManyFiles(),
            noMemory(),
            new NoSuchFileException("/x"),
            new ClosedByInterruptException())
        .flatMap(each ->
            Stream.of(each, new UncheckedIOException(each), new AeronException("no log", each)));
  }

  /// A datagram that could not be sent is sent again.
  static List<Throwable> passing() {
    return List.of(
        new PortUnreachableException(),
        new IOException("Network is unreachable"),
        new AeronException("failed to send", new IOException("Operation not permitted")),
        new IllegalStateException());
  }

  @ParameterizedTest
  @MethodSource("fatal")
  void onError_nothingIsMapped_isTheEnd(Throwable error) {
    var faults = new Faults();
    faults.onError(error);
    assertThat(faults.fatal()).isSameAs(error);
  }

  @ParameterizedTest
  @MethodSource("passing")
  void onError_aDatagramIsNotSent_goesOn(Throwable error) {
    var faults = new Faults();
    faults.onError(error);
    assertThat(faults.fatal()).isNull();
  }

  @Test
  void reason_saysWhatToDo() {
    assertThat(reason(new UncheckedIOException(tooManyFiles())))
        .contains("Too many open files", "ulimit -n");
    assertThat(reason(new AeronException("no log", noMemory())))
        .contains("Map failed", "vm.max_map_count");
    assertThat(reason(new InternalError("a fault"))).contains("no space in " + FOLDER);
    assertThat(reason(new IllegalStateException("x"))).doesNotContain(";");
  }

  private static String reason(Throwable cause) {
    return Faults.reason(cause, FOLDER);
  }
}
