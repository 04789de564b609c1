import org.jspecify.annotations.NullMarked;

/// Session, transport-independent collectives, kernels, selection, simulated network.
@NullMarked
module org.comm4j.core {
  requires transitive org.comm4j.api;
  requires static jdk.incubator.vector;
  requires static org.jspecify;
}
