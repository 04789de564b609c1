package org.comm4j.core.engine;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.comm4j.api.Communicator;
import org.comm4j.api.MismatchedCallException;
import org.comm4j.api.TransportFailedException;
import org.jspecify.annotations.Nullable;

/// What the ranks of a communicator that wait ask each other: whether who is waited for is there,
/// and calls the same. Who closes the communicator tells those who have asked. Guarded by the
/// engine's lock.
final class Inquiries {
  // How many calls back a peer that waits can be told that it calls something else.
  private static final int PAST = 64; // a power of two
  private static final int MOST_ANSWERS = 64;
  private static final long OF_MESSAGE = 0; // instead of a collective's number
  private static final long OF_SHRINK = -1; // the same

  private final Context context;
  private final Engine engine;
  private final @Nullable CallSignature[] past = new @Nullable CallSignature[PAST];
  private final List<Inquiry> unanswered = new ArrayList<>();
  private final BitSet ofMessages = new BitSet(); // who wait for a message
  private final BitSet ofShrink = new BitSet(); // who hear of a close also where this is broken

  Inquiries(Context context) {
    this.context = context;
    this.engine = context.engine();
  }

  /// A peer waits for this rank in a collective.
  private record Inquiry(int peer, long sequence, long what, long count, long detail) {}

  // --- asking ---

  /// Asks a peer what it has called as its last collectives before that number. If one was
  /// something else, it says so by breaking the communicator.
  void askBefore(int peer, long sequence) {
    for (long each = Math.max(1, sequence - PAST); each < sequence; each++) {
      CallSignature mine = past(each);
      if (mine != null) {
        inquire(peer, each, mine);
      }
    }
  }

  /// Asks a peer whether it calls this as its collective of that number. Nothing depends on the
  /// answer but how soon a failure is known.
  void ask(int peer, long sequence, CallSignature mine) {
    try {
      inquire(peer, sequence, mine);
    } catch (TransportFailedException _) {
      // there is no memory for the way there, which what has to be sent would say
    }
  }

  private void inquire(int peer, long sequence, CallSignature mine) {
    context
        .link(peer)
        .control(
            engine.header(),
            Frame.word(Frame.INQUIRY, 0, 0, context.id()),
            sequence,
            mine.what(),
            mine.count(),
            mine.detail());
  }

  /// Asks the other end of a message whether it is still there. Not where that may be anyone: such
  /// a receive ends only when all others have left.
  void ask(int peer) {
    if (peer != Communicator.ANY_SOURCE) {
      ask(peer, OF_MESSAGE);
    }
  }

  /// Asks a rank whether it can still [#shrink][Groups#shrink()]: not once it has closed the
  /// communicator, broken or not.
  void askForShrink(int peer) {
    ask(peer, OF_SHRINK);
  }

  private void ask(int peer, long sequence) {
    if (peer == context.rank()) {
      return;
    }
    try {
      engine.control(
          context.worldRank(peer), Frame.word(Frame.INQUIRY, 0, 0, context.id()), sequence);
    } catch (TransportFailedException _) {
      // as above; to shrink, survivors meet by the session
    }
  }

  // --- answering ---

  /// Whether an inquiry is to be answered also where the communicator was broken.
  static boolean isOfShrink(long[] header) {
    return Frame.sequence(header) == OF_SHRINK;
  }

  /// A peer waits for this rank to shrink.
  void ofShrink(int peer) {
    ofShrink.set(peer);
  }

  /// Takes what a peer asks, and answers it if that can be done now.
  ///
  /// @throws MismatchedCallException if it calls something else
  void deliver(int peer, long[] header) {
    long sequence = Frame.sequence(header);
    if (sequence == OF_MESSAGE) {
      ofMessages.set(peer);
    } else if (sequence == OF_SHRINK) {
      ofShrink.set(peer);
    } else {
      take(
          new Inquiry(
              peer, sequence, Frame.what(header), Frame.count(header), Frame.detail(header)));
    }
  }

  private void take(Inquiry inquiry) {
    if (inquiry.sequence() >= context.nextSequence()) {
      unanswered.remove(inquiry); // it asks again now and then
      unanswered.add(inquiry);
      return;
    }
    CallSignature mine = past(inquiry.sequence());
    if (mine != null
        && (mine.what() != inquiry.what()
            || mine.count() != inquiry.count()
            || mine.detail() != inquiry.detail())) {
      throw new MismatchedCallException(
          mine.difference(
              context.rank(), inquiry.peer(), inquiry.sequence(), inquiry.what(), inquiry.count()));
    }
    CollectiveCall call = context.find(inquiry.sequence());
    List<Integer> missing = call == null ? List.of() : call.missing();
    answer(inquiry, 0, missing.isEmpty() ? -1 : missing.getFirst());
    for (int i = 1; i < Math.min(missing.size(), MOST_ANSWERS); i++) {
      answer(inquiry, i, missing.get(i));
    }
  }

  private void answer(Inquiry inquiry, int number, int missing) {
    try {
      context
          .link(inquiry.peer())
          .control(
              engine.header(),
              Frame.word(Frame.PRESENT, 0, 0, context.id()),
              inquiry.sequence(),
              missing,
              number,
              0);
    } catch (TransportFailedException _) {
      // who has asked goes on waiting
    }
  }

  /// Remembers what this rank calls as its collective of that number, the next one.
  void called(long sequence, CallSignature signature) {
    past[(int) sequence & (PAST - 1)] = signature;
  }

  /// What this rank has called as its collective of that number; null if that was long ago.
  @Nullable CallSignature past(long sequence) {
    return context.nextSequence() - sequence <= PAST ? past[(int) sequence & (PAST - 1)] : null;
  }

  /// Answers those who waited for this collective to be started here.
  void started(CollectiveCall started) {
    if (unanswered.isEmpty()) {
      return;
    }
    List<Inquiry> now =
        unanswered.stream().filter(each -> each.sequence() == started.sequence()).toList();
    unanswered.removeAll(now);
    now.forEach(this::take);
  }

  // --- closing ---

  /// Tells those who wait for this rank, and have asked, that it has closed the communicator.
  /// Others ask when they do.
  void tellClosed() {
    BitSet told = ofShrink;
    if (!context.isToldBySession()) { // else they know that
      told.or(ofMessages);
      unanswered.forEach(inquiry -> told.set(inquiry.peer()));
    }
    told.stream().forEach(this::tellClosed);
  }

  void tellClosed(int peer) {
    if (!engine.isKept()) {
      return; // this rank leaves with its last one, which the session says
    }
    try {
      engine.control(context.worldRank(peer), Frame.word(Frame.CLOSED, 0, 0, context.id()), 0);
    } catch (TransportFailedException _) {
      // then they hear that this rank is gone
    }
  }
}
