/// Ranks of an MPI job: the communicator of [MpiProvider] hands calls to the MPI library, and folds
/// with comm4j's own kernels what the library's operators would combine by other rules.
package org.comm4j.backend.mpi;
