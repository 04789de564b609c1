package org.comm4j.core.engine;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;
import org.comm4j.api.Operation;
import org.comm4j.api.PointToPoint.Send;
import org.jspecify.annotations.Nullable;

/// The messages between two ranks of one communicator: matches those that come with receives, in
/// the order in which both were started. Guarded by the engine's lock.
///
/// Messages of one sender are numbered. A large one that waits for room may be overtaken on the
/// wire by a small one, so they are announced here in the order of their numbers.
final class Messages {
  // A message to oneself up to this size is buffered; a larger send waits for its receive.
  private static final long MOST_BUFFERED_BYTES = 64 << 10;

  private final Context context;
  private final PeerTable<long[]> numbers; // {next to send, next to announce} per peer
  private final List<ReceiveCall> posted = new ArrayList<>();
  private final List<Message> unexpected = new ArrayList<>();
  private final Map<Message.Key, Message> arriving = new HashMap<>();

  Messages(Context context) {
    this.context = context;
    this.numbers = new PeerTable<>(context.size(), _ -> new long[2]);
  }

  static boolean accepts(int source, int tag, Message message) {
    // the library's own messages have tags above the user's
    return (source == Communicator.ANY_SOURCE || source == message.source())
        && (tag == message.tag()
            || (tag == Communicator.ANY_TAG && message.tag() <= Communicator.MAX_TAG));
  }

  static String any(int number) {
    return number < 0 ? "any" : Integer.toString(number);
  }

  SendCall send(Operation operation, Send send, @Nullable Thread boundTo) {
    long number = numbers.get(send.destination())[0]++;
    SendCall call = new SendCall(context, operation, send, number, boundTo);
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
    if (data.byteSize() > link.maxPayloadBytes() || !link.hasCredit(cost)) {
      return false;
    }
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
    if (call.data().byteSize() <= MOST_BUFFERED_BYTES && !context.engine().sendsSynchronously()) {
      message.keep(call.data(), false);
      call.complete(null);
    } else {
      message.local(call);
    }
    announce(message);
  }

  void post(ReceiveCall call) {
    for (int i = 0; i < unexpected.size(); i++) {
      Message message = unexpected.get(i);
      if (call.accepts(message)) {
        unexpected.remove(i);
        call.match(message);
        call.advance();
        return;
      }
    }
    posted.add(call);
  }

  void forget(ReceiveCall call) {
    posted.remove(call);
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

  /// Takes a message without content, if it was sent.
  boolean take(int source, int tag) {
    Message message = find(source, tag);
    if (message == null) {
      return false;
    }
    unexpected.remove(message);
    giveBack(message);
    if (message.takeRequest()) { // for room, of which it needs none
      grant(message);
    }
    return true;
  }

  void grant(Message message) {
    context
        .engine()
        .control(
            context.worldRank(message.source()),
            Frame.word(Frame.GRANT_MESSAGE, 0, message.tag(), context.id()),
            message.number());
  }

  /// A payload, or with `request` the announcement of a message that waits to be asked for.
  ///
  /// @return whether the payload was kept
  boolean deliver(
      int source,
      int tag,
      long number,
      int typeId,
      long count,
      MemorySegment payload,
      boolean request,
      boolean credited) {
    long[] next = numbers.get(source);
    DataType type = DataType.ofId(typeId);
    if (number == next[1] && !request && payload.byteSize() == type.bytes(count)) {
      next[1]++; // all of it at once, and in its turn: as most messages
      Message whole = new Message(source, number, tag, type, count);
      announce(whole);
      whole.arrived(payload.byteSize());
      boolean taken = take(whole, payload, credited);
      announceInOrder(source);
      return !taken;
    }
    Message.Key key = new Message.Key(source, number);
    Message message = arriving.get(key);
    boolean fresh = message == null;
    if (message == null) {
      message = new Message(source, number, tag, type, count);
      arriving.put(key, message);
    }
    if (fresh) {
      announceInOrder(source);
    }
    boolean kept = false;
    if (request) {
      message.request();
    } else {
      message.arrived(payload.byteSize());
      kept = !take(message, payload, credited);
    }
    if (message.hasArrived() && number < numbers.get(source)[1]) {
      arriving.remove(key);
    }
    if (request && message.receiver() != null) {
      message.receiver().advance();
    }
    return kept;
  }

  private boolean take(Message message, MemorySegment payload, boolean credited) {
    ReceiveCall receiver = message.receiver();
    if (receiver != null && receiver.isHere() && !message.hasPayloads()) {
      receiver.take(message, payload);
      return true;
    }
    message.keep(payload, credited);
    if (receiver != null) {
      context.engine().wake(receiver); // its thread alone may take it
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
        call.advance();
        return;
      }
    }
    unexpected.add(message);
  }

  /// Credit for everything that was kept and will not be received.
  void drop() {
    unexpected.forEach(this::giveBack);
    arriving.values().forEach(this::giveBack);
    unexpected.removeIf(message -> message.tag() <= Communicator.MAX_TAG); // see take()
    arriving.clear();
    posted.clear();
  }

  private void giveBack(Message message) {
    for (Early.Payload payload = message.nextPayload();
        payload != null;
        payload = message.nextPayload()) {
      if (payload.credited()) {
        context.engine().owe(context.worldRank(message.source()), payload.bytes().length);
      }
    }
  }

  /// For tests and reports: how many messages nobody has received yet.
  int waiting() {
    return unexpected.size();
  }
}
