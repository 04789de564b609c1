package org.comm4j.api;

/// A call as a value: what one rank does in one [Collective] or [PointToPoint] operation.
///
/// Users make operations through [Communicator]'s methods, or make the record themselves and pass
/// it to [Communicator#run], [Communicator#start] or [Communicator#prepare], as often as they like.
/// A record's constructor checks what needs no group; the communicator checks the rest against its
/// rank and size. Backends switch over the records; operations are added in minor releases only, so
/// a backend outside this repository keeps a `default` branch that throws [UnsupportedException].
public sealed interface Operation permits Collective, PointToPoint {
  /// {@return the operation's name as errors and the command line show it, for example `allReduce`}
  String label();
}
