package org.comm4j.backend.local;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.comm4j.api.Collective;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.HostData;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Request;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.BackendProvider;
import org.comm4j.api.spi.Pending;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.select.Selector;
import org.comm4j.core.select.Tuning;
import org.comm4j.core.session.InMemorySessions;
import org.comm4j.tck.Allocations;
import org.comm4j.tck.ThreadGroups;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// What a call allocates, counted by the JVM for each thread. No compiler is to thank for it: most
/// of this is counted in JVMs that run on the interpreter alone.
class AllocationTest {
  private static final int BOUND_SECONDS = 120;
  private static final int MESSAGE_BYTES = 128 << 10;
  private static final long LOOK_NS = TimeUnit.MILLISECONDS.toNanos(20);

  private static final List<String> INTERPRETER = List.of("-Xint");

  /// With vectors, which are objects where they go from one method of the library to another.
  private static final List<String> COMPILER_THAT_INLINES_NOTHING_OF_OURS =
      List.of(
          "--add-modules=jdk.incubator.vector",
          "-XX:CompileCommand=quiet",
          "-XX:CompileCommand=dontinline,org.comm4j.*::*");

  /// An all-reduce's record (32), its view of an array, and the JDK's segment of that.
  private static final int RECORD_BYTES = 128;

  /// What a message that waits becomes, and what is known of one that has come.
  private static final int MESSAGE_RECORDS_BYTES = 1024;

  static List<BackendProvider> providers() {
    return List.of(new LocalProvider(), new ShmProvider());
  }

  /// One by one in one JVM, since they have its interpreter alone in common.
  @ParameterizedTest
  @MethodSource("providers")
  void run_recordOfAnyCollectiveAgain_allocatesNothing(BackendProvider provider) throws Exception {
    assertAllocate(
        provider, EnumSet.range(RepeatedCall.RECORD, RepeatedCall.EXCLUSIVE_SCAN), 0, INTERPRETER);
  }

  @ParameterizedTest
  @MethodSource("providers")
  void run_recordAgainByVectors_allocatesNothing(BackendProvider provider) throws Exception {
    assertAllocates(provider, RepeatedCall.LONG_RECORD, 0, COMPILER_THAT_INLINES_NOTHING_OF_OURS);
  }

  @ParameterizedTest
  @MethodSource("providers")
  void run_recordsOfOtherShapesInTurn_allocatesNothing(BackendProvider provider) throws Exception {
    assertAllocates(provider, RepeatedCall.RECORDS_OF_OTHER_SHAPES_IN_TURN, 0, INTERPRETER);
  }

  @ParameterizedTest
  @MethodSource("providers")
  void run_fewRecordsAfterMany_allocatesNothing(BackendProvider provider) throws Exception {
    assertAllocates(provider, RepeatedCall.FEW_RECORDS_AFTER_MANY, 0, INTERPRETER);
  }

  /// Whose receiver has asked for it, of which its sender keeps a note.
  @ParameterizedTest
  @MethodSource("providers")
  void run_recordAgainAfterALateMessage_allocatesNothing(BackendProvider provider)
      throws Exception {
    assertAllocates(provider, RepeatedCall.RECORD_AFTER_A_LATE_MESSAGE, 0, INTERPRETER);
  }

  @ParameterizedTest
  @MethodSource("providers")
  void run_messageAgain_allocatesLittle(BackendProvider provider) throws Exception {
    assertAllocate(
        provider,
        EnumSet.range(RepeatedCall.SEND_OR_RECEIVE, RepeatedCall.SEND_RECEIVE),
        MESSAGE_RECORDS_BYTES,
        INTERPRETER);
  }

  @ParameterizedTest
  @MethodSource("providers")
  void allReduce_oneLine_allocatesItsRecordAlone(BackendProvider provider) throws Exception {
    assertAllocates(provider, RepeatedCall.ONE_LINE, RECORD_BYTES, INTERPRETER);
  }

  @ParameterizedTest
  @MethodSource("providers")
  void message_afterLateOnes_allocatesNoMoreThanBefore(BackendProvider provider) throws Exception {
    List<String> output = run(INTERPRETER, AllocatedAfterLateMessages.class, provider.name());
    double[] bytes =
        Stream.of(output.getLast().split(" ", -1)).mapToDouble(Double::parseDouble).toArray();
    assertThat(bytes[1]).as("bytes of a message, %s before", bytes[0]).isLessThan(bytes[0] + 1);
  }

  /// A rank looks at all of its calls now and then while it waits, here at each turn.
  @Test
  void isDone_peersAreLate_allocatesNothing() {
    var transports = LocalTransports.group(2, 4 << 20, NativeCalls.find(), Long.MAX_VALUE);
    var nowNs = new AtomicLong();
    try (var sessions = InMemorySessions.group(2)) {
      BackendCommunicator comm =
          EngineCommunicator.open(
              "test",
              sessions.session(0),
              transports.get(0),
              transports.get(0),
              CommConfig.builder().build(),
              new Selector(Tuning.none()),
              nowNs::get);
      List<Pending> calls =
          List.of(
              comm.submit(new Collective.Barrier()),
              comm.submit(new PointToPoint.Receive(CommData.of(new int[1]), 1, 0)));
      Runnable look =
          () -> {
            nowNs.addAndGet(LOOK_NS);
            var _ = calls.getFirst().isDone();
          };
      try {
        double _ = Allocations.perCall(100, look); // which loads classes, and asks peers once
        assertThat(Allocations.perCall(100, look)).as("bytes of a look").isLessThan(16);
        assertThat(calls).noneMatch(Pending::isDone);
      } finally {
        comm.close();
      }
    } finally {
      transports.forEach(SharedMemoryTransport::close);
    }
  }

  /// Six messages in four pieces each wait in the ring when the first is received: what is behind
  /// it stays there.
  @ParameterizedTest
  @MethodSource("providers")
  void receive_moreMessagesBehindIt_keepsNoneOfThem(BackendProvider provider) throws Exception {
    assertKeepsNone(provider, (comm, data) -> comm.receive(data, 0, 0));
  }

  @ParameterizedTest
  @MethodSource("providers")
  void sendReceive_moreMessagesBehindIt_keepsNoneOfThem(BackendProvider provider) throws Exception {
    HostData nothing = CommData.of(new byte[0]);
    assertKeepsNone(provider, (comm, data) -> comm.sendReceive(nothing, 0, data, 0, 0));
  }

  private static void assertKeepsNone(
      BackendProvider provider, BiConsumer<Communicator, HostData> receive) throws Exception {
    double _ = bytesOfMessage(provider, receive); // which loads classes
    assertThat(bytesOfMessage(provider, receive))
        .as("bytes allocated for a message")
        .isLessThan(MESSAGE_BYTES / 4.0);
  }

  /// What the receiver of a burst allocates for each of its messages.
  private static double bytesOfMessage(
      BackendProvider provider, BiConsumer<Communicator, HostData> receive) throws Exception {
    int messages = 6;
    var sent = new CountDownLatch(1);
    var each = new AtomicReference<>(Double.NaN);
    onTwoRanks(
        provider,
        comm -> {
          HostData data = CommData.of(new byte[MESSAGE_BYTES]);
          if (comm.rank() == 0) {
            List<Request> sends =
                Stream.generate(() -> comm.start(new PointToPoint.Send(data, 1, 0)))
                    .limit(messages)
                    .toList();
            sent.countDown();
            Request.waitAll(sends);
          } else {
            await(sent);
            each.set(Allocations.perCall(messages, () -> receive.accept(comm, data)));
          }
        });
    return each.get();
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(1, TimeUnit.MINUTES)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static void assertAllocates(
      BackendProvider provider, RepeatedCall call, long most, List<String> options)
      throws Exception {
    assertAllocate(provider, EnumSet.of(call), most, options);
  }

  /// At most so many bytes a call, on every rank, in a JVM with these options.
  private static void assertAllocate(
      BackendProvider provider, Set<RepeatedCall> calls, long most, List<String> options)
      throws Exception {
    String names = calls.stream().map(RepeatedCall::name).collect(Collectors.joining(","));
    List<String> output =
        run(options, AllocatedBytes.class, provider.name(), names, String.valueOf(most));
    assertThat(output.subList(output.size() - calls.size(), output.size()))
        .as("bytes of each call")
        .allSatisfy(
            line -> assertThat(Double.parseDouble(line.split(" ", -1)[1])).isLessThan(most + 1.0));
  }

  /// What a program prints.
  private static List<String> run(List<String> options, Class<?> main, String... arguments)
      throws Exception {
    Process child =
        new ProcessBuilder(ShmProcessTest.JVM.command(options, main, arguments))
            .redirectErrorStream(true)
            .start();
    List<String> output;
    try (BufferedReader reader = child.inputReader()) {
      output = reader.lines().toList();
    }
    assertThat(child.waitFor(BOUND_SECONDS, SECONDS)).isTrue();
    assertThat(child.exitValue()).as("%s", output).isZero();
    return output;
  }

  private static void onTwoRanks(BackendProvider provider, Consumer<Communicator> body)
      throws Exception {
    try (LocalGroup group = ThreadGroups.open(provider, 2, CommConfig.builder().build());
        var threads = Executors.newThreadPerTaskExecutor(Thread.ofPlatform().factory())) {
      for (Future<Object> each :
          threads.invokeAll(
              group.communicators().stream()
                  .map(comm -> Executors.callable(() -> body.accept(comm)))
                  .toList())) {
        each.get();
      }
    }
  }
}
