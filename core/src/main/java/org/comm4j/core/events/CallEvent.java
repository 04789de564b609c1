package org.comm4j.core.events;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/// One call of one rank, from when its arguments had been checked until it was found ended. Its
/// name and fields are what users' settings and queries refer to.
///
/// Off unless asked for, and without a stack trace, since a program may make a million calls a
/// second. Settings of a recording change both, and its threshold leaves out short calls.
@Name("org.comm4j.Call")
@Label("Collective or Message")
@Category("comm4j")
@Description("A collective call, message or probe of one rank")
@Enabled(false)
@StackTrace(false)
final class CallEvent extends Event {
  @Label("Communicator")
  @Nullable String communicator;

  @Label("Rank")
  @Description("The rank in that communicator")
  int rank;

  @Label("Operation")
  @Nullable String operation;

  @Label("Bytes")
  @Description("Of the memory that this rank gave or got, whichever is more")
  @DataAmount
  long bytes;

  @Label("Failure")
  @Description("What the call threw, if anything")
  @Nullable String failure;
}
