package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
class RemainsTest {
  private static final Path PROCESSES = Path.of("/proc");

  @TempDir Path memory;

  @Test
  void remove_nobodyUsesIt_isGone() throws Exception {
    assumeAllProcessesAreSeen();
    Path vader = segment("vader_segment.host.%s.5b0001.0");
    Path sm = segment("sm_segment.my.host.%s.f000a.12");
    new Remains(memory, PROCESSES).remove();
    assertThat(vader).doesNotExist();
    assertThat(sm).doesNotExist();
  }

  @Test
  void remove_processHasItOpenOrMapped_stays() throws Exception {
    Path open = segment("vader_segment.host.%s.5b0001.0");
    Path mapped = segment("vader_segment.host.%s.5b0001.1");
    try (FileChannel _ = FileChannel.open(open);
        Arena arena = Arena.ofConfined()) {
      MemorySegment memoryOfOne = map(mapped, arena);
      new Remains(memory, PROCESSES).remove();
      assertThat(open).exists();
      assertThat(mapped).exists();
      assertThat(memoryOfOne.byteSize()).isPositive();
    }
  }

  @Test
  void remove_otherNames_stay() throws Exception {
    Path ofAnotherUser = Files.createFile(memory.resolve("vader_segment.host.123456.5b0001.0"));
    Path ofSomethingElse = segment("my_segment.host.%s.5b0001.0");
    Path unfinished = segment("vader_segment.host.%s");
    new Remains(memory, PROCESSES).remove();
    assertThat(ofAnotherUser).exists();
    assertThat(ofSomethingElse).exists();
    assertThat(unfinished).exists();
  }

  /// As in a container, which may share its memory with processes outside.
  @Test
  void remove_otherProcessesMayBeThere_stays(@TempDir Path processes) throws Exception {
    Path namespaces = Files.createDirectories(processes.resolve("self/ns"));
    Files.createSymbolicLink(namespaces.resolve("pid"), Path.of("pid:[4026532000]"));
    Path left = segment("vader_segment.host.%s.5b0001.0");
    new Remains(memory, processes).remove();
    assertThat(left).exists();
  }

  @Test
  void remove_processDoesNotShowWhatItUses_stays(@TempDir Path processes) throws Exception {
    Path namespaces = Files.createDirectories(processes.resolve("self/ns"));
    Files.createSymbolicLink(namespaces.resolve("pid"), Path.of("pid:[4026531836]"));
    Path hidden = Files.createDirectory(processes.resolve("17"));
    Files.writeString(
        hidden.resolve("status"), "Name:\tx\nUid:\t%1$s\t%1$s\t%1$s\t%1$s\n".formatted(user()));
    Path left = segment("vader_segment.host.%s.5b0001.0");
    new Remains(memory, processes).remove();
    assertThat(left).exists();
    Files.createDirectory(hidden.resolve("fd"));
    Files.createFile(hidden.resolve("maps"));
    new Remains(memory, processes).remove();
    assertThat(left).doesNotExist();
  }

  private static MemorySegment map(Path file, Arena arena) throws IOException {
    try (var channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return channel.map(FileChannel.MapMode.READ_WRITE, 0, 4096, arena);
    }
  }

  private static void assumeAllProcessesAreSeen() throws IOException {
    assumeTrue(
        Files.readSymbolicLink(PROCESSES.resolve("self/ns/pid")).endsWith("pid:[4026531836]"),
        "in a container nobody sees all processes");
  }

  private static String user() throws IOException {
    return Files.getAttribute(PROCESSES.resolve("self"), "unix:uid").toString();
  }

  private Path segment(String name) throws IOException {
    return Files.createFile(memory.resolve(name.formatted(user())));
  }
}
