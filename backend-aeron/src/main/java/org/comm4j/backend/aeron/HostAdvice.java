package org.comm4j.backend.aeron;

import java.io.IOException;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.comm4j.api.Advice;
import org.comm4j.api.CommConfig;
import org.comm4j.core.session.OwnFolder;

/// What ranks would like to be otherwise on this host, of all that they take from it: buffers of
/// sockets, space for the driver's files, packets.
///
/// @param system as `/proc/sys/net/core`
/// @param space where drivers' files are
/// @param interfaces those that lead to other hosts, with the largest packet of each
record HostAdvice(Path system, Path space, Map<String, Integer> interfaces) {
  private static final int MEBIBYTE = 1 << 20;
  private static final Set<String> IN_MEMORY = Set.of("tmpfs", "ramfs");

  /// What a datagram of the least size becomes on the wire.
  private static final int LEAST_PACKET = Options.LEAST_MTU + 48;

  /// Of this host.
  static HostAdvice ofHost() {
    return new HostAdvice(Dimensions.SYSTEM, OwnFolder.root(), interfacesOfHost());
  }

  static Map<String, Integer> interfacesOfHost() {
    Map<String, Integer> interfaces = new TreeMap<>();
    try {
      for (NetworkInterface each : NetworkInterface.networkInterfaces().toList()) {
        if (each.isUp() && !each.isLoopback()) {
          interfaces.put(each.getName(), each.getMTU());
        }
      }
    } catch (SocketException e) {
      // then nothing is said of them
    }
    return interfaces;
  }

  /// How much is free for files there, in words.
  static String freeSpace(Path place) {
    try {
      FileStore store = Files.getFileStore(place);
      return "%d MiB in %s (%s)".formatted(store.getUsableSpace() / MEBIBYTE, place, store.type());
    } catch (IOException e) {
      return "unknown: " + e;
    }
  }

  List<Advice> of(CommConfig config) {
    Options options = Options.of(config);
    int ranks = config.worldSize().orElse(2);
    List<Advice> advice = new ArrayList<>();
    onSockets(Dimensions.wantedBufferBytes(options, ranks), ranks).ifPresent(advice::add);
    if (options.driver() != Options.DriverKind.EXTERNAL) {
      onSpace(options, ranks, config.localWorldSize().orElse(ranks)).forEach(advice::add);
    }
    interfaces.forEach((name, packetBytes) -> {
      if (packetBytes < LEAST_PACKET) {
        advice.add(
            new Advice(
                "packets of " + name,
                "at most %d bytes".formatted(packetBytes),
                "A datagram has %d bytes or more, so each becomes several packets; as root: ip link set dev %s mtu 1500."
                    .formatted(Options.LEAST_MTU, name)));
      }
    });
    return advice;
  }

  private Optional<Advice> onSockets(int wantedBytes, int ranks) {
    int bytes = Dimensions.socketBufferBytes(system);
    return ranks == 1 || bytes >= wantedBytes
        ? Optional.empty()
        : Optional.of(
            new Advice(
                "socket buffers",
                "at most %d bytes".formatted(bytes),
                "%d ranks use up to %d bytes for a socket; large messages, and many senders to one rank, are faster then; as root: sysctl -w net.core.rmem_max=%s net.core.wmem_max=%s."
                    .formatted(ranks, wantedBytes, wantedBytes, wantedBytes)));
  }

  private List<Advice> onSpace(Options options, int ranks, int here) {
    List<Advice> advice = new ArrayList<>();
    try {
      FileStore store = Files.getFileStore(space);
      if (!IN_MEMORY.contains(store.type())) {
        advice.add(
            new Advice(
                "driver's files",
                "in %s, on %s".formatted(space, store.type()),
                "Every message goes through them, so they belong in memory: a tmpfs at /dev/shm that this user may write to."));
      }
      long perRank = Dimensions.of(options, ranks, Integer.MAX_VALUE).bytesPerRank(ranks);
      if (store.getUsableSpace() < here * perRank) {
        advice.add(
            new Advice(
                "space in " + space,
                "%d MiB free".formatted(store.getUsableSpace() / MEBIBYTE),
                "%d ranks here take up to %d MiB, if each talks to all; %s."
                    .formatted(here, here * perRank / MEBIBYTE + 1, DriverFolder.REMEDY)));
      }
    } catch (IOException e) {
      advice.add(new Advice("space in " + space, "can't be read: " + e, "Mend its mount."));
    }
    return advice;
  }
}
