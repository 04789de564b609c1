package org.comm4j.backend.aeron;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.driver.status.SenderLimit;
import io.aeron.driver.status.SenderPos;
import io.aeron.exceptions.AeronException;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.ControlledFragmentHandler;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.FrameDescriptor;
import io.aeron.logbuffer.Header;
import io.aeron.protocol.DataHeaderFlyweight;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.agrona.BitUtil;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.status.CountersReader;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.transport.PayloadHandler;
import org.comm4j.core.transport.Transport;
import org.jspecify.annotations.Nullable;

/// What this rank sends to another one and receives from it. Guarded by the transport's lock.
final class Peer {
  private static final long NONE = -1;

  /// A message without a header: the peer reads nothing any more.
  private static final int GOODBYE_BYTES = 1;

  /// The answer: all that came before the goodbye is here.
  private static final int TAKEN_BYTES = 2;

  /// Something that comes after a message, so that its loss is noticed.
  private static final int PROBE_BYTES = 3;

  /// What payloads leave of the peer's room, for the probes behind the last one, a goodbye and the
  /// answer to one, with their seals: else what is lost of a full way would be noticed late.
  static final int CONTROL_ROOM_BYTES = 8 * 64;

  private static final long FIRST_PROBE_NS = TimeUnit.MILLISECONDS.toNanos(2);

  /// Then Aeron says every 100 ms how much there is.
  private static final long LAST_PROBE_NS = TimeUnit.MILLISECONDS.toNanos(32);

  /// Who waits for a peer offers far more often. After a pause it may have answered meanwhile.
  private static final long PAUSE_NS = TimeUnit.SECONDS.toNanos(1);

  private static final long NEVER_NS = Long.MAX_VALUE;
  private static final int OWN_ALIGNMENT = 64;

  private final int rank;
  private final Driver driver;
  private final Aeron aeron;
  private final Route route;
  private final long patienceNs;
  private final BooleanSupplier isGone;
  private final LongSupplier nanoTime;
  private final Terms sent = new Terms();
  private final Terms received = new Terms();
  private final Seal sending;
  private final Seal receiving;
  private final @Nullable MemorySegment unsent; // where messages with a seal are made
  private final @Nullable MemorySegment checked; // and where they are looked at
  private final BufferClaim claim = new BufferClaim();
  private final FragmentHandler onFragment = this::onFragment;
  private final ControlledFragmentHandler onFragmentInTime = this::onFragmentInTime;
  private final ControlledFragmentHandler onPeek = this::onPeek;
  private final ControlledFragmentHandler onGoodbye = this::onGoodbye;

  private final long[] arrived = new long[Transport.HEADER_LONGS]; // the header delivered now

  private long registration = NONE;
  private long silentNs = NONE; // since when the peer has not answered
  private long refusedNs; // when it had last not answered
  private long lostNs = NONE; // when the driver gave up what comes from the peer
  private @Nullable ExclusivePublication publication;
  private int limitCounter = CountersReader.NULL_COUNTER_ID; // up to where the driver may send
  private int positionCounter = CountersReader.NULL_COUNTER_ID; // up to where it has sent
  private volatile @Nullable Image image;
  private @Nullable PayloadHandler handler;
  private @Nullable Throwable thrown; // by the handler
  private @Nullable TransportFailedException broken; // for good
  private int delivered;
  private long pollStartNs;
  private boolean peeked;
  private boolean saidGoodbye;
  private boolean hasAnswered;
  private boolean hasTaken;
  private long seenPosition; // up to here there is no goodbye
  private boolean hasLeft;
  private boolean hasOffered; // since the last look
  private long lastNs; // the last offer or probe
  private long probeAfterNs = NEVER_NS;

  /// @param rank the other one
  /// @param sending of what goes to it
  /// @param receiving of what comes from it
  /// @param patienceNs how long it may take to answer, if it lives
  /// @param isGone whether the session has given it up, or it has left
  /// @param nanoTime the clock, for how long it is silent and handlers take
  Peer(
      Driver driver,
      int rank,
      Route route,
      Seal sending,
      Seal receiving,
      long patienceNs,
      BooleanSupplier isGone,
      LongSupplier nanoTime) {
    this.rank = rank;
    this.sending = sending;
    this.receiving = receiving;
    this.unsent = sending.bytes() == 0 ? null : ownMemory(route.mtu());
    this.checked = receiving.bytes() == 0 ? null : ownMemory(route.mtu());
    this.driver = driver;
    this.aeron = driver.aeron();
    this.route = route;
    this.patienceNs = patienceNs;
    this.isGone = isGone;
    this.nanoTime = nanoTime;
    var _ = aeron.addSubscription(route.in(), route.inStream(), this::onImage, this::onNoImage);
  }

  /// Of this process alone. Other processes may write in a driver's files: between the look at a
  /// seal and the use of what it is of, or before it is put on what was to be sent.
  private static MemorySegment ownMemory(int bytes) {
    return Arena.ofAuto().allocate(bytes, OWN_ALIGNMENT);
  }

  int maxPayloadBytes() {
    return route.maxPayloadBytes() - sending.bytes();
  }

  /// Sends a payload, which is on its way when the driver has worked.
  ///
  /// @return false if there is no room
  boolean offer(long[] header, MemorySegment payload) {
    ExclusivePublication to = publication();
    if (to == null) {
      return false;
    }
    int bytes = (int) payload.byteSize();
    if (!claim(to, Transport.HEADER_BYTES + bytes, CONTROL_ROOM_BYTES)) {
      return false;
    }
    MemorySegment message = unsent == null ? sent.of(claim.buffer()) : unsent;
    long at = unsent == null ? placeOfClaim() : 0;
    for (int i = 0; i < Transport.HEADER_LONGS; i++) {
      message.set(JAVA_LONG_UNALIGNED, at + (long) i * Long.BYTES, header[i]);
    }
    try {
      MemorySegment.copy(payload, 0, message, at + Transport.HEADER_BYTES, bytes);
    } catch (RuntimeException | Error e) { // its owner has closed it
      claim.abort(); // else nothing behind it would ever be read
      throw e;
    }
    commit(Transport.HEADER_BYTES + bytes);
    hasOffered = true;
    return true;
  }

  private long placeOfClaim() {
    return claim.buffer().wrapAdjustment() + (long) claim.offset();
  }

  /// Sends what was claimed, once it is written there or, if it needs a seal, into own memory.
  private void commit(int bytes) {
    if (unsent != null) {
      sending.put(unsent, 0, bytes);
      MemorySegment term = sent.of(claim.buffer());
      MemorySegment.copy(unsent, 0, term, placeOfClaim(), bytes + (long) sending.bytes());
    }
    claim.commit();
  }

  /// Sends something short some time after the last message, and again. A receiver asks for what
  /// was lost when it sees a gap, so it must see what comes after the gap; Aeron itself is silent
  /// for 100 ms.
  void probe(long nowNs) {
    if (route.isMemory()) {
      return;
    }
    if (hasOffered) {
      hasOffered = false;
      lastNs = nowNs;
      probeAfterNs = FIRST_PROBE_NS;
    } else if (nowNs - lastNs >= probeAfterNs) {
      ExclusivePublication to = publication;
      int bytes = PROBE_BYTES + sending.bytes();
      if (to != null && fitsWindow(to, bytes, 0) && to.tryClaim(bytes, claim) > 0) {
        commitControl(PROBE_BYTES);
        lastNs = nowNs;
        probeAfterNs = probeAfterNs < LAST_PROBE_NS ? 2 * probeAfterNs : NEVER_NS;
      }
    }
  }

  /// @param leftBytes of the peer's room, behind it
  private boolean claim(ExclusivePublication to, int bytes, int leftBytes) {
    int all = bytes + sending.bytes();
    long result;
    if (to.isClosed() || fitsWindow(to, all, leftBytes)) {
      result = to.tryClaim(all, claim);
    } else {
      result = to.isConnected() ? Publication.BACK_PRESSURED : Publication.NOT_CONNECTED;
    }
    if (result == Publication.ADMIN_ACTION) {
      result = to.tryClaim(all, claim); // at the start of the next term
    }
    if (result == Publication.NOT_CONNECTED) {
      checkConnects(to);
    } else {
      silentNs = NONE;
    }
    if (result == Publication.MAX_POSITION_EXCEEDED) {
      throw new TransportFailedException(
          "the way to rank %d ends after 2^31 terms of %d bytes; set COMM_AERON_TERM to more, or open the communicator anew in time"
              .formatted(rank, to.termBufferLength()),
          null);
    }
    if (result == Publication.CLOSED) {
      throw new TransportFailedException("the way to rank %d is closed".formatted(rank), null);
    }
    return result > 0;
  }

  /// Whether the peer has room for so much, so that the driver sends it at once. What has to wait
  /// in the log would go out when this rank calls again, or its daemon thread looks, or, where the
  /// driver has a thread, at any time, and never once it has ended; one that is not ours stays.
  private boolean fitsWindow(ExclusivePublication to, int bytes, int leftBytes) {
    if (route.isMemory() || !driver.isOurs()) {
      return true;
    }
    limitCounter = counter(limitCounter, SenderLimit.SENDER_LIMIT_TYPE_ID, to);
    long frame =
        BitUtil.align(bytes + DataHeaderFlyweight.HEADER_LENGTH, FrameDescriptor.FRAME_ALIGNMENT);
    long leftOfTerm = to.termBufferLength() - to.position() % to.termBufferLength();
    long end = to.position() + frame + (leftOfTerm < frame ? leftOfTerm : 0);
    return limitCounter == CountersReader.NULL_COUNTER_ID
        || end + leftBytes <= aeron.countersReader().getCounterValue(limitCounter);
  }

  /// A peer that lives answers, by its daemon thread if it computes. For one that has answered
  /// before the driver has waited for half of the time already.
  private void checkConnects(ExclusivePublication to) {
    long nowNs = nanoTime.getAsLong();
    if (silentNs == NONE || nowNs - refusedNs > PAUSE_NS) {
      silentNs = nowNs;
    }
    refusedNs = nowNs;
    long leftNs = driverIsPatient() && to.position() > 0 ? patienceNs / 2 : patienceNs;
    if (nowNs - silentNs > leftNs && !isGone.getAsBoolean()) {
      throw silence(
          "has not answered at " + route.place(), "set COMM_AERON_ADDRESS on its host", "this one");
    }
  }

  /// Nothing has come from the peer for so long that the driver has given it up, and what came now
  /// would have a gap before it; or the peer has closed without a goodbye, and the session will say
  /// so.
  private void checkIsHeard(Image lost) {
    long leftNs = driverIsPatient() && !lost.isEndOfStream() ? 0 : patienceNs;
    if (nanoTime.getAsLong() - lostNs > leftNs && !isGone.getAsBoolean()) {
      throw silence(
          "has sent nothing more to " + route.here(),
          "set COMM_AERON_ADDRESS on this host",
          "that rank's");
    }
  }

  /// Whether the driver gives nobody up before it has waited long enough.
  private boolean driverIsPatient() {
    return driver.isOurs() && !route.isMemory();
  }

  private TransportFailedException silence(String what, String setting, String whose) {
    return new TransportFailedException(
        "rank %d is alive but %s for %d s; %s"
            .formatted(
                rank,
                what,
                TimeUnit.NANOSECONDS.toSeconds(patienceNs),
                route.isMemory()
                    ? "its process or the media driver's may be stopped"
                    : "let UDP through to that port (COMM_AERON_PORTS gives a range), or %s to an address that %s reaches"
                        .formatted(setting, whose)),
        null);
  }

  private @Nullable ExclusivePublication publication() {
    ExclusivePublication known = publication;
    if (known == null) {
      boolean interrupted = Thread.interrupted(); // an interrupt would close the log's file
      try {
        if (registration == NONE) {
          registration = aeron.asyncAddExclusivePublication(route.out(), route.outStream());
        }
        known = aeron.getExclusivePublication(registration);
      } catch (AeronException e) {
        registration = NONE; // Aeron says why once, and nothing more of it
        throw new TransportFailedException(
            "no way to rank %d (%s): %s; if there is no space in %s, %s; if too many files are open, %s"
                .formatted(
                    rank,
                    route.place(),
                    e.getMessage(),
                    driver.directory(),
                    DriverFolder.REMEDY,
                    Faults.FILES_REMEDY),
            e);
      } finally {
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
      }
      publication = known;
    }
    return known;
  }

  // --- receiving ---

  /// What comes later than the first one would have a gap before it.
  private void onImage(Image each) {
    if (image == null) {
      image = each;
    }
  }

  private void onNoImage(Image each) {
    if (each == image && !hasLeft) {
      lostNs = nanoTime.getAsLong();
    }
  }

  /// Delivers what has arrived; not all of it where the handler takes long, and the driver would
  /// give this rank up meanwhile.
  ///
  /// @return how many payloads
  int poll(PayloadHandler to, int limit) {
    Image from = image;
    if (from == null) {
      return 0;
    }
    if (lostNs != NONE) {
      checkIsHeard(from);
    }
    handler = to;
    delivered = 0;
    if (driver.isInvoked()) {
      from.poll(onFragment, limit);
    } else {
      pollStartNs = nanoTime.getAsLong();
      from.controlledPoll(onFragmentInTime, limit);
    }
    Throwable failure = thrown;
    if (failure != null) {
      thrown = null;
      if (failure instanceof Error error) {
        throw error;
      }
      throw (RuntimeException) failure;
    }
    if (broken != null) {
      throw broken;
    }
    if (hasLeft && !hasAnswered) {
      answerGoodbye();
    }
    return delivered;
  }

  /// Takes no more once the handler has been at work for long: the client has to be moved along.
  private ControlledFragmentHandler.Action onFragmentInTime(
      DirectBuffer buffer, int offset, int length, Header header) {
    onFragment(buffer, offset, length, header);
    return nanoTime.getAsLong() - pollStartNs < Driver.LONG_NS
        ? ControlledFragmentHandler.Action.CONTINUE
        : ControlledFragmentHandler.Action.BREAK;
  }

  private void onFragment(DirectBuffer buffer, int offset, int length, Header header) {
    if (broken != null) {
      return;
    }
    MemorySegment message = received.of(buffer);
    long at = buffer.wrapAdjustment() + (long) offset;
    int bytes = length - receiving.bytes();
    boolean isRight = true;
    if (checked != null) {
      long whole = Math.min(length, checked.byteSize()); // more is of nobody's
      MemorySegment.copy(message, at, checked, 0, whole);
      message = checked;
      at = 0;
      isRight = whole == length && receiving.isRight(message, at, bytes);
    }
    if (!isRight) {
      broken =
          new TransportFailedException(
              "message #%d from rank %d is not what that rank sent: it was altered, forged or replayed on the network, or one before it was dropped (found by COMM_AERON_INTEGRITY)"
                  .formatted(receiving.messages(), rank),
              null);
      return;
    }
    if (thrown != null) {
      return; // but it is counted
    }
    if (bytes < Transport.HEADER_BYTES) {
      hasLeft |= bytes == GOODBYE_BYTES;
      hasTaken |= bytes == TAKEN_BYTES;
      return;
    }
    PayloadHandler to = handler;
    if (to == null) {
      return;
    }
    delivered++;
    for (int i = 0; i < Transport.HEADER_LONGS; i++) {
      arrived[i] = message.get(JAVA_LONG_UNALIGNED, at + (long) i * Long.BYTES);
    }
    try {
      to.onPayload(
          rank,
          arrived,
          message.asSlice(at + Transport.HEADER_BYTES, bytes - Transport.HEADER_BYTES));
    } catch (RuntimeException | Error e) {
      thrown = e; // Aeron would keep it for itself
    }
  }

  /// Whether something has arrived that was not polled.
  boolean hasNews() {
    Image from = image;
    if (from == null || from.isClosed()) {
      return false;
    }
    peeked = false;
    long at = from.position();
    // what only fills the end of a term is passed over unsaid, and hides what begins the next one
    return from.controlledPeek(at, onPeek, Long.MAX_VALUE) > at || peeked;
  }

  private ControlledFragmentHandler.Action onPeek(
      DirectBuffer buffer, int offset, int length, Header header) {
    peeked = true;
    return ControlledFragmentHandler.Action.ABORT;
  }

  /// Throws away what has arrived.
  void discard() {
    handler = null;
    Image from = image;
    if (from != null) {
      from.poll(onFragment, Integer.MAX_VALUE);
    }
  }

  // --- the end ---

  /// Says that this rank reads nothing any more, to a peer that sent something or was sent
  /// something; is called until it could.
  void sayGoodbye() {
    if (!saidGoodbye && (publication != null || image != null)) {
      try {
        saidGoodbye = say(GOODBYE_BYTES);
      } catch (TransportFailedException _) {
        saidGoodbye = true; // the peer can't be told
      }
    }
  }

  /// Tells a peer that has said goodbye that all it sent is here, though maybe not yet polled: it
  /// waits for that. For a rank that does not close.
  void answerGoodbye() {
    if (!hasLeft) {
      lookForGoodbye();
    }
    if (hasLeft && !hasAnswered) {
      try {
        hasAnswered = say(TAKEN_BYTES);
      } catch (TransportFailedException _) {
        hasAnswered = true; // the peer gives up waiting; whoever sends to it is told
      }
    }
  }

  private void lookForGoodbye() {
    Image from = image;
    if (from == null || from.isClosed()) {
      return;
    }
    long polled = from.position();
    long termEnd = polled - polled % from.termBufferLength() + from.termBufferLength();
    if (seenPosition < termEnd) { // no further than the term that is being polled
      seenPosition = from.controlledPeek(Math.max(seenPosition, polled), onGoodbye, Long.MAX_VALUE);
    }
  }

  private ControlledFragmentHandler.Action onGoodbye(
      DirectBuffer buffer, int offset, int length, Header header) {
    hasLeft |= length - receiving.bytes() == GOODBYE_BYTES; // who only says so is found out later
    return ControlledFragmentHandler.Action.CONTINUE;
  }

  private boolean say(int bytes) {
    ExclusivePublication to = publication();
    if (to == null || to.isClosed() || !claim(to, bytes, 0)) {
      return false;
    }
    commitControl(bytes);
    hasOffered = true;
    return true;
  }

  private void commitControl(int bytes) {
    if (unsent == null) {
      claim.buffer().setMemory(claim.offset(), bytes, (byte) 0);
    } else {
      unsent.asSlice(0, bytes).fill((byte) 0);
    }
    commit(bytes);
  }

  /// Whether neither side waits for the other one: the peer has all that was sent or wants nothing,
  /// and was told the same of this rank; or it is gone.
  boolean isOver() {
    if (isGone.getAsBoolean()) {
      return true;
    }
    ExclusivePublication to = publication;
    if (to == null) {
      return image == null;
    }
    return to.isClosed()
        || (hasLeft && !to.isConnected()) // nobody listens any more
        || (saidGoodbye && (hasTaken || (hasLeft && isSent())));
  }

  /// Whether everything has gone out that anybody is there for.
  boolean isSent() {
    ExclusivePublication to = publication;
    if (to == null || to.isClosed() || isGone.getAsBoolean()) {
      return true;
    }
    positionCounter = counter(positionCounter, SenderPos.SENDER_POSITION_TYPE_ID, to);
    return positionCounter == CountersReader.NULL_COUNTER_ID
        || aeron.countersReader().getCounterValue(positionCounter) >= to.position();
  }

  /// A counter of the driver about a way over UDP; a way through memory has none.
  ///
  /// @param known the counter, or none if it was not found yet
  private int counter(int known, int type, ExclusivePublication to) {
    return known != CountersReader.NULL_COUNTER_ID || route.isMemory()
        ? known
        : aeron.countersReader().findByTypeIdAndRegistrationId(type, to.registrationId());
  }
}
