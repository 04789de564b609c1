package org.comm4j.backend.mpi;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.comm4j.api.Capabilities;
import org.comm4j.api.Capability;

/// What communicators of this backend can do, and which rules they can't keep.
final class Abilities {
  /// Whatever the settings are.
  static final Set<Capability> USUAL =
      Set.of(
          Capability.SPLIT,
          Capability.POINT_TO_POINT,
          Capability.USER_DEFINED_OPERATORS,
          Capability.EPILOGUE,
          Capability.ORDERED_REDUCTION,
          Capability.SHARED_MEMORY,
          Capability.HOST_MEMORY);

  private static final String BLOCKING =
      "calls wait in the library's blocking functions (COMM_MPI_WAIT=native); a watchdog ends the"
          + " job at the deadline, and where a call needs a rank that is gone";
  private static final String UNCHECKED =
      "the library's calls carry no fingerprint; COMM_CHECK=full adds an agreement to each";
  private static final String LAUNCHER = "the launcher ends all processes of the job when one dies";

  private Abilities() {}

  /// Why there is no shrink.
  static String noShrink() {
    MpiLibrary library = Functions.library();
    return "shrink: %s %s; catch the failure, end the job and start it again"
        .formatted(
            library.version(),
            library.features().contains(MpiLibrary.Feature.FAULT_TOLERANCE)
                ? "exports MPIX_Comm_shrink, but MPICH 4.0, the only such library tried, did not pass"
                    + " the test that kills one rank: the others wait for it, and MPIX_Comm_revoke"
                    + " ends their processes"
                : "has no MPIX_Comm_shrink, and its launcher ends a job when one of its processes"
                    + " dies");
  }

  /// Why there is no shared memory where there should be.
  static String notShared() {
    return "createRegion: %s does not share memory between all ranks of a host (MPI_COMM_TYPE_SHARED); see what keeps it from that, for example MPIR_CVAR_NOLOCAL or containers, or use --backend shm on one host"
        .formatted(Functions.library().version());
  }

  static Capabilities of(MpiJob job) {
    EnumSet<Capability> supported = EnumSet.copyOf(USUAL);
    if (!job.sharesMemory()) {
      supported.remove(Capability.SHARED_MEMORY);
    }
    Map<String, String> deviations = new TreeMap<>();
    deviations.put("D17", "the library keeps addresses: memory must stay until the call has ended");
    deviations.put("F5", LAUNCHER);
    deviations.put("F8", LAUNCHER);
    deviations.put("F13", "the library does not tell who has freed a communicator");
    deviations.put(
        "P13", "the library decides how much memory messages take that nobody receives yet");
    if (job.waitsInLibrary()) {
      for (String rule : Set.of("F4", "F6", "F9", "F11", "F12", "L3", "L4", "P7", "T14")) {
        deviations.put(rule, BLOCKING);
      }
    }
    if (job.isFullyChecked()) {
      supported.add(Capability.MISMATCH_DETECTION);
    } else {
      for (String rule : Set.of("M1", "M2", "M3", "M4", "M5", "M6", "M7")) {
        deviations.put(rule, UNCHECKED);
      }
      deviations.putIfAbsent("F4", "who is late is known for sure with COMM_CHECK=full alone");
    }
    return new Capabilities(supported, deviations);
  }
}
