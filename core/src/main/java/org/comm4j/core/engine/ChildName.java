package org.comm4j.core.engine;

/// What a communicator that is made of another one is called, the same on all its ranks:
/// `world/split-3/copy-7`.
///
/// A program may make each of the one before, for ever, and what tells the others why one broke has
/// room for so many words: of a long name the first part stays and the last, `world/…/shrunk-500`.
public final class ChildName {
  private static final int LONGEST_PARENT = 100;

  private ChildName() {}

  /// Makes the name.
  ///
  /// @param parent the other one's name
  /// @param label how it is made of that
  /// @param number distinguishes it from what else is made so
  public static String of(String parent, String label, long number) {
    int first = parent.indexOf('/');
    boolean isLong = parent.length() > LONGEST_PARENT && first >= 0;
    String from = isLong ? parent.substring(0, first) + "/…" : parent;
    return from + "/" + label + "-" + number;
  }
}
