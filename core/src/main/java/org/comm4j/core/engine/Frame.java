package org.comm4j.core.engine;

import org.comm4j.core.transport.Transport;

/// The header of a payload on the wire: five longs.
///
///     0  kind (4 bits), flags (1), aux (20), context (39)
///     1  sequence: of a collective its number in the context, of a message its number from this
///        sender to this receiver; of CREDIT the bytes given back; of RETURN the number of a loan
///     2  what is called (CallSignature#what); of a message its type
///     3  how many elements: of the call, or where ranks may differ of this message
///     4  details that must agree (CallSignature#detail); of REQUEST_MESSAGE where the receiver may read
///        the message, see below
///
/// `aux` is the number of a message within its collective (per sender and receiver), or a tag.
///
/// A payload may come before its receiver is ready. How much of that there can be is bounded: each
/// sender has a credit of bytes per receiver, spent by payloads that are sent unasked and given back
/// by CREDIT when they are consumed. Who runs out of it sends a REQUEST for its message, which costs
/// nothing, and goes on when GRANTed, that is when the receiver has a place for the rest of it. So no
/// receiver ever has to leave a payload in the transport, and none can block another behind it.
///
/// A long message that its receiver can read where it lies is requested at once, with its place ([Offers]).
/// The receiver copies it from there instead of granting it, and says so with READ. Was the memory still the
/// message's when it was read? A sender that takes it back unread has said so in its window before. Who finds
/// no such word has the message; else, and where the request says that the sender may not know in time
/// (CONFIRMED), the sender answers KEPT.
///
/// A collective that gets nowhere for a while asks those that it waits for with an INQUIRY, which has
/// what it calls. Who has started that collective too compares, and answers with PRESENT frames, one for
/// each rank that it waits for itself (in `what`, else -1; numbered in `count`), others when they come.
/// So ranks that disagree find out even where neither sends the other anything, and at the deadline it is
/// known who has not come. A receive asks its sender in the same way, with no number. Who has closed the
/// communicator, or closes it afterwards, answers CLOSED, behind all that it has sent: who still needs it
/// then, needs it in vain. Who shrinks asks with the number -1, which is answered also by who has closed it
/// when it was broken; others hear why from the session.
///
/// With RETURN a rank gives back what it was lent of the receiver's window ([Loans]); as CREDIT it belongs
/// to no context.
final class Frame {
  static final int COLLECTIVE = 1;
  static final int MESSAGE = 2;
  static final int REQUEST_COLLECTIVE = 3;
  static final int REQUEST_MESSAGE = 4;
  static final int GRANT_COLLECTIVE = 5;
  static final int GRANT_MESSAGE = 6;
  static final int CREDIT = 7;
  static final int INQUIRY = 8;
  static final int PRESENT = 9;
  static final int RETURN = 10;
  static final int CLOSED = 11;
  static final int READ_MESSAGE = 12;
  static final int KEPT_MESSAGE = 13;

  /// The sender spent credit on this payload.
  static final int CREDITED = 1;

  /// Of a REQUEST_MESSAGE: its READ is answered.
  static final int CONFIRMED = 1;

  private static final int CONTEXT_BITS = 39;
  private static final int AUX_BITS = 20;
  private static final int FLAGS_AT = CONTEXT_BITS + AUX_BITS;
  private static final int KIND_AT = FLAGS_AT + 1;
  private static final long AUX_MASK = (1L << AUX_BITS) - 1;

  static final long LAST_CONTEXT = (1L << CONTEXT_BITS) - 1;

  private Frame() {}

  static long word(int kind, int flags, long aux, long context) {
    return (long) kind << KIND_AT
        | (long) flags << FLAGS_AT
        | (aux & AUX_MASK) << CONTEXT_BITS
        | context;
  }

  /// What `aux` makes of a count that may be greater: messages that are under way at the same time
  /// are never so far apart.
  static int aux(int count) {
    return count & (int) AUX_MASK;
  }

  static int kind(long word) {
    return (int) (word >>> KIND_AT);
  }

  /// Whether a frame's sequence number is that of a message, and not of a collective.
  static boolean isOfMessage(long[] header) {
    return switch (kind(word(header))) {
      case MESSAGE, REQUEST_MESSAGE, GRANT_MESSAGE, READ_MESSAGE, KEPT_MESSAGE -> true;
      default -> false;
    };
  }

  static boolean isCredited(long word) {
    return kind(word) != REQUEST_MESSAGE && (word >>> FLAGS_AT & CREDITED) != 0;
  }

  static boolean isConfirmed(long word) {
    return (word >>> FLAGS_AT & CONFIRMED) != 0;
  }

  static int aux(long word) {
    return (int) (word >>> CONTEXT_BITS & AUX_MASK);
  }

  static long context(long word) {
    return word & LAST_CONTEXT;
  }

  static void write(long[] header, long word, long sequence, long what, long count, long detail) {
    header[0] = word;
    header[1] = sequence;
    header[2] = what;
    header[3] = count;
    header[4] = detail;
  }

  static long word(long[] header) {
    return header[0];
  }

  static long sequence(long[] header) {
    return header[1];
  }

  static long what(long[] header) {
    return header[2];
  }

  static long count(long[] header) {
    return header[3];
  }

  static long detail(long[] header) {
    return header[4];
  }

  /// What a payload costs: empty ones are bounded too.
  static long cost(long payloadBytes) {
    return Transport.HEADER_BYTES + payloadBytes;
  }
}
