import org.jspecify.annotations.NullMarked;

/// Ranks of an MPI job (`mpi`), through whatever MPI library is installed.
@NullMarked
module org.comm4j.backend.mpi {
  requires java.management;
  requires org.comm4j.core;
  requires static org.jspecify;

  provides org.comm4j.api.spi.BackendProvider with
      org.comm4j.backend.mpi.MpiProvider;
}
