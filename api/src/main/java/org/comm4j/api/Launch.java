package org.comm4j.api;

import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/// What one launcher says of this process.
///
/// @param launcher the convention's name
/// @param rank in `0..size-1`
/// @param size at least 1
/// @param agents how many processes of the launcher started the ranks, where it says so; another
///   launcher may have started these
/// @param variables that were read
record Launch(
    String launcher,
    Variable rank,
    Variable size,
    OptionalInt localRank,
    OptionalInt localSize,
    OptionalInt nodeRank,
    Optional<String> address,
    OptionalInt port,
    Optional<String> session,
    OptionalInt agents,
    List<String> variables) {

  /// A number and where it stands.
  record Variable(String name, int value) {}

  void into(CommConfig.Builder builder) {
    builder.rank(rank.value()).worldSize(size.value()).launcher(launcher, variables);
    localRank.ifPresent(builder::localRank);
    localSize.ifPresent(builder::localWorldSize);
    nodeRank.ifPresent(builder::nodeRank);
    address.ifPresent(builder::masterAddress);
    port.ifPresent(builder::masterPort);
    session.ifPresent(builder::session);
  }

  boolean isOfSameRank(Launch other) {
    return rank.value() == other.rank.value() && size.value() == other.size.value();
  }

  /// Refuses what another launcher says of the same process, unless that one started this one.
  void checkAgrees(Launch other) {
    if (other.startedAgentsOf(this)) {
      return;
    }
    if (rank.value() != other.rank.value()) {
      throw contradiction(rank, other, other.rank);
    }
    if (size.value() != other.size.value()) {
      throw contradiction(size, other, other.size);
    }
  }

  private boolean startedAgentsOf(Launch inner) {
    int tasks = size.value();
    if (tasks == 1) {
      return true;
    }
    if (inner.agents.isPresent()) {
      return inner.agents.getAsInt() == tasks;
    }
    // mpirun and mpiexec start a daemon on each host by srun; ranks inherit that step's variables.
    return launcher.equals(Launchers.SLURM)
        && (inner.launcher.equals(Launchers.OPEN_MPI) || inner.launcher.equals(Launchers.PMI))
        && tasks != inner.size.value();
  }

  private IllegalArgumentException contradiction(Variable mine, Launch other, Variable theirs) {
    return new IllegalArgumentException(
        ("%s is %d but %s is %d (expected: one answer; %s says rank %d of %d, %s says rank %d of"
                + " %d); unset the variables of the launcher that did not start this process")
            .formatted(
                mine.name(),
                mine.value(),
                theirs.name(),
                theirs.value(),
                launcher,
                rank.value(),
                size.value(),
                other.launcher,
                other.rank.value(),
                other.size.value()));
  }
}
