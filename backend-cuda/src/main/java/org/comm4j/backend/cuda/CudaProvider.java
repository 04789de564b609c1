package org.comm4j.backend.cuda;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.RankGroup;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.session.MembersSession;
import org.comm4j.core.session.SessionGroup;
import org.comm4j.core.session.Versions;
import org.comm4j.core.transport.HostTransport;
import org.comm4j.core.transport.HostTransports;
import org.jspecify.annotations.Nullable;

/// `cuda`: ranks that own GPUs.
public final class CudaProvider implements BackendProvider {
  static final String NAME = "cuda";

  /// The first that is for CUDA 12, whose PTX the kernels are written in.
  private static final int OLDEST_DRIVER = 525;

  private static final Set<Capability> CAPABILITIES = capabilitiesOfAll();

  private static Set<Capability> capabilitiesOfAll() {
    EnumSet<Capability> all = EnumSet.copyOf(EngineCommunicator.BY_MESSAGES);
    all.addAll(
        Set.of(
            Capability.SHARED_MEMORY,
            Capability.DEVICE_MEMORY,
            Capability.STREAMS,
            Capability.EXPRESSIONS));
    return Collections.unmodifiableSet(all);
  }

  static final int THREADS = 512; // of a block; MAX_THREADS of the kernels

  private final DriverFiles files;
  private final Supplier<UUID> process;
  private final int threads;
  private final ExpressionCompiler compiler;
  private final Patience patience;

  /// For [java.util.ServiceLoader]; looks for nothing yet.
  public CudaProvider() {
    this(new DriverFiles(libraryPath(), Path.of("/")));
  }

  CudaProvider(DriverFiles files) {
    this(files, () -> CudaRank.PROCESS, THREADS, new NvrtcCompiler(files));
  }

  CudaProvider(
      DriverFiles files, Supplier<UUID> process, int threads, ExpressionCompiler compiler) {
    this(files, process, threads, compiler, Patience.USUAL);
  }

  /// @param process which process a rank that is opened is of
  /// @param threads of a block of a kernel, at least 16
  /// @param compiler of expressions
  /// @param patience how long calls may take
  CudaProvider(
      DriverFiles files,
      Supplier<UUID> process,
      int threads,
      ExpressionCompiler compiler,
      Patience patience) {
    this.compiler = compiler;
    this.files = files;
    this.process = process;
    this.threads = threads;
    this.patience = patience;
  }

  private static String libraryPath() {
    return Optional.ofNullable(System.getenv("LD_LIBRARY_PATH")).orElse("");
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String version() {
    return Versions.ofJar(CudaProvider.class, "comm4j-backend-cuda");
  }

  @Override
  public RankKind rankKind() {
    return RankKind.PROCESSES;
  }

  /// Below shared memory: a program whose data is on the host should not pay for a GPU's context.
  @Override
  public int priority() {
    return 55;
  }

  @Override
  public String reaches() {
    return "GPUs of one host";
  }

  @Override
  public Set<Capability> capabilities() {
    return CAPABILITIES;
  }

  @Override
  public Set<String> options() {
    return CudaOptions.NAMES;
  }

  @Override
  public void checkOptions(CommConfig config) {
    var _ = CudaOptions.of(config);
    if (config.backend().equals(NAME)) { // peers should not wait for a rank that will not open
      var _ = CudaTable.of(config);
    }
  }

  @Override
  public Optional<String> explain(
      String operation,
      DataType type,
      @Nullable ReduceOp op,
      long bytes,
      int ranks,
      CommConfig config) {
    return Optional.of(Ways.of(operation, type, op, bytes, ranks, config));
  }

  @Override
  public BackendCommunicator open(Session session, CommConfig config) {
    if (availability(config) instanceof Availability.Unavailable it) {
      throw new BackendUnavailableException(NAME, it.reason(), it.remedy());
    }
    CudaOptions options = CudaOptions.of(config);
    CudaRank rank =
        CudaRank.open(session, config, options, process.get(), threads, compiler, patience);
    try {
      HostTransport transport = transports().orElseThrow().open(session, config, true);
      return CudaCommunicator.open(
          rank, EngineCommunicator.open(NAME, session, transport, transport, config));
    } catch (RuntimeException e) {
      rank.close();
      throw e;
    }
  }

  /// For a program that drives several GPUs, or several ranks on one.
  @Override
  public boolean launchesThreads() {
    return true;
  }

  @Override
  public RankGroup launch(int size, CommConfig config) {
    return SessionGroup.open(
        InMemorySessions.group(size), session -> open(session, config), () -> {});
  }

  private static Optional<HostTransports> transports() {
    return ServiceLoader.load(HostTransports.class, CudaProvider.class.getClassLoader())
        .findFirst();
  }

  @Override
  public Availability connects(Session session) {
    List<Integer> here = MembersSession.ranksOfThisHost(session);
    return here.size() == session.size()
        ? Availability.ready()
        : Availability.unavailable(
            "ranks run on several hosts, of which rank(s) %s on this one".formatted(here),
            "use a backend that reaches other hosts, or start all ranks on one");
  }

  @Override
  public Availability availability(CommConfig config) {
    CudaOptions options = CudaOptions.of(config);
    return platform()
        .or(this::driver)
        .or(this::device)
        .or(CudaProvider::host)
        .or(() -> options.expressions().isEmpty() ? Optional.empty() : compiler.missing(options))
        .orElse(Availability.ready());
  }

  private static Optional<Availability> host() {
    return transports().isPresent()
        ? Optional.empty()
        : unavailable(
            "nothing connects the ranks' processes: comm4j-backend-local is not on the class path",
            "add it");
  }

  private Optional<Availability> platform() {
    String system = System.getProperty("os.name");
    String processor = System.getProperty("os.arch");
    if (!system.equals("Linux") || !processor.equals("amd64")) {
      return unavailable(
          "it needs Linux on x86-64, this is %s on %s".formatted(system, processor),
          "use another backend, for example 'local'");
    }
    String modules =
        Stream.of(CudaProvider.class, jcuda.Pointer.class)
            .map(Class::getModule)
            .filter(module -> !module.isNativeAccessEnabled())
            .map(module -> module.isNamed() ? module.getName() : "ALL-UNNAMED")
            .distinct()
            .collect(Collectors.joining(","));
    return modules.isEmpty()
        ? Optional.empty()
        : unavailable(
            "Java keeps it from calling native code",
            "start java with --enable-native-access=" + modules);
  }

  private Optional<Availability> driver() {
    if (files.library().isEmpty()) {
      return unavailable(
          "no %s found, the library of NVIDIA's driver".formatted(DriverFiles.LIBRARY),
          "install NVIDIA's driver, %d or newer; in a container, start it with the NVIDIA Container Toolkit (docker run --gpus all)"
              .formatted(OLDEST_DRIVER));
    }
    return files
        .version()
        .filter(version -> Integer.parseInt(version, 0, version.indexOf('.'), 10) < OLDEST_DRIVER)
        .flatMap(version ->
            unavailable(
                "NVIDIA's driver is %s (expected: %d or newer)".formatted(version, OLDEST_DRIVER),
                "install a newer driver"));
  }

  private Optional<Availability> device() {
    List<Path> devices = files.devices();
    if (devices.isEmpty()) {
      return unavailable(
          "NVIDIA's driver is here but no GPU: there is no /dev/nvidia0",
          "see what nvidia-smi says; in a container, hand the GPUs in (docker run --gpus all)");
    }
    return devices.stream().anyMatch(Files::isWritable)
        ? Optional.empty()
        : unavailable(
            "this user may not use %s".formatted(devices.getFirst()),
            "give this user read and write access; on many systems by adding them to the group 'video'");
  }

  private static Optional<Availability> unavailable(String reason, String remedy) {
    return Optional.of(Availability.unavailable(reason, remedy));
  }

  /// Where expressions are declared: which library compiles them.
  private Optional<Path> compilerFile(CommConfig config) {
    CudaOptions options = CudaOptions.of(config);
    return options.expressions().isEmpty() ? Optional.empty() : compiler.file(options);
  }

  @Override
  public Map<String, String> details(CommConfig config) {
    Map<String, String> details = new LinkedHashMap<>();
    files.version().ifPresent(version -> details.put("driver", version));
    files.library().ifPresent(library -> details.put("file", library.toString()));
    compilerFile(config).ifPresent(library -> details.put("nvrtc", library.toString()));
    List<Path> devices = files.devices();
    if (!devices.isEmpty()) {
      details.put("devices", devices.stream().map(Path::toString).collect(Collectors.joining(" ")));
    }
    return details;
  }
}
