package org.comm4j.backend.mpi;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The memory that ranks of Open MPI share: a file for each of them, which its launcher removes. If
/// that is killed they stay, 4 MiB each.
///
/// Nothing is locked in them, so one is of dead ranks only where no process of this user has it
/// open or mapped. To know that all of those must be seen: in a container there may be others that
/// share the memory, and what is in there stays. Who creates a file has it open until it has mapped
/// it; hence files are listed before processes, and of each what it has open before what it has
/// mapped.
final class Remains {
  private static final String ALL_PROCESSES = "pid:[4026531836]"; // the kernel's first namespace
  private static final String INIT = "1"; // it is no rank, and need not show anything
  private static final Pattern SEGMENT =
      Pattern.compile("(vader|sm)_segment\\..+\\.(\\d+)\\.[0-9a-f]+\\.\\d+");
  private static final Pattern USER = Pattern.compile("(?m)^Uid:\\s+\\d+\\s+(\\d+)\\s");

  private final Path memory;
  private final Path processes;

  /// @param memory where the files are, `/dev/shm` but for tests
  /// @param processes what the kernel says of processes, `/proc` but for tests
  Remains(Path memory, Path processes) {
    this.memory = memory;
    this.processes = processes;
  }

  /// Removes what no process uses, as far as that can be known.
  void remove() {
    try {
      List<Path> left = ofThisUser();
      if (!left.isEmpty() && seesAllProcesses()) {
        withoutUsed(left).forEach(Remains::delete);
      }
    } catch (IOException | UncheckedIOException | DirectoryIteratorException _) {
      // there is none, or it can't be known who uses them
    }
  }

  private List<Path> ofThisUser() throws IOException {
    Object user = Files.getAttribute(processes.resolve("self"), "unix:uid");
    List<Path> left = new ArrayList<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(memory, "*_segment.*")) {
      for (Path file : files) {
        Matcher name = SEGMENT.matcher(file.getFileName().toString());
        if (name.matches()
            && name.group(2).equals(user.toString())
            && Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)
            && Files.getAttribute(file, "unix:uid", LinkOption.NOFOLLOW_LINKS).equals(user)) {
          left.add(file);
        }
      }
    }
    return left;
  }

  private boolean seesAllProcesses() throws IOException {
    return Files.readSymbolicLink(processes.resolve("self/ns/pid"))
        .toString()
        .equals(ALL_PROCESSES);
  }

  /// @throws IOException if one of this user's processes does not show what it uses
  private List<Path> withoutUsed(List<Path> files) throws IOException {
    String user = Files.getAttribute(processes.resolve("self"), "unix:uid").toString();
    List<Path> unused = new ArrayList<>(files);
    try (DirectoryStream<Path> all = Files.newDirectoryStream(processes, "[0-9]*")) {
      for (Path process : all) {
        try {
          if (!process.endsWith(INIT) && user(process).filter(user::equals).isPresent()) {
            String used = open(process) + mapped(process);
            unused.removeIf(file -> used.contains(file.toString()));
          }
        } catch (IOException | UncheckedIOException | DirectoryIteratorException e) {
          if (Files.exists(process)) {
            throw e; // else it has ended
          }
        }
      }
    }
    return unused;
  }

  private static Optional<String> user(Path process) throws IOException {
    Matcher user = USER.matcher(text(process.resolve("status")));
    return user.find() ? Optional.of(user.group(1)) : Optional.empty();
  }

  private static String open(Path process) throws IOException {
    StringBuilder names = new StringBuilder();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(process.resolve("fd"))) {
      for (Path file : files) {
        try {
          names.append(Files.readSymbolicLink(file)).append('\n');
        } catch (NoSuchFileException _) {
          // closed meanwhile
        }
      }
    }
    return names.toString();
  }

  private static String mapped(Path process) throws IOException {
    return text(process.resolve("maps"));
  }

  private static String text(Path file) throws IOException {
    return Files.readString(file, StandardCharsets.ISO_8859_1);
  }

  private static void delete(Path file) {
    try {
      Files.deleteIfExists(file);
    } catch (IOException _) {
      // somebody else does it
    }
  }
}
