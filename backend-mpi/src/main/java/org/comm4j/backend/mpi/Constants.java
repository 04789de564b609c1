package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;

/// What `mpi.h` says under one [Abi]: handles, special addresses and ranks, the status's layout and
/// the error classes. Immutable, for any thread.
///
/// A handle is carried as a `long` under every interface: a pointer of Open MPI or of the
/// standard's interface, or MPICH's number, not sign-extended. An address (`inPlace` and its like)
/// is one too. Open MPI's handles are read from the loaded library, the rest is written here: a row
/// of the constructor is Open MPI, MPICH, standard.
///
/// MPI Forum: MPI 5.0, appendix A, for the standard's interface; each library's `mpi.h` for the
/// others.
final class Constants {
  /// What an error class is when the interface has none: no error class is negative.
  static final int NONE = -1;

  /// Every interface's code for success.
  static final int SUCCESS = 0;

  final Abi abi;

  /// How long a handle is: 4 or 8 bytes.
  final int handleBytes;

  final long commWorld;
  final long commSelf;
  final long commNull;
  final long requestNull;
  final long infoNull;
  final long winNull;
  final long errorsReturn;
  final long datatypeNull;
  final long byteType;

  /// Addresses that stand for something else than memory.
  final long inPlace;

  final long statusIgnore;
  final long statusesIgnore;

  final int anySource;
  final int anyTag;
  final int procNull;
  final int undefined;
  final int commTypeShared;
  final int threadSingle;
  final int threadFunneled;
  final int threadSerialized;
  final int threadMultiple;

  /// The attribute of a communicator that tells the largest tag.
  final int tagUb;

  /// Lengths in bytes, the terminating zero included.
  final int maxErrorString;

  final int maxLibraryVersionString;

  final int lockShared;
  final int modeNocheck;

  /// `MPI_Status`: its size and where its three public fields of 32 bits are. What else it holds is
  /// read by functions (`MPI_Get_count`, `MPI_Test_cancelled`).
  final int statusBytes;

  final int statusSourceOffset;
  final int statusTagOffset;
  final int statusErrorOffset;

  /// Error classes, as `MPI_Error_class` gives them: a code that a call returns may be another
  /// number.
  final int errCount;

  final int errComm;
  final int errTruncate;
  final int errOther;
  final int errPending;
  final int errInStatus;
  final int errNoMem;

  /// Fault tolerance's classes; [#NONE] under the standard's interface, which does not name them.
  final int errProcFailed;

  final int errProcFailedPending;
  final int errRevoked;

  private final long[] types = new long[DataType.values().length];
  private final long[] ops = new long[ReduceOp.Predefined.values().length];

  /// {@return what `mpi.h` says under this interface}
  ///
  /// @param abi which interface
  /// @param library finds what the library exports; asked under [Abi#OPEN_MPI] alone
  /// @throws BackendUnavailableException if the library lacks a symbol that is needed
  static Constants of(Abi abi, SymbolLookup library) {
    return new Constants(new Column(abi, library));
  }

  private Constants(Column column) {
    abi = column.abi();
    handleBytes = column.number(8, 4, 8);

    commWorld = column.handle("ompi_mpi_comm_world", 0x44000000, 0x101);
    commSelf = column.handle("ompi_mpi_comm_self", 0x44000001, 0x102);
    commNull = column.handle("ompi_mpi_comm_null", 0x04000000, 0x100);
    requestNull = column.unusedHandle("ompi_request_null", 0x2c000000, 0x180);
    infoNull = column.handle("ompi_mpi_info_null", 0x1c000000, 0x130);
    winNull = column.unusedHandle("ompi_mpi_win_null", 0x20000000, 0x110);
    errorsReturn = column.handle("ompi_mpi_errors_return", 0x54000001, 0x142);
    datatypeNull = column.unusedHandle("ompi_mpi_datatype_null", 0x0c000000, 0x200);
    byteType = column.handle("ompi_mpi_byte", 0x4c00010d, 0x247);

    inPlace = column.address(1, -1, 1);
    statusIgnore = column.address(0, 1, 0);
    statusesIgnore = column.address(0, 1, 0);

    anySource = column.number(-1, -2, -1);
    anyTag = column.number(-1, -1, -2);
    procNull = column.number(-2, -1, -3);
    undefined = column.number(-32766, -32766, -32766);
    commTypeShared = column.number(0, 1, 221);
    threadSingle = column.number(0, 0, 0);
    threadFunneled = column.number(1, 1, 1024);
    threadSerialized = column.number(2, 2, 2048);
    threadMultiple = column.number(3, 3, 4096);
    tagUb = column.number(0, 0x64400001, 501);
    maxErrorString = column.number(256, 512, 512);
    maxLibraryVersionString = column.number(256, 8192, 8192);
    lockShared = column.number(2, 235, 302);
    modeNocheck = column.number(1, 1024, 1024);

    statusBytes = column.number(24, 20, 32);
    statusSourceOffset = column.number(0, 8, 0);
    statusTagOffset = column.number(4, 12, 4);
    statusErrorOffset = column.number(8, 16, 8);

    errCount = column.number(2, 2, 2);
    errComm = column.number(5, 5, 5);
    errTruncate = column.number(15, 14, 15);
    errOther = column.number(16, 15, 16);
    errPending = column.number(19, 18, 18);
    errInStatus = column.number(18, 17, 19);
    errNoMem = column.number(39, 34, 39);
    errProcFailed = column.number(75, 101, NONE);
    errProcFailedPending = column.number(76, 102, NONE);
    errRevoked = column.number(77, 103, NONE);

    type(DataType.FLOAT64, column.handle("ompi_mpi_double", 0x4c00080b, 0x214));
    type(DataType.FLOAT32, column.handle("ompi_mpi_float", 0x4c00040a, 0x210));
    type(DataType.INT64, column.handle("ompi_mpi_int64_t", 0x4c00083a, 0x258));
    type(DataType.INT32, column.handle("ompi_mpi_int32_t", 0x4c000439, 0x250));
    type(DataType.INT16, column.handle("ompi_mpi_int16_t", 0x4c000238, 0x248));
    type(DataType.INT8, column.handle("ompi_mpi_int8_t", 0x4c000137, 0x240));
    type(DataType.UINT64, column.handle("ompi_mpi_uint64_t", 0x4c00083e, 0x259));
    type(DataType.UINT32, column.handle("ompi_mpi_uint32_t", 0x4c00043d, 0x251));
    type(DataType.UINT16, column.handle("ompi_mpi_uint16_t", 0x4c00023c, 0x249));
    type(DataType.UINT8, column.handle("ompi_mpi_uint8_t", 0x4c00013b, 0x241));
    type(DataType.BOOL, type(DataType.UINT8)); // MPI_C_BOOL may differ in size between compilers
    type(DataType.COMPLEX64, column.handle("ompi_mpi_c_float_complex", 0x4c000840, 0x212));
    type(DataType.COMPLEX128, column.handle("ompi_mpi_c_double_complex", 0x4c001041, 0x216));

    op(ReduceOp.Predefined.SUM, column.handle("ompi_mpi_op_sum", 0x58000003, 0x21));
    op(ReduceOp.Predefined.PRODUCT, column.handle("ompi_mpi_op_prod", 0x58000004, 0x24));
    op(ReduceOp.Predefined.MIN, column.handle("ompi_mpi_op_min", 0x58000002, 0x22));
    op(ReduceOp.Predefined.MAX, column.handle("ompi_mpi_op_max", 0x58000001, 0x23));
    op(ReduceOp.Predefined.BIT_AND, column.handle("ompi_mpi_op_band", 0x58000006, 0x28));
    op(ReduceOp.Predefined.BIT_OR, column.handle("ompi_mpi_op_bor", 0x58000008, 0x29));
    op(ReduceOp.Predefined.BIT_XOR, column.handle("ompi_mpi_op_bxor", 0x5800000a, 0x2a));
    op(ReduceOp.Predefined.LOGICAL_AND, column.handle("ompi_mpi_op_land", 0x58000005, 0x30));
    op(ReduceOp.Predefined.LOGICAL_OR, column.handle("ompi_mpi_op_lor", 0x58000007, 0x31));
    op(ReduceOp.Predefined.LOGICAL_XOR, column.handle("ompi_mpi_op_lxor", 0x58000009, 0x32));
  }

  /// {@return the handle of MPI's type for these elements}
  ///
  /// @param type an integer, FLOAT64, FLOAT32, a complex number, or BOOL, an unsigned byte to MPI
  /// @throws IllegalArgumentException if MPI has no such type
  long type(DataType type) {
    return known(types[type.ordinal()], type, "type");
  }

  /// {@return the handle of MPI's operator}
  ///
  /// @param op any but AVERAGE and the operators of pairs, whose pairs MPI lays out otherwise
  /// @throws IllegalArgumentException if MPI has no such operator
  long op(ReduceOp.Predefined op) {
    return known(ops[op.ordinal()], op, "operator");
  }

  private static long known(long handle, Enum<?> of, String what) {
    if (handle == 0) { // no interface has a handle of this value
      throw new IllegalArgumentException(
          of + " (expected: one that MPI has a predefined " + what + " for)");
    }
    return handle;
  }

  private void type(DataType type, long handle) {
    types[type.ordinal()] = handle;
  }

  private void op(ReduceOp.Predefined op, long handle) {
    ops[op.ordinal()] = handle;
  }

  /// Picks one interface's value from a row.
  private record Column(Abi abi, SymbolLookup library) {
    long handle(String openMpi, int mpich, int standard) {
      return switch (abi) {
        case OPEN_MPI -> symbol(openMpi).address();
        case MPICH -> mpich;
        case STANDARD -> standard;
      };
    }

    /// One that nothing here needs: 0, as no handle is, where an Open MPI lacks its symbol.
    long unusedHandle(String openMpi, int mpich, int standard) {
      boolean isLacking = abi == Abi.OPEN_MPI && library.find(openMpi).isEmpty();
      return isLacking ? 0 : handle(openMpi, mpich, standard);
    }

    private MemorySegment symbol(String name) {
      return library
          .find(name)
          .orElseThrow(() ->
              new BackendUnavailableException(
                  MpiProvider.NAME,
                  "the library exports no %s (expected: Open MPI 4 or 5)".formatted(name),
                  "name another library with " + MpiLibraries.OPTION));
    }

    long address(long openMpi, long mpich, long standard) {
      return switch (abi) {
        case OPEN_MPI -> openMpi;
        case MPICH -> mpich;
        case STANDARD -> standard;
      };
    }

    int number(int openMpi, int mpich, int standard) {
      return (int) address(openMpi, mpich, standard);
    }
  }
}
