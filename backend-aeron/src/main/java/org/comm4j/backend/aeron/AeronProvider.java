package org.comm4j.backend.aeron;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.comm4j.api.Advice;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.Availability;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.RankKind;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.session.OwnFolder;
import org.comm4j.core.session.Versions;
import org.comm4j.core.transport.HostTransport;
import org.comm4j.core.transport.HostTransports;
import org.comm4j.core.transport.Transport;

/// `aeron`: ranks that are processes, over Aeron UDP.
public final class AeronProvider implements BackendProvider {
  private static final String NAME = "aeron";

  /// Does nothing.
  public AeronProvider() {}

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String version() {
    return Versions.ofJar(AeronProvider.class, "comm4j-backend-aeron");
  }

  @Override
  public RankKind rankKind() {
    return RankKind.PROCESSES;
  }

  @Override
  public int priority() {
    return 40;
  }

  @Override
  public String reaches() {
    return "processes of any hosts, over UDP";
  }

  @Override
  public Set<Capability> capabilities() {
    return EngineCommunicator.BY_MESSAGES;
  }

  @Override
  public Set<String> options() {
    return Options.NAMES;
  }

  @Override
  public void checkOptions(CommConfig config) {
    var _ = Options.of(config);
  }

  @Override
  public Availability availability(CommConfig config) {
    Options options = Options.of(config);
    if (!AgronaAccess.isGiven()) {
      return Availability.unavailable(
          "Agrona, which Aeron is built on, needs a part of the JDK that is closed to it",
          "start java with " + AgronaAccess.flag() + " (comm-cli does)");
    }
    return switch (options.driver()) {
      case EXTERNAL ->
          DriverDirectory.look(DriverDirectory.of(options), Driver.silenceNs(config.liveness()));
      case EMBEDDED -> {
        int here = config.localWorldSize().orElse(1);
        yield space(DriverFolder.rootOfOwn(here), here);
      }
      case SHARED -> space(OwnFolder.root(), 1);
    };
  }

  /// Whether there is space for the files of media drivers: without, the JVM fails in the middle of
  /// a start.
  private static Availability space(Path root, int drivers) {
    long free = OwnFolder.usableBytes(root);
    long wanted = (long) drivers * Dimensions.DRIVER_BYTES;
    return free >= wanted
        ? Availability.ready()
        : Availability.unavailable(
            "%s has %d bytes free (expected: at least %d, for %d media driver(s))"
                .formatted(root, free, wanted, drivers),
            "free space there or make it larger (with Docker --shm-size)");
  }

  @Override
  public Map<String, String> details(CommConfig config) {
    Options options = Options.of(config);
    Map<String, String> details = new LinkedHashMap<>();
    details.put("socket buffers", "up to %d bytes".formatted(Dimensions.socketBufferBytes()));
    Path place = placeOfFiles(options, config);
    details.put("driver", placeOfDriver(options, place));
    details.put("free space", HostAdvice.freeSpace(place));
    details.put(
        "JDK flag",
        "%s (%s)".formatted(AgronaAccess.flag(), AgronaAccess.isGiven() ? "given" : "missing"));
    String interfaces =
        HostAdvice.interfacesOfHost().entrySet().stream()
            .map(each -> each.getKey() + " " + each.getValue())
            .collect(Collectors.joining(", "));
    details.put("largest packets", interfaces.isEmpty() ? "none but loopback's" : interfaces);
    return details;
  }

  @Override
  public List<Advice> advice(CommConfig config) {
    try {
      return HostAdvice.ofHost().of(config);
    } catch (IllegalArgumentException e) {
      return List.of(); // datagrams are too long for terms, which is said where it opens
    }
  }

  /// Where the driver's files are, as far as that is known without Aeron, which may not work here.
  private static Path placeOfFiles(Options options, CommConfig config) {
    if (!options.directory().isEmpty()) {
      return Path.of(options.directory());
    }
    return options.driver() == Options.DriverKind.EMBEDDED
        ? DriverFolder.rootOfOwn(config.localWorldSize().orElse(1))
        : OwnFolder.root();
  }

  private static String placeOfDriver(Options options, Path place) {
    return switch (options.driver()) {
      case EMBEDDED -> "in each rank's process, in " + place;
      case SHARED -> "in the process of each host's first rank, in " + place;
      case EXTERNAL ->
          "in "
              + (options.directory().isEmpty() ? "Aeron's default directory" : options.directory());
    };
  }

  @Override
  public void removeRemains(CommConfig config) {
    DriverFolder.sweep();
  }

  @Override
  public BackendCommunicator open(Session session, CommConfig config) {
    return open(session, config, WithinHosts.found());
  }

  /// @param shared what ranks of one host may share memory with, if anything
  static BackendCommunicator open(
      Session session, CommConfig config, Optional<HostTransports> shared) {
    Transport far = new Rendezvous(session, config).open();
    Optional<HostTransport> within = new WithinHosts(session, config, shared).open(far);
    Transport transport = within.isPresent() ? within.get() : far;
    return EngineCommunicator.open(NAME, session, transport, within.orElse(null), config);
  }
}
