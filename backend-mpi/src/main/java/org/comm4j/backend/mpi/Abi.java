package org.comm4j.backend.mpi;

/// The binary interfaces that MPI libraries have: what handles, constants and structures look like.
enum Abi {
  /// Open MPI 4 and 5: handles are addresses of objects that the library exports.
  OPEN_MPI,
  /// MPICH and what keeps its interface (Intel MPI, MVAPICH, Cray MPICH): handles are 32-bit
  /// numbers.
  MPICH,
  /// The standard's own interface, from MPI 5.0 on (`libmpi_abi`): handles are pointers with fixed
  /// values.
  STANDARD
}
