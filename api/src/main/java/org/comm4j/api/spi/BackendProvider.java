package org.comm4j.api.spi;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.comm4j.api.Advice;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.jspecify.annotations.Nullable;

/// A backend as discovery sees it. Found by [java.util.ServiceLoader]; has a public constructor
/// without parameters that does nothing. Thread-safe.
///
/// Everything but [#meet], [#open], [#launch], [#launcher], [#removeRemains], [#checkOptions] and
/// [#explain] is for listings: it never throws, loads no native code, opens no socket and writes no
/// file. [#availability], [#details] and [#advice] are asked only where [#checkOptions] has refused
/// nothing.
public interface BackendProvider {
  /// {@return the backend's name, as `COMM_BACKEND` and `--backend` give it: lower-case letters,
  /// digits and dashes, starting with a letter} Unique on the class path.
  String name();

  /// {@return the backend's version, for people}
  String version();

  /// {@return what its ranks are}
  RankKind rankKind();

  /// {@return whether [#launch] makes groups of threads} Where ranks are processes it may do that
  /// too, for programs that drive several devices from one.
  default boolean launchesThreads() {
    return rankKind() == RankKind.THREADS;
  }

  /// {@return how much `auto` prefers it among usable backends; the larger one wins, 0..100} Shared
  /// memory of one host is 60, a network 40, threads 50.
  int priority();

  /// {@return what it reaches, in a few words, for example `processes of one host`}
  String reaches();

  /// {@return what its communicators can do when all is well}
  Set<Capability> capabilities();

  /// {@return the environment variables of its own that it understands, without the prefix
  /// `COMM_<NAME>_`} Others with that prefix are refused. A value must be the same on all ranks, or
  /// none joins, unless the name's last word says that it is of one host: `ADDRESS`, `DEVICE`,
  /// `DIR`, `DIRECTORY`, `FILE`, `HOST`, `INTERFACE`, `LAUNCHER`, `LIBRARY`, `NVRTC`, `PATH`,
  /// `PORT` or `PORTS`.
  default Set<String> options() {
    return Set.of();
  }

  /// Refuses values of its [#options()] that are not valid, also where another backend is used:
  /// whoever sets one means something by it. Listings show what it refuses. Looks at the text only,
  /// with [OptionText]. Where the backend is asked for by name it may refuse lines of its own in
  /// the tuning file, too.
  ///
  /// @param config the configuration of this process
  /// @throws IllegalArgumentException naming variable, value, what was expected and what to do
  default void checkOptions(CommConfig config) {}

  /// {@return whether it can be used on this host, judged by looking only} Asked for listings, and
  /// where the backend may be used: for its name or for `auto`.
  ///
  /// @param config the configuration of this process
  Availability availability(CommConfig config);

  /// {@return what else listings show of it on this host: texts by short names, in the order in
  /// which to show them, for example which library it uses} Asked for listings alone.
  ///
  /// @param config the configuration of this process
  default Map<String, String> details(CommConfig config) {
    return Map.of();
  }

  /// {@return what it would like to be otherwise on this host, and what to do about it} Each costs
  /// the user something: speed, or ranks that there is no space for. What keeps the backend from
  /// working at all belongs in [#availability].
  ///
  /// @param config the configuration of this process
  default List<Advice> advice(CommConfig config) {
    return List.of();
  }

  /// Finds a place for the ranks of a launch to meet, where their launcher has named none that all
  /// of them reach and the backend can talk to them without a session. All ranks call it at once,
  /// before they join; it may load native code, and wait for the others without a deadline.
  ///
  /// @param launch of several processes: without an address, and without a session's name or on
  ///   several hosts; or, if the backend was asked for by name, with an address and no secret
  /// @return the same with a place, and with a secret where other hosts reach it; empty where the
  ///   backend knows none
  /// @throws org.comm4j.api.CommException if it should and can't
  default Optional<CommConfig> meet(CommConfig launch) {
    return Optional.empty();
  }

  /// Whether it reaches all ranks of a session; asked after they have joined, before [#open]. A
  /// backend for one host refuses several. Decided from [Session#member] alone, so that every rank
  /// gets the same answer; looks only, as the listing methods.
  ///
  /// @param session joined
  /// @return that it does, or why not and what to do about it
  default Availability connects(Session session) {
    return Availability.ready();
  }

  /// Finds the program that must start this backend's ranks, where they can't be started one by
  /// one. Only asked where the backend was asked for by name; may start programs to look at them.
  ///
  /// @param ranks how many it is to start on this host, at least 1
  /// @param config the configuration of the process that starts them, which is no rank
  /// @return that program, or nothing where ranks are started one by one, as most are
  /// @throws org.comm4j.api.BackendUnavailableException if there must be one and there is none
  default Optional<RankLauncher> launcher(int ranks, CommConfig config) {
    return Optional.empty();
  }

  /// Removes from this host what ranks of this user have left that were killed, such as files in
  /// shared memory, but nothing of a process that lives. Who has started ranks calls it when some
  /// of them have failed and all have ended: ranks do so for each other, but all may die at once.
  /// It is called before ranks are started, too: all of the last launch may have been killed. Also
  /// asked where the backend is not available; loads nothing native.
  ///
  /// @param config the configuration of the process that has started them, which is no rank
  default void removeRemains(CommConfig config) {}

  /// Says which way a collective goes, where that is not one of core's plans. Also asked where the
  /// backend is not available; loads nothing native.
  ///
  /// @param operation its label, for example `allReduce`
  /// @param type of the elements
  /// @param op null where nothing is reduced
  /// @param bytes of a rank's buffer
  /// @param ranks how many
  /// @param config what is asked for
  /// @return a sentence without a full stop; empty where core's plans are what happens
  /// @throws IllegalArgumentException if one of its [#options()] has an invalid value, or the
  ///   tuning file can't be read or a line there of this backend is wrong
  default Optional<String> explain(
      String operation,
      DataType type,
      @Nullable ReduceOp op,
      long bytes,
      int ranks,
      CommConfig config) {
    return Optional.empty();
  }

  /// Opens this rank's communicator of all ranks of a session. All ranks call it at once.
  ///
  /// @param session joined; the caller closes it, after the communicator
  /// @param config the configuration of this process
  /// @return this rank's end of the communicator; the caller closes it
  /// @throws org.comm4j.api.CommException if it can't be opened
  /// @throws org.comm4j.api.UnsupportedException from a backend whose ranks are threads, which
  ///   leaves it at that
  default BackendCommunicator open(Session session, CommConfig config) {
    throw new org.comm4j.api.UnsupportedException(
        "backend '" + name() + "': its ranks are threads; use LocalGroup or comm-cli run");
  }

  /// Makes a group whose ranks are threads of this JVM.
  ///
  /// @param size how many ranks, at least 1
  /// @param config the configuration of this process
  /// @return the group; the caller closes it
  /// @throws org.comm4j.api.CommException if it can't be opened
  /// @throws org.comm4j.api.UnsupportedException from a backend whose ranks are processes alone,
  ///   which leaves it at that
  default RankGroup launch(int size, CommConfig config) {
    throw new org.comm4j.api.UnsupportedException(
        "backend '" + name() + "': its ranks are processes; start them with comm-cli run");
  }
}
