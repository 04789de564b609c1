package org.comm4j.backend.local;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import java.util.Optional;
import org.comm4j.tck.PeerMemoryContract;
import org.comm4j.tck.TransportContract;
import org.junit.jupiter.api.Nested;

/// The contracts on memory of one JVM: with native access, without it, and with ranks that sleep at
/// once and until they are woken.
class LocalTransportTest {
  private static final long WINDOW_BYTES = 4 << 20;
  private static final IdlePolicy USUAL = IdlePolicy.of(2, 2);
  private static final IdlePolicy SLEEPY = new IdlePolicy(0, 0, Long.MAX_VALUE);

  private static List<SharedMemoryTransport> anonymous(int size, IdlePolicy idle) {
    var calls = NativeCalls.find();
    assumeTrue(calls.isPresent(), "no native access");
    return LocalTransports.group(size, WINDOW_BYTES, idle, calls);
  }

  private static List<SharedMemoryTransport> files(int size, IdlePolicy idle) {
    return LocalTransports.group(size, WINDOW_BYTES, idle, Optional.empty());
  }

  @Nested
  class Anonymous extends TransportContract {
    @Override
    protected List<SharedMemoryTransport> transports(int size) {
      return anonymous(size, USUAL);
    }
  }

  @Nested
  class AnonymousSleepy extends TransportContract {
    @Override
    protected List<SharedMemoryTransport> transports(int size) {
      return anonymous(size, SLEEPY);
    }
  }

  @Nested
  class InFiles extends TransportContract {
    @Override
    protected List<SharedMemoryTransport> transports(int size) {
      return files(size, USUAL);
    }
  }

  @Nested
  class AnonymousWindows extends PeerMemoryContract {
    @Override
    protected List<Peer> peers(int size) {
      return anonymous(size, SLEEPY).stream().map(one -> new Peer(one, one)).toList();
    }
  }

  @Nested
  class WindowsInFiles extends PeerMemoryContract {
    @Override
    protected List<Peer> peers(int size) {
      return files(size, SLEEPY).stream().map(one -> new Peer(one, one)).toList();
    }
  }
}
