package org.comm4j.core.schedule;

/// One thing that one rank does in a [Round].
///
/// An element type is never named: a slice of [Space#WORK] is in the accumulation type, any other
/// in the data's type, and what goes over the wire has the type of the slice that is sent ([Wire]
/// on the receiving side). Converting to the accumulation type is exact; only [Finish] and
/// [FinishPeer] round.
public sealed interface Step {
  /// The type of what arrives.
  enum Wire {
    /// The data's type.
    VALUE,
    /// The accumulation type.
    ACCUMULATOR
  }

  /// A step that moves data of this rank only.
  sealed interface Local extends Step {}

  /// A step that sends or receives a message.
  sealed interface Message extends Step {
    /// The other rank.
    int peer();
  }

  /// A message that arrives for a slice, sent in the type that the wire says.
  sealed interface Arriving extends Message {
    Slice to();

    Wire wire();
  }

  /// A step on memory that peers publish.
  sealed interface Peer extends Step {}

  /// A step that reads what a peer has published, after [AwaitPeer]. `from` is the first element of
  /// that, counted from the published slice's start; `wire` is the type in which it was published.
  sealed interface Reading extends Peer {
    int peer();

    int stage();

    long from();

    Slice to();

    Wire wire();
  }

  /// Copies; widens where `to` is in the accumulation type and `from` is not.
  record Copy(Slice from, Slice to) implements Local {}

  /// `to = to ∘ from`, with `to` from lower ranks; widens where `to` is in the accumulation type
  /// and `from` is not.
  record Reduce(Slice from, Slice to) implements Local {}

  /// Ends a reduction: divides for an average, rounds to the data's type. Nothing to do for most
  /// operators where both slices are the same memory and type.
  ///
  /// @param from the complete reduction; in WORK, or anywhere if the two types are equal
  /// @param to in the data's type
  /// @param divisor how many contributions there are
  record Finish(Slice from, Slice to, int divisor) implements Local {}

  /// Sends a slice to a peer. Messages of one pair are received in the order in which they are
  /// sent.
  record Send(int peer, Slice slice) implements Message {}

  /// Receives a slice; widens where it is in WORK and the wire carries values.
  record Receive(int peer, Slice to, Wire wire) implements Arriving {}

  /// `to = to ∘ received`; widens where `to` is in WORK and the wire carries values.
  record ReceiveReduce(int peer, Slice to, Wire wire) implements Arriving {}

  /// `to = received ∘ to`: as [ReceiveReduce], for data of lower ranks than what is there.
  record ReceiveReduceBefore(int peer, Slice to, Wire wire) implements Arriving {}

  /// `to = own ∘ received`, or `to = received ∘ own`; `own` and `to` are the same elements or none
  /// is in both. Widens where `to` is in WORK and the wire carries values.
  ///
  /// @param own in the type of the wire
  /// @param ownFirst whether the own elements are from lower ranks
  record ReceiveFold(int peer, Slice own, Slice to, Wire wire, boolean ownFirst)
      implements Arriving {}

  /// Lets peers read a slice, in the type it has, until every rank has passed the [Done] of this
  /// stage. Stages are numbered from 0, the same on all ranks; a rank that publishes nothing in a
  /// stage leaves the step out. It waits until every rank has passed the Done of two stages before,
  /// or, with little data, of four.
  ///
  /// What peers read is what the slice holds now, so it is copied into this rank's window: the plan
  /// may write it later. It need not be copied where it is in the window already and will not be
  /// written: the input, except in place, where writing the output writes it.
  record Publish(int stage, Slice slice) implements Peer {}

  /// Waits until a peer has published a stage.
  record AwaitPeer(int peer, int stage) implements Peer {}

  /// Copies from what a peer has published; widens as [Copy] does.
  record ReadPeer(int peer, int stage, long from, Slice to, Wire wire) implements Reading {}

  /// `to = to ∘ published`.
  record ReducePeer(int peer, int stage, long from, Slice to, Wire wire) implements Reading {}

  /// `to = own ∘ published`, or `to = published ∘ own`; `own` and `to` are the same elements or
  /// none is in both. Widens where `to` is in WORK and the wire carries values.
  ///
  /// @param own in the type of the wire
  /// @param ownFirst whether the own elements are from lower ranks
  record FoldPeer(int peer, int stage, long from, Slice own, Slice to, Wire wire, boolean ownFirst)
      implements Reading {}

  /// `to = finish(own ∘ published)`, or `to = finish(published ∘ own)`: as [FoldPeer] and [Finish],
  /// but what both ranks have is not kept in between. `own`, `to` and what was published are in the
  /// data's type; `own` and `to` are the same elements or none is in both.
  ///
  /// @param ownFirst whether the own elements are from lower ranks
  /// @param divisor how many contributions there are
  record FinishPeer(
      int peer, int stage, long from, Slice own, Slice to, boolean ownFirst, int divisor)
      implements Reading {
    @Override
    public Wire wire() {
      return Wire.VALUE;
    }
  }

  /// This rank will read nothing any more of what peers published up to and including this stage.
  /// Every rank has one for every stage, in ascending order, also where it read nothing.
  record Done(int stage) implements Peer {}
}
