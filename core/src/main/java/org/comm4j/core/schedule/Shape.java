package org.comm4j.core.schedule;

import org.comm4j.api.Partition;
import org.jspecify.annotations.Nullable;

/// What a plan depends on: everything about a collective that all ranks know, and no memory.
///
/// `count` is, per kind: ALL_REDUCE, REDUCE, BROADCAST, SCAN, EXCLUSIVE_SCAN the elements of a
/// buffer; GATHER, ALL_GATHER what each rank contributes; SCATTER, REDUCE_SCATTER what each rank
/// gets; ALL_TO_ALL what each rank sends to each; GATHER_V, SCATTER_V this rank's own part; 0 for
/// the rest.
///
/// @param kind which collective
/// @param size how many ranks
/// @param count see above
/// @param root of a rooted collective, else 0
/// @param parts of ALL_GATHER_V, REDUCE_SCATTER_V; of GATHER_V and SCATTER_V on the root; what this
///   rank sends in ALL_TO_ALL_V; else null
/// @param receiveParts what this rank receives in ALL_TO_ALL_V, else null
/// @param valueBytes size of an element
/// @param accumulatorBytes size of an element in the accumulation type
/// @param widened whether the accumulation type differs from the data's type
/// @param ordered whether the result must be the left fold over ranks; always for user-defined
///   operators
/// @param windowBytes how much one rank can publish in one stage; 0 where not every rank can read
///   every other one's memory
/// @param hosts who shares memory, where some ranks do and some don't; else null
public record Shape(
    CollectiveKind kind,
    int size,
    long count,
    int root,
    @Nullable Partition parts,
    @Nullable Partition receiveParts,
    int valueBytes,
    int accumulatorBytes,
    boolean widened,
    boolean ordered,
    long windowBytes,
    @Nullable Hosts hosts) {

  /// What partial results travel as: values where they have the same type, else accumulators.
  public Step.Wire accumulatorWire() {
    return widened ? Step.Wire.ACCUMULATOR : Step.Wire.VALUE;
  }

  /// How much one rank can publish in one stage to those that can read its memory.
  public long stageBytes() {
    return hosts == null ? windowBytes : hosts.windowBytes();
  }

  /// The bytes that one rank's buffer has: what selection goes by.
  public long bytes() {
    return count * valueBytes;
  }
}
