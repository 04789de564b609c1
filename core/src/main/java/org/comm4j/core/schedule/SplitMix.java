package org.comm4j.core.schedule;

/// The mixing function of the SplitMix64 generator (Steele, Lea and Flood, 2014).
public final class SplitMix {
  private SplitMix() {}

  /// {@return a number each bit of which depends on each bit of the value} Different values have
  /// different ones. To take further values in, mix the last result ^ the next value.
  public static long mixed(long value) {
    long mixed = value + 0x9e37_79b9_7f4a_7c15L;
    mixed = (mixed ^ mixed >>> 30) * 0xbf58_476d_1ce4_e5b9L;
    mixed = (mixed ^ mixed >>> 27) * 0x94d0_49bb_1331_11ebL;
    return mixed ^ mixed >>> 31;
  }
}
