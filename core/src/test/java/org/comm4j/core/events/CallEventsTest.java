package org.comm4j.core.events;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.UnsupportedException;
import org.comm4j.api.spi.CallListener;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What a flight recording has of calls.
class CallEventsTest {
  private static final String NAME = "org.comm4j.Call";

  private final CallEvents listener = new CallEvents();

  @TempDir Path folder;

  @Test
  void begins_noRecordingAsksForCalls_wantsNothing() {
    assertThat(listener.begins("world", 0, new Collective.Barrier())).isNull();
    try (var recording = new Recording()) {
      recording.start(); // with what is on unasked
      assertThat(listener.begins("world", 0, new Collective.Barrier())).isNull();
    }
  }

  @Test
  void recording_asksForCalls_hasWhatTheyWere() throws IOException {
    var gradients = CommData.of(new float[100]);
    var sum = new Collective.AllReduce(gradients, gradients, ReduceOp.SUM);
    var gather = new Collective.Gather(CommData.of(new byte[10]), CommData.of(new byte[30]), 2);
    var receive = new PointToPoint.Receive(CommData.of(new long[3]), 0, 1);
    try (var recording = new Recording()) {
      recording.enable(NAME);
      recording.start();
      begin("world", 3, sum).ended(null);
      begin("world", 2, gather).ended(null);
      begin("world", 0, gather).ended(null);
      var failure = new UnsupportedException("no messages");
      begin("pair", 1, receive).ended(failure);
      recording.stop();

      List<RecordedEvent> events = eventsOf(recording);
      assertThat(events)
          .extracting(CallEventsTest::text)
          .containsExactly(
              "world 3 allReduce 400 null",
              "world 2 gather 30 null",
              "world 0 gather 10 null",
              "pair 1 receive 24 " + failure);
      assertThat(events)
          .extracting(RecordedEvent::getDuration)
          .allSatisfy(duration -> assertThat(duration).isPositive());
    }
  }

  @Test
  void recording_withThreshold_leavesShortCallsOut() throws IOException {
    try (var recording = new Recording()) {
      recording.enable(NAME).withThreshold(Duration.ofDays(1));
      recording.start();
      begin("world", 0, new Collective.Barrier()).ended(null);
      recording.stop();
      assertThat(eventsOf(recording)).isEmpty();
    }
  }

  private CallListener.Call begin(String communicator, int rank, Operation operation) {
    return Objects.requireNonNull(listener.begins(communicator, rank, operation));
  }

  private List<RecordedEvent> eventsOf(Recording recording) throws IOException {
    Path file = folder.resolve("calls.jfr");
    recording.dump(file);
    return RecordingFile.readAllEvents(file).stream()
        .filter(event -> event.getEventType().getName().equals(NAME))
        .toList();
  }

  private static String text(RecordedEvent event) {
    return "%s %d %s %d %s"
        .formatted(
            event.getString("communicator"),
            event.getInt("rank"),
            event.getString("operation"),
            event.getLong("bytes"),
            event.getString("failure"));
  }
}
