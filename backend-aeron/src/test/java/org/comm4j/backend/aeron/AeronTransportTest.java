package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.comm4j.api.CommConfig;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.tck.TransportContract;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Nested;

class AeronTransportTest {
  @AfterAll
  static void nothingIsLeft() throws Exception {
    try (var left = Files.newDirectoryStream(DriverFolder.root(), "comm4j-aeron-*")) {
      assertThat(left).isEmpty();
    }
  }

  private static List<AeronTransport> open(int size, Map<String, String> options) throws Exception {
    var group = InMemorySessions.group(size);
    CommConfig config = CommConfig.fromEnvironment(options);
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      var opening = new ArrayList<Future<AeronTransport>>();
      for (int rank = 0; rank < size; rank++) {
        var rendezvous = new Rendezvous(group.session(rank), config);
        opening.add(threads.submit(rendezvous::open));
      }
      var transports = new ArrayList<AeronTransport>();
      for (Future<AeronTransport> each : opening) {
        transports.add(each.get());
      }
      return transports;
    }
  }

  @Nested
  class AsConfiguredByDefault extends TransportContract {
    @Override
    protected List<AeronTransport> transports(int size) throws Exception {
      return open(size, Map.of());
    }
  }

  /// As between hosts, and with as little memory as it goes.
  @Nested
  class WithSmallDatagramsAndTerms extends TransportContract {
    @Override
    protected List<AeronTransport> transports(int size) throws Exception {
      return open(size, Map.of("COMM_AERON_MTU", "1408", "COMM_AERON_TERM", "64KiB"));
    }
  }
}
