package org.comm4j.core.engine;

import static java.util.Objects.requireNonNull;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.PointToPoint.Receive;
import org.comm4j.api.PointToPoint.Send;
import org.comm4j.api.Received;
import org.jspecify.annotations.Nullable;

/// The messages between two ranks of one communicator: matches those that come with receives, in
/// the order in which both were started. Guarded by the engine's lock.
///
/// Messages of one sender are numbered. A large one that waits for room may be overtaken on the
/// wire by a small one, so they are announced here in the order of their numbers.
final class Messages {
  // A message to oneself up to this size is buffered; a larger send waits for its receive.
  private static final long MOST_BUFFERED_BYTES = 64 << 10;
  private static final long MOST_BUFFERED_OF_MINE = 8 << 20;

  private final Context context;
  private final PeerTable<long[]> numbers; // {next to send, next to announce} per peer
  private final List<ReceiveCall> posted = new ArrayList<>();
  private final List<Message> unexpected = new ArrayList<>();
  private final Map<Message.Key, Message> arriving = new HashMap<>();
  private @Nullable Receive awaited; // by the thread that has the lock, after those posted
  private @Nullable Received received; // by that thread
  private @Nullable ReceiveCall begun; // whose message has not come as a whole

  Messages(Context context) {
    this.context = context;
    this.numbers = new PeerTable<>(context.size(), _ -> new long[2]);
  }

  static boolean accepts(int source, int tag, Message message) {
    return accepts(source, tag, message.source(), message.tag());
  }

  static boolean accepts(int source, int tag, int sender, int sentTag) {
    return (source == Communicator.ANY_SOURCE || source == sender)
        && (tag == Communicator.ANY_TAG || tag == sentTag);
  }

  static String any(int number) {
    return number < 0 ? "any" : Integer.toString(number);
  }

  /// @param awaited whether the calling thread waits until it has ended
  SendCall send(Send send, boolean awaited, @Nullable Thread boundTo) {
    long number = numbers.get(send.destination())[0]++;
    SendCall call = new SendCall(context, send, number, awaited, boundTo);
    if (send.destination() == context.rank()) {
      toMyself(call, send, number);
    }
    return call;
  }

  /// Sends a message if it can go unasked, whole and now. It may overtake larger ones.
  boolean sendAtOnce(Send send) {
    Engine engine = context.engine();
    if (send.destination() == context.rank() || engine.sendsSynchronously()) {
      return false;
    }
    MemorySegment data = Buffers.segment(send.data());
    Link link = context.link(send.destination());
    long cost = Frame.cost(data.byteSize());
    Offers offers = engine.offers();
    if (data.byteSize() > link.maxPayloadBytes()
        || (offers != null && offers.mayBeFor(link.peer(), data))) {
      return false;
    }
    return offer(send, link, data, cost)
        // what has come may have made room
        || (engine.poll() && context.failure() == null && offer(send, link, data, cost));
  }

  private boolean offer(Send send, Link link, MemorySegment data, long cost) {
    if (!link.hasCredit(cost)) {
      return false;
    }
    Engine engine = context.engine();
    long[] next = numbers.get(send.destination());
    Frame.write(
        engine.header(),
        Frame.word(Frame.MESSAGE, Frame.CREDITED, send.tag(), context.id()),
        next[0],
        send.data().type().id(),
        send.data().count(),
        0);
    if (!link.offer(engine.header(), data)) {
      return false;
    }
    link.spend(cost);
    next[0]++;
    return true;
  }

  private void toMyself(SendCall call, Send send, long number) {
    Message message =
        new Message(context.rank(), number, send.tag(), send.data().type(), send.data().count());
    message.arrived(call.data().byteSize());
    if (call.data().byteSize() <= MOST_BUFFERED_BYTES
        && context.kept().ofMine() < MOST_BUFFERED_OF_MINE
        && !context.engine().sendsSynchronously()) {
      message.add(context.kept().keepOfMine(call.data()));
      call.complete(null);
    } else {
      message.local(call);
    }
    announce(message);
    wakeWhoWaitsFor(message);
  }

  /// Nothing has come by the transport that would.
  private void wakeWhoWaitsFor(Message message) {
    ReceiveCall receiver = message.receiver();
    if (receiver != null) {
      if (!receiver.hasEnded()) {
        context.engine().waiting().wakeToTake(receiver); // its thread alone may take it
      }
      return;
    }
    for (Call each : context.calls()) {
      if (each instanceof ProbeCall) {
        context.advance(each);
      }
    }
  }

  void post(ReceiveCall call) {
    for (int i = 0; i < unexpected.size(); i++) {
      Message message = unexpected.get(i);
      if (call.accepts(message)) {
        unexpected.remove(i);
        call.match(message);
        context.advance(call);
        return;
      }
    }
    posted.add(call);
  }

  void forget(ReceiveCall call) {
    posted.remove(call);
  }

  /// Begins a receive that is no call in flight: its thread keeps the lock and lets the engine poll
  /// until [#isAwaiting] is false or it has waited enough.
  ///
  /// @return false if its message may have come already
  boolean beginAwaiting(Receive receive) {
    received = null;
    begun = null;
    awaited = find(receive.source(), receive.tag()) == null ? receive : null;
    return awaited != null;
  }

  /// Whether nothing has come for the receive that was begun.
  boolean isAwaiting() {
    return awaited != null;
  }

  /// Ends it.
  ///
  /// @return what was received; null if it has to become a call: [#takeBegun], or if that is null
  ///   too any
  @Nullable Received endAwaiting() {
    awaited = null;
    return received;
  }

  /// The call that the receive became when a part of its message came.
  @Nullable ReceiveCall takeBegun() {
    ReceiveCall call = begun;
    begun = null;
    return call;
  }

  /// The receive that a thread awaits, if a message is for that one.
  private @Nullable Receive awaiting(int source, int tag) {
    Receive receive = awaited;
    if (receive == null || !accepts(receive.source(), receive.tag(), source, tag)) {
      return null;
    }
    for (int i = 0; i < posted.size(); i++) {
      if (posted.get(i).accepts(source, tag)) {
        return null; // it was started before
      }
    }
    return receive;
  }

  /// Takes a whole message, of which no object is made.
  private void takeAwaited(
      Receive receive,
      int source,
      int tag,
      long number,
      DataType type,
      long count,
      MemorySegment payload) {
    awaited = null;
    if (!ReceiveCall.fits(receive, type, count)) {
      throw ReceiveCall.misfit(context, receive, new Message(source, number, tag, type, count));
    }
    MemorySegment.copy(payload, 0, Buffers.segment(receive.data()), 0, payload.byteSize());
    received = new Received(source, tag, count);
  }

  /// Makes a call of it.
  private ReceiveCall begin(Receive receive) {
    awaited = null;
    ReceiveCall call = ReceiveCall.of(context, receive);
    begun = call;
    return call;
  }

  /// The first message that nobody has received and that a probe with these accepts.
  @Nullable Message find(int source, int tag) {
    for (Message message : unexpected) {
      if (accepts(source, tag, message)) {
        return message;
      }
    }
    return null;
  }

  void grant(Message message) {
    context
        .engine()
        .control(
            context.worldRank(message.source()),
            Frame.word(Frame.GRANT_MESSAGE, 0, message.tag(), context.id()),
            message.number());
  }

  /// Tells the sender that all of it has been read where it lies. That was the message if the
  /// sender has not withdrawn anything: else it says what it was ([#kept]).
  ///
  /// @return false if there was no room to tell; a control frame may never leave once this rank,
  ///   which has its message, has closed
  boolean read(Message message) {
    Engine engine = context.engine();
    int owner = context.worldRank(message.source());
    boolean isWhole = // as of now: who withdraws something after it has heard does not confirm this
        !message.isConfirmed() && !requireNonNull(engine.offers()).hasWithdrawn(owner);
    long word = Frame.word(Frame.READ_MESSAGE, 0, message.tag(), context.id());
    Frame.write(engine.header(), word, message.number(), 0, 0, 0);
    if (!context.link(message.source()).offer(engine.header(), Buffers.NOTHING)) {
      return false;
    }
    if (isWhole) {
      arriving.remove(new Message.Key(message.source(), message.number()));
      message.arrived(message.type().bytes(message.count()));
    }
    return true;
  }

  /// A sender has kept its memory as it was until it was read.
  void kept(int source, long number) {
    Message message = arriving.remove(new Message.Key(source, number));
    if (message == null) {
      return; // it was read before the sender withdrew another one
    }
    if (message.receiver() == null) {
      throw new IllegalStateException(
          "rank %d confirms a message %d that nobody has read".formatted(source, number));
    }
    message.arrived(message.type().bytes(message.count()));
    message.receiver().finishIfWhole(message);
  }

  /// A payload, or the announcement of a message that waits to be asked for.
  ///
  /// @return whether the payload was kept
  boolean deliver(int source, long[] header, MemorySegment payload) {
    long word = Frame.word(header);
    boolean request = Frame.kind(word) == Frame.REQUEST_MESSAGE;
    boolean confirmed = Frame.isConfirmed(word);
    boolean credited = Frame.isCredited(word);
    int tag = Frame.aux(word);
    long number = Frame.sequence(header);
    DataType type = DataType.ofId((int) Frame.what(header));
    long count = Frame.count(header);
    long place = Frame.detail(header);
    long[] next = numbers.get(source);
    if (number == next[1] && !request && payload.byteSize() == type.bytes(count)) {
      next[1]++; // all of it at once, and in its turn: as most messages
      boolean taken = takeWhole(source, tag, number, type, count, payload, credited);
      announceInOrder(source);
      return !taken;
    }
    Message.Key key = new Message.Key(source, number);
    Message message = arriving.get(key);
    if (message == null) {
      message = new Message(source, number, tag, type, count);
      arriving.put(key, message);
      announceInOrder(source);
    }
    boolean kept = false;
    if (request) {
      message.request(place, confirmed);
    } else {
      message.arrived(payload.byteSize());
      kept = !take(message, payload, credited);
    }
    if (message.hasArrived() && number < numbers.get(source)[1]) {
      arriving.remove(key);
    }
    ReceiveCall receiver = message.receiver();
    if (request && receiver != null && !context.advance(receiver)) {
      context.engine().waiting().wakeToTake(receiver); // its thread alone may read it
    }
    return kept;
  }

  private boolean takeWhole(
      int source,
      int tag,
      long number,
      DataType type,
      long count,
      MemorySegment payload,
      boolean credited) {
    Receive receive = awaiting(source, tag);
    if (receive != null) {
      takeAwaited(receive, source, tag, number, type, count, payload);
      return true;
    }
    Message whole = new Message(source, number, tag, type, count);
    announce(whole);
    whole.arrived(payload.byteSize());
    return take(whole, payload, credited);
  }

  private boolean take(Message message, MemorySegment payload, boolean credited) {
    ReceiveCall receiver = message.receiver();
    if (receiver != null && receiver.isHere() && !message.hasPayloads()) {
      receiver.take(message, payload);
      return true;
    }
    message.add(context.kept().keep(message.source(), payload, credited));
    if (receiver != null) {
      context.engine().waiting().wakeToTake(receiver); // its thread alone may take it
    }
    return false;
  }

  private void announceInOrder(int source) {
    if (arriving.isEmpty()) {
      return;
    }
    long[] next = numbers.get(source);
    for (Message message = arriving.get(new Message.Key(source, next[1]));
        message != null;
        message = arriving.get(new Message.Key(source, next[1]))) {
      next[1]++;
      announce(message);
      if (message.hasArrived()) {
        arriving.remove(new Message.Key(source, message.number()));
      }
    }
  }

  private void announce(Message message) {
    for (int i = 0; i < posted.size(); i++) {
      ReceiveCall call = posted.get(i);
      if (call.accepts(message)) {
        posted.remove(i);
        call.match(message);
        context.advance(call);
        return;
      }
    }
    Receive receive = awaiting(message.source(), message.tag());
    if (receive != null) {
      ReceiveCall call = begin(receive);
      call.match(message);
      context.advance(call);
      return;
    }
    unexpected.add(message);
  }

  /// Forgets what will not be received.
  void drop() {
    unexpected.clear();
    arriving.clear();
    posted.clear();
    awaited = null;
    begun = null;
  }
}
