package org.comm4j.backend.mpi;

import org.comm4j.api.Communicator;
import org.comm4j.api.DataType;

/// The library's tags: ours in the lower 15 bits, the type of the elements above, so that every
/// message tells its type at no cost.
final class Tags {
  private static final int SHIFT = 15;
  private static final DataType[] TYPES = DataType.values();

  /// Of collectives' own messages: a sender has closed the communicator.
  static final int CLOSED = 1 << SHIFT;

  /// The largest tag there is.
  static final int LARGEST = TYPES.length << SHIFT;

  private Tags() {}

  /// Of the messages of a collective.
  static int ofCall(long number) {
    return (int) number & CLOSED - 1;
  }

  /// The library's tag for a message.
  static int of(int tag, DataType type) {
    return tag == Communicator.ANY_TAG
        ? Functions.constants().anyTag
        : tag | type.ordinal() << SHIFT;
  }

  /// Our tag of a message that has come.
  static int tag(int inLibrary) {
    return inLibrary & (1 << SHIFT) - 1;
  }

  /// What its elements are.
  static DataType type(int inLibrary) {
    return TYPES[inLibrary >>> SHIFT];
  }

  /// The library's number for a source of ours.
  static int source(int source) {
    return source == Communicator.ANY_SOURCE ? Functions.constants().anySource : source;
  }
}
