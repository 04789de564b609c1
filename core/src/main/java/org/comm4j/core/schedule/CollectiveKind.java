package org.comm4j.core.schedule;

import java.util.Locale;
import org.comm4j.api.Collective;

/// The collectives as names: for plans, selection, fingerprints and the command line. The order
/// never changes, the ordinals go over the wire.
public enum CollectiveKind {
  BARRIER,
  BROADCAST,
  REDUCE,
  ALL_REDUCE,
  GATHER,
  GATHER_V,
  ALL_GATHER,
  ALL_GATHER_V,
  SCATTER,
  SCATTER_V,
  REDUCE_SCATTER,
  REDUCE_SCATTER_V,
  ALL_TO_ALL,
  ALL_TO_ALL_V,
  SCAN,
  EXCLUSIVE_SCAN;

  /// The kind of a call.
  public static CollectiveKind of(Collective call) {
    return switch (call) {
      case Collective.Barrier _ -> BARRIER;
      case Collective.Broadcast _ -> BROADCAST;
      case Collective.Reduce _ -> REDUCE;
      case Collective.AllReduce _ -> ALL_REDUCE;
      case Collective.Gather _ -> GATHER;
      case Collective.GatherV _ -> GATHER_V;
      case Collective.AllGather _ -> ALL_GATHER;
      case Collective.AllGatherV _ -> ALL_GATHER_V;
      case Collective.Scatter _ -> SCATTER;
      case Collective.ScatterV _ -> SCATTER_V;
      case Collective.ReduceScatter _ -> REDUCE_SCATTER;
      case Collective.ReduceScatterV _ -> REDUCE_SCATTER_V;
      case Collective.AllToAll _ -> ALL_TO_ALL;
      case Collective.AllToAllV _ -> ALL_TO_ALL_V;
      case Collective.Scan _ -> SCAN;
      case Collective.ExclusiveScan _ -> EXCLUSIVE_SCAN;
    };
  }

  /// Whether it combines elements of several ranks.
  public boolean isReducing() {
    return switch (this) {
      case REDUCE, ALL_REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_V, SCAN, EXCLUSIVE_SCAN -> true;
      case BARRIER,
          BROADCAST,
          ALL_GATHER,
          ALL_GATHER_V,
          GATHER,
          GATHER_V,
          SCATTER,
          SCATTER_V,
          ALL_TO_ALL,
          ALL_TO_ALL_V ->
          false;
    };
  }

  /// Whether one of its ranks is the root.
  public boolean isRooted() {
    return switch (this) {
      case BROADCAST, REDUCE, GATHER, GATHER_V, SCATTER, SCATTER_V -> true;
      case BARRIER,
          ALL_REDUCE,
          ALL_GATHER,
          ALL_GATHER_V,
          REDUCE_SCATTER,
          REDUCE_SCATTER_V,
          ALL_TO_ALL,
          ALL_TO_ALL_V,
          SCAN,
          EXCLUSIVE_SCAN ->
          false;
    };
  }

  /// Whether ranks may have different counts, and none need know those of all.
  public boolean isVaried() {
    return switch (this) {
      case GATHER_V, SCATTER_V, ALL_TO_ALL_V -> true;
      case BARRIER,
          BROADCAST,
          REDUCE,
          ALL_REDUCE,
          GATHER,
          ALL_GATHER,
          ALL_GATHER_V,
          SCATTER,
          REDUCE_SCATTER,
          REDUCE_SCATTER_V,
          ALL_TO_ALL,
          SCAN,
          EXCLUSIVE_SCAN ->
          false;
    };
  }

  /// The name as the API's method has it, for example `allReduce`.
  public String label() {
    StringBuilder label = new StringBuilder();
    for (String word : name().split("_", -1)) {
      label.append(
          label.isEmpty()
              ? word.toLowerCase(Locale.ROOT)
              : word.charAt(0) + word.substring(1).toLowerCase(Locale.ROOT));
    }
    return label.toString();
  }
}
