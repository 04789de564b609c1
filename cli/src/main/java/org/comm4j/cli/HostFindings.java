package org.comm4j.cli;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.core.session.OwnFolder;
import org.comm4j.core.session.SessionFiles;

/// What [Doctor] finds out about this JVM and this host.
final class HostFindings {
  private static final String JAVA = "java";
  private static final String HOST = "host";
  private static final String PROPERTY = "-D";
  private static final int OLDEST_JAVA = 25;
  private static final long LITTLE_SHARED_MEMORY = 256L << 20;
  private static final long FEW_FILES = 1024;
  private static final List<String> OF_LAUNCHES = List.of("comm4j-", "comm-cli-launch-");
  private static final List<String> WITH_LOCKS =
      List.of("comm4j-aeron-", "comm4j-local-", "comm-cli-launch-");
  private static final Pattern OF_A_USER = Pattern.compile("comm4j-\\d+");

  private final Path sharedMemory;
  private final Path limits;

  HostFindings() {
    this(Path.of("/dev/shm"), Path.of("/proc/self/limits"));
  }

  /// @param sharedMemory the file system in memory
  /// @param limits as `/proc/self/limits`
  HostFindings(Path sharedMemory, Path limits) {
    this.sharedMemory = sharedMemory;
    this.limits = limits;
  }

  List<Finding> all() {
    List<Finding> findings = new ArrayList<>(java());
    findings.add(
        Finding.ok(
            HOST,
            "processors",
            Integer.toString(Runtime.getRuntime().availableProcessors()),
            "More ranks than these take turns."));
    findings.addAll(sharedMemory());
    findings.addAll(limits());
    return findings;
  }

  private static List<Finding> java() {
    var runtime = ManagementFactory.getRuntimeMXBean();
    int feature = Runtime.version().feature();
    String version = "%s, %s".formatted(Runtime.version(), runtime.getVmVendor());
    boolean nativeAccess = HostFindings.class.getModule().isNativeAccessEnabled();
    boolean vectors = ModuleLayer.boot().findModule("jdk.incubator.vector").isPresent();
    return List.of(
        feature >= OLDEST_JAVA
            ? Finding.ok(JAVA, "version", version, "")
            : Finding.problem(
                JAVA,
                "version",
                version,
                "expected: %d or newer; install one".formatted(OLDEST_JAVA)),
        nativeAccess
            ? Finding.ok(JAVA, "native access", "enabled", "")
            : Finding.note(
                JAVA,
                "native access",
                "not enabled",
                "The JVM warns and waits are slower; start java with"
                    + " --enable-native-access=ALL-UNNAMED."),
        vectors
            ? Finding.ok(JAVA, "vector module", "present", "")
            : Finding.note(
                JAVA,
                "vector module",
                "absent",
                "Reductions are slower; start java with --add-modules=jdk.incubator.vector."),
        Finding.ok(
            JAVA,
            "heap",
            Sizes.roughly(Runtime.getRuntime().maxMemory()),
            "The most that -Xmx lets it grow to."),
        Finding.ok(JAVA, "flags", flags(runtime.getInputArguments()), ""));
  }

  /// What a JVM was started with, without secrets.
  static String flags(List<String> flags) {
    return flags.stream().map(HostFindings::shown).collect(Collectors.joining(" "));
  }

  private static String shown(String flag) {
    int equals = flag.indexOf('=');
    return flag.startsWith(PROPERTY) && equals > 0
        ? flag.substring(0, equals + 1)
            + CommConfig.shown(
                flag.substring(PROPERTY.length(), equals), flag.substring(equals + 1))
        : flag;
  }

  // --- shared memory ---

  private List<Finding> sharedMemory() {
    String item = sharedMemory.toString();
    if (!Files.isDirectory(sharedMemory)) {
      return List.of(
          Finding.note(HOST, item, "absent", "The backend shm needs it; it is part of Linux."));
    }
    List<Finding> findings = new ArrayList<>();
    try {
      FileStore store = Files.getFileStore(sharedMemory);
      long free = store.getUsableSpace();
      String size =
          "%s, %s free, %s"
              .formatted(Sizes.roughly(store.getTotalSpace()), Sizes.roughly(free), permissions());
      if (!Files.isWritable(sharedMemory)) {
        findings.add(
            Finding.problem(
                HOST,
                item,
                size,
                "expected: writable; as root: %s %s"
                    .formatted(
                        store.isReadOnly() ? "mount -o remount,rw" : "chmod 1777", sharedMemory)));
      } else if (free < LITTLE_SHARED_MEMORY) {
        findings.add(
            Finding.note(
                HOST,
                item,
                size,
                "Little for large buffers; as root: mount -o remount,size=2g %s, or for a container"
                        .formatted(sharedMemory)
                    + " docker run --shm-size=2g."));
      } else {
        findings.add(Finding.ok(HOST, item, size, ""));
      }
      findings.addAll(ofLaunches());
    } catch (IOException e) {
      findings.add(
          Finding.problem(HOST, item, "can't be looked at: " + e.getMessage(), "mend its mount"));
    }
    return findings;
  }

  private String permissions() throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(sharedMemory));
  }

  /// Files and folders of launches: those that run, and those whose processes were all killed at
  /// once. Some only their backends know ([org.comm4j.api.Backends#removeRemains]).
  private List<Finding> ofLaunches() throws IOException {
    List<Path> abandoned = new ArrayList<>();
    for (String prefix : WITH_LOCKS) {
      abandoned.addAll(OwnFolder.abandoned(sharedMemory, prefix));
    }
    List<Path> inUse = new ArrayList<>();
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(sharedMemory, "comm*")) {
      for (Path entry : entries) {
        String name = entry.getFileName().toString();
        if (OF_A_USER.matcher(name).matches()) { // of all its launches
          List<Path> files = SessionFiles.abandoned(entry);
          abandoned.addAll(files);
          if (!files.containsAll(inside(entry))) {
            inUse.add(entry);
          }
        } else if (OF_LAUNCHES.stream().anyMatch(name::startsWith) && !abandoned.contains(entry)) {
          inUse.add(entry);
        }
      }
    }
    List<Finding> findings = new ArrayList<>();
    if (!inUse.isEmpty()) {
      findings.add(
          Finding.ok(HOST, "in " + sharedMemory, names(inUse), "Of launches that run now."));
    }
    if (!abandoned.isEmpty()) {
      findings.add(
          Finding.note(
              HOST,
              "left in " + sharedMemory,
              names(abandoned),
              "Nobody's: of launches that were killed. The next comm-cli run removes it, or delete it."));
    }
    return findings;
  }

  private static List<Path> inside(Path folder) {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.toList();
    } catch (IOException e) {
      return List.of(folder); // somebody else's, or just removed
    }
  }

  private String names(List<Path> paths) {
    return paths.stream()
        .map(path -> sharedMemory.relativize(path).toString())
        .sorted()
        .collect(Collectors.joining(" "));
  }

  // --- limits ---

  private List<Finding> limits() {
    Map<String, String> soft = read(limits);
    List<Finding> findings = new ArrayList<>();
    soft.forEach((name, value) -> {
      switch (name) {
        case "Max open files" -> findings.add(openFiles(value));
        case "Max locked memory" ->
            findings.add(
                Finding.ok(
                    HOST,
                    "ulimit -l",
                    value.equals("unlimited") ? value : Sizes.roughly(Long.parseLong(value)),
                    "Locked memory; network cards with RDMA want much, ours nothing."));
        case "Max core file size" ->
            findings.add(
                Finding.ok(
                    HOST, "ulimit -c", value, "0: a crash in native code leaves no core file."));
        default -> {
          // not about us
        }
      }
    });
    return findings;
  }

  private static Finding openFiles(String value) {
    boolean few = !value.equals("unlimited") && Long.parseLong(value) < FEW_FILES;
    return few
        ? Finding.note(
            HOST, "ulimit -n", value, "Few files; large groups want more: ulimit -n 4096.")
        : Finding.ok(HOST, "ulimit -n", value, "");
  }

  /// The soft limits by name; empty where the system has no such file.
  private static Map<String, String> read(Path file) {
    Map<String, String> soft = new TreeMap<>();
    try {
      for (String line : Files.readAllLines(file)) {
        String[] cells = line.strip().split("\\s{2,}", -1);
        if (cells.length >= 3 && cells[1].matches("\\d{1,18}|unlimited")) {
          soft.put(cells[0], cells[1]);
        }
      }
    } catch (IOException _) {
      // no Linux: nothing to say
    }
    return soft;
  }
}
