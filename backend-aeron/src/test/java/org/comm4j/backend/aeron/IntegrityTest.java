package org.comm4j.backend.aeron;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.ext.DebugReceiveChannelEndpoint;
import io.aeron.driver.ext.LossGenerator;
import io.aeron.logbuffer.FrameDescriptor;
import io.aeron.protocol.DataHeaderFlyweight;
import io.aeron.protocol.HeaderFlyweight;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.agrona.concurrent.UnsafeBuffer;
import org.comm4j.api.AbortedException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.Secret;
import org.comm4j.api.TransportFailedException;
import org.comm4j.api.spi.Session;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;
import org.comm4j.tck.TransportContract;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// With `COMM_AERON_INTEGRITY=mac` who stands on the way between ranks can change nothing that they
/// would not notice.
class IntegrityTest {
  private static final long SEED = Long.getLong("comm4j.seed", 4242);
  private static final CommConfig PLAIN =
      CommConfig.builder().timeout(Duration.ofSeconds(60)).option("COMM_AERON_MTU", "1408").build();
  private static final CommConfig SEALED =
      PLAIN.toBuilder()
          .secret(Secret.of("a secret of the launch"))
          .option("COMM_AERON_INTEGRITY", "mac")
          .build();

  @AfterAll
  static void nothingIsLeft() {
    AeronGroups.checkNothingIsLeft();
  }

  @Nested
  class Unharmed extends TransportContract {
    @Override
    protected List<AeronTransport> transports(int size) throws Exception {
      return new AeronGroups(SEALED).transports(size);
    }
  }

  /// What somebody does to one frame with a message, on its way to rank 1.
  enum Harm {
    ALTERED {
      @Override
      void on(UnsafeBuffer frame, int bytes, byte[] earlier) {
        int at = DataHeaderFlyweight.HEADER_LENGTH + 60;
        frame.putByte(at, (byte) (frame.getByte(at) ^ 1));
      }
    },
    FORGED {
      @Override
      void on(UnsafeBuffer frame, int bytes, byte[] earlier) {
        byte[] noise = new byte[bytes - DataHeaderFlyweight.HEADER_LENGTH];
        new SplittableRandom(SEED).nextBytes(noise);
        frame.putBytes(DataHeaderFlyweight.HEADER_LENGTH, noise);
      }
    },
    REPLAYED {
      @Override
      void on(UnsafeBuffer frame, int bytes, byte[] earlier) {
        frame.putBytes(DataHeaderFlyweight.HEADER_LENGTH, earlier);
      }
    },
    DROPPED { // so that Aeron does not ask for it again
      @Override
      void on(UnsafeBuffer frame, int bytes, byte[] earlier) {
        FrameDescriptor.frameType(frame, 0, HeaderFlyweight.HDR_TYPE_PAD);
      }
    };

    abstract void on(UnsafeBuffer frame, int bytes, byte[] earlier);
  }

  /// Harms the tenth whole frame of a large message.
  private static final class Attacker implements LossGenerator {
    private static final int FULL_FRAME = 1408;
    private static final int TENTH = 10;

    private final Harm harm;
    private final AtomicInteger seen = new AtomicInteger();
    private volatile byte[] earlier = new byte[0];

    Attacker(Harm harm) {
      this.harm = harm;
    }

    @Override
    public boolean shouldDropFrame(InetSocketAddress from, UnsafeBuffer frame, int bytes) {
      if (bytes == FULL_FRAME
          && FrameDescriptor.frameType(frame, 0) == HeaderFlyweight.HDR_TYPE_DATA) {
        int number = seen.incrementAndGet();
        if (number == 1) {
          byte[] message = new byte[bytes - DataHeaderFlyweight.HEADER_LENGTH];
          frame.getBytes(DataHeaderFlyweight.HEADER_LENGTH, message);
          earlier = message;
        } else if (number == TENTH) {
          harm.on(frame, bytes, earlier);
        }
      }
      return false;
    }

    MediaDriver.Context change(MediaDriver.Context context) {
      return context.receiveChannelEndpointSupplier((channel, dispatcher, status, with) ->
          new DebugReceiveChannelEndpoint(
              channel, dispatcher, status, with, this, (_, _, _) -> false));
    }
  }

  @ParameterizedTest
  @EnumSource
  void harm_isFoundByTheRankThatReceives(Harm harm) throws Exception {
    Attacker attacker = new Attacker(harm);
    var groups =
        new AeronGroups(SEALED, rank -> rank == 1 ? attacker::change : UnaryOperator.identity());
    try (LocalGroup group = groups.communicators(2)) {
      List<String> outcomes = DriverFaultTest.sums(group);
      assertThat(outcomes.get(1))
          .as("seed %d", SEED)
          .startsWith(TransportFailedException.class.getName())
          .contains("from rank 0 is not what that rank sent", "COMM_AERON_INTEGRITY");
      assertThat(outcomes.get(0)).startsWith(AbortedException.class.getName() + ": rank 1");
    }
  }

  /// Else the tests above would prove nothing.
  @Test
  void harm_withoutIntegrity_isNotFound() throws Exception {
    Attacker attacker = new Attacker(Harm.ALTERED);
    var groups =
        new AeronGroups(PLAIN, rank -> rank == 1 ? attacker::change : UnaryOperator.identity());
    try (LocalGroup group = groups.communicators(2)) {
      assertThat(DriverFaultTest.sums(group)).containsOnly("2");
    }
  }

  /// Who may write in the driver's files, as another process of an external driver's may, changes a
  /// message after it was checked.
  @Test
  void payload_isChangedInTheLogWhileItIsUsed_staysWhatWasChecked() throws Exception {
    Queue<Path> folder = new ConcurrentLinkedQueue<>();
    UnaryOperator<MediaDriver.Context> watched =
        context -> {
          folder.add(Path.of(context.aeronDirectoryName()));
          return context;
        };
    List<AeronTransport> group =
        new AeronGroups(SEALED, rank -> rank == 1 ? watched : UnaryOperator.identity())
            .transports(2);
    byte[] sent = "what rank 0 sends to rank 1".getBytes(StandardCharsets.US_ASCII);
    List<byte[]> used = new ArrayList<>();
    PayloadHandler handler =
        (_, _, payload) -> {
          replace(folder.element().resolve("images"), sent);
          used.add(payload.toArray(ValueLayout.JAVA_BYTE));
        };
    long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
    boolean isTaken = false;
    try {
      while (used.isEmpty() && System.nanoTime() - endNs < 0) {
        isTaken =
            isTaken
                || group
                    .get(0)
                    .offer(1, new long[Transport.HEADER_LONGS], MemorySegment.ofArray(sent));
        group.get(1).poll(handler, 1);
      }
      assertThat(used).containsExactly(sent);
    } finally {
      group.forEach(Transport::close);
    }
  }

  /// Writes other bytes wherever these are in the files of a folder.
  private static void replace(Path folder, byte[] bytes) {
    int replaced = 0;
    try (var files = Files.list(folder)) {
      for (Path each : files.toList()) {
        byte[] content = Files.readAllBytes(each);
        for (int at = 0; at <= content.length - bytes.length; at++) {
          if (Arrays.equals(content, at, at + bytes.length, bytes, 0, bytes.length)) {
            try (var file = FileChannel.open(each, StandardOpenOption.WRITE)) {
              replaced += file.write(ByteBuffer.allocate(bytes.length), at);
            }
          }
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    assertThat(replaced).as("bytes of the message in %s", folder).isEqualTo(bytes.length);
  }

  private static AeronGroups of(CommConfig first, CommConfig second) {
    return new AeronGroups(rank -> rank == 0 ? first : second, _ -> UnaryOperator.identity());
  }

  @Test
  void open_noSecret_saysWhatToDo() throws Exception {
    CommConfig config = PLAIN.toBuilder().option("COMM_AERON_INTEGRITY", "mac").build();
    assertThat(new AeronGroups(config).failures(2))
        .hasSize(2)
        .allMatch(each -> each.contains("needs a secret") && each.contains("COMM_SECRET_FILE"));
  }

  @Test
  void open_notOnAllRanks_everyRankSaysWho() throws Exception {
    assertThat(of(SEALED, PLAIN).failures(2))
        .hasSize(2)
        .allMatch(each -> each.contains("COMM_AERON_INTEGRITY: ") && each.contains("on rank 1"));
  }

  /// Who changes the session's bytes can't switch the codes off: a rank knows what it said itself.
  @Test
  void open_sessionSaysThatNobodyWantsCodes_isRefused() throws Exception {
    try (var group = InMemorySessions.group(2);
        var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<AeronTransport>> opening =
          group.sessions().stream()
              .map(IntegrityTest::withoutCodes)
              .map(session -> threads.submit(() -> new Rendezvous(session, SEALED).open()))
              .toList();
      for (Future<AeronTransport> each : opening) {
        assertThatThrownBy(() -> each.get().close())
            .hasCauseInstanceOf(TransportFailedException.class)
            .hasMessageContaining("COMM_AERON_INTEGRITY: mac on rank ");
      }
    }
  }

  private static Session withoutCodes(Session session) {
    return (Session)
        Proxy.newProxyInstance(
            Session.class.getClassLoader(),
            new Class<?>[] {Session.class},
            (_, method, arguments) -> {
              if (method.getName().equals("exchange") && arguments[0].equals("aeron")) {
                return session
                    .exchange("aeron", (byte[]) arguments[1], (Duration) arguments[2])
                    .stream()
                    .map(IntegrityTest::withoutCodes)
                    .toList();
              }
              return method.invoke(session, arguments);
            });
  }

  private static byte[] withoutCodes(byte[] address) {
    Address said = Address.of(address);
    assertThat(said.isSealed()).isTrue();
    return new Address(
            said.host(),
            said.port(),
            said.secret(),
            said.mtu(),
            said.termBytes(),
            said.driver(),
            false)
        .toBytes();
  }

  @Test
  void open_otherSecret_isFoundInTheFirstMessage() throws Exception {
    CommConfig other = SEALED.toBuilder().secret(Secret.of("of another launch")).build();
    try (LocalGroup group = of(SEALED, other).communicators(2)) {
      assertThat(DriverFaultTest.sums(group))
          .anyMatch(each -> each.contains("message #1 from rank"));
    }
  }
}
