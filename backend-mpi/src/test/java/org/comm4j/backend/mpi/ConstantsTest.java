package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.abort;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.comm4j.api.BackendUnavailableException;
import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp.Predefined;
import org.junit.jupiter.api.Test;

/// Held against what programs print that were compiled with each library's `mpi.h`, and against the
/// standard's published header.
class ConstantsTest {
  private static final SymbolLookup NOTHING = _ -> Optional.empty();

  private static final String STANDARD =
      """
      MPI_COMM_WORLD 0x101
      MPI_COMM_SELF 0x102
      MPI_COMM_NULL 0x100
      MPI_REQUEST_NULL 0x180
      MPI_INFO_NULL 0x130
      MPI_WIN_NULL 0x110
      MPI_ERRORS_RETURN 0x142
      MPI_DATATYPE_NULL 0x200
      MPI_BYTE 0x247
      MPI_FLOAT 0x210
      MPI_DOUBLE 0x214
      MPI_INT64_T 0x258
      MPI_INT32_T 0x250
      MPI_INT16_T 0x248
      MPI_INT8_T 0x240
      MPI_UINT64_T 0x259
      MPI_UINT32_T 0x251
      MPI_UINT16_T 0x249
      MPI_UINT8_T 0x241
      MPI_C_FLOAT_COMPLEX 0x212
      MPI_C_DOUBLE_COMPLEX 0x216
      MPI_SUM 0x21
      MPI_PROD 0x24
      MPI_MIN 0x22
      MPI_MAX 0x23
      MPI_BAND 0x28
      MPI_BOR 0x29
      MPI_BXOR 0x2a
      MPI_LAND 0x30
      MPI_LOR 0x31
      MPI_LXOR 0x32
      MPI_IN_PLACE 0x1
      MPI_STATUS_IGNORE 0x0
      MPI_STATUSES_IGNORE 0x0
      MPI_ANY_SOURCE -1
      MPI_ANY_TAG -2
      MPI_PROC_NULL -3
      MPI_UNDEFINED -32766
      MPI_COMM_TYPE_SHARED 221
      MPI_THREAD_SINGLE 0
      MPI_THREAD_FUNNELED 1024
      MPI_THREAD_SERIALIZED 2048
      MPI_THREAD_MULTIPLE 4096
      MPI_TAG_UB 501
      MPI_MAX_ERROR_STRING 512
      MPI_MAX_LIBRARY_VERSION_STRING 8192
      MPI_LOCK_SHARED 302
      MPI_MODE_NOCHECK 1024
      sizeof(MPI_Status) 32
      offsetof(MPI_Status,MPI_SOURCE) 0
      offsetof(MPI_Status,MPI_TAG) 4
      offsetof(MPI_Status,MPI_ERROR) 8
      sizeof(MPI_Comm) 8
      MPI_SUCCESS 0
      MPI_ERR_TRUNCATE 15
      MPI_ERR_NO_MEM 39
      MPI_ERR_COMM 5
      MPI_ERR_COUNT 2
      MPI_ERR_OTHER 16
      MPI_ERR_PENDING 18
      MPI_ERR_IN_STATUS 19
      MPIX_ERR_PROC_FAILED -1
      MPIX_ERR_PROC_FAILED_PENDING -1
      MPIX_ERR_REVOKED -1
      """;

  private static final String MPICH =
      """
      MPI_COMM_WORLD 0x44000000
      MPI_COMM_SELF 0x44000001
      MPI_COMM_NULL 0x4000000
      MPI_REQUEST_NULL 0x2c000000
      MPI_INFO_NULL 0x1c000000
      MPI_WIN_NULL 0x20000000
      MPI_ERRORS_RETURN 0x54000001
      MPI_DATATYPE_NULL 0xc000000
      MPI_BYTE 0x4c00010d
      MPI_FLOAT 0x4c00040a
      MPI_DOUBLE 0x4c00080b
      MPI_INT64_T 0x4c00083a
      MPI_INT32_T 0x4c000439
      MPI_INT16_T 0x4c000238
      MPI_INT8_T 0x4c000137
      MPI_UINT64_T 0x4c00083e
      MPI_UINT32_T 0x4c00043d
      MPI_UINT16_T 0x4c00023c
      MPI_UINT8_T 0x4c00013b
      MPI_C_FLOAT_COMPLEX 0x4c000840
      MPI_C_DOUBLE_COMPLEX 0x4c001041
      MPI_SUM 0x58000003
      MPI_PROD 0x58000004
      MPI_MIN 0x58000002
      MPI_MAX 0x58000001
      MPI_BAND 0x58000006
      MPI_BOR 0x58000008
      MPI_BXOR 0x5800000a
      MPI_LAND 0x58000005
      MPI_LOR 0x58000007
      MPI_LXOR 0x58000009
      MPI_IN_PLACE 0xffffffffffffffff
      MPI_STATUS_IGNORE 0x1
      MPI_STATUSES_IGNORE 0x1
      MPI_ANY_SOURCE -2
      MPI_ANY_TAG -1
      MPI_PROC_NULL -1
      MPI_UNDEFINED -32766
      MPI_COMM_TYPE_SHARED 1
      MPI_THREAD_SINGLE 0
      MPI_THREAD_FUNNELED 1
      MPI_THREAD_SERIALIZED 2
      MPI_THREAD_MULTIPLE 3
      MPI_TAG_UB 1681915905
      MPI_MAX_ERROR_STRING 512
      MPI_MAX_LIBRARY_VERSION_STRING 8192
      MPI_LOCK_SHARED 235
      MPI_MODE_NOCHECK 1024
      sizeof(MPI_Status) 20
      offsetof(MPI_Status,MPI_SOURCE) 8
      offsetof(MPI_Status,MPI_TAG) 12
      offsetof(MPI_Status,MPI_ERROR) 16
      sizeof(MPI_Comm) 4
      MPI_SUCCESS 0
      MPI_ERR_TRUNCATE 14
      MPI_ERR_NO_MEM 34
      MPI_ERR_COMM 5
      MPI_ERR_COUNT 2
      MPI_ERR_OTHER 15
      MPI_ERR_PENDING 18
      MPI_ERR_IN_STATUS 17
      MPIX_ERR_PROC_FAILED 101
      MPIX_ERR_PROC_FAILED_PENDING 102
      MPIX_ERR_REVOKED 103
      """;

  /// Of handles the symbols of which they are the addresses. The last three are those of Open MPI
  /// 5.
  private static final String OPEN_MPI =
      """
      MPI_COMM_WORLD ompi_mpi_comm_world
      MPI_COMM_SELF ompi_mpi_comm_self
      MPI_COMM_NULL ompi_mpi_comm_null
      MPI_REQUEST_NULL ompi_request_null
      MPI_INFO_NULL ompi_mpi_info_null
      MPI_WIN_NULL ompi_mpi_win_null
      MPI_ERRORS_RETURN ompi_mpi_errors_return
      MPI_DATATYPE_NULL ompi_mpi_datatype_null
      MPI_BYTE ompi_mpi_byte
      MPI_FLOAT ompi_mpi_float
      MPI_DOUBLE ompi_mpi_double
      MPI_INT64_T ompi_mpi_int64_t
      MPI_INT32_T ompi_mpi_int32_t
      MPI_INT16_T ompi_mpi_int16_t
      MPI_INT8_T ompi_mpi_int8_t
      MPI_UINT64_T ompi_mpi_uint64_t
      MPI_UINT32_T ompi_mpi_uint32_t
      MPI_UINT16_T ompi_mpi_uint16_t
      MPI_UINT8_T ompi_mpi_uint8_t
      MPI_C_FLOAT_COMPLEX ompi_mpi_c_float_complex
      MPI_C_DOUBLE_COMPLEX ompi_mpi_c_double_complex
      MPI_SUM ompi_mpi_op_sum
      MPI_PROD ompi_mpi_op_prod
      MPI_MIN ompi_mpi_op_min
      MPI_MAX ompi_mpi_op_max
      MPI_BAND ompi_mpi_op_band
      MPI_BOR ompi_mpi_op_bor
      MPI_BXOR ompi_mpi_op_bxor
      MPI_LAND ompi_mpi_op_land
      MPI_LOR ompi_mpi_op_lor
      MPI_LXOR ompi_mpi_op_lxor
      MPI_IN_PLACE 0x1
      MPI_STATUS_IGNORE 0x0
      MPI_STATUSES_IGNORE 0x0
      MPI_ANY_SOURCE -1
      MPI_ANY_TAG -1
      MPI_PROC_NULL -2
      MPI_UNDEFINED -32766
      MPI_COMM_TYPE_SHARED 0
      MPI_THREAD_SINGLE 0
      MPI_THREAD_FUNNELED 1
      MPI_THREAD_SERIALIZED 2
      MPI_THREAD_MULTIPLE 3
      MPI_TAG_UB 0
      MPI_MAX_ERROR_STRING 256
      MPI_MAX_LIBRARY_VERSION_STRING 256
      MPI_LOCK_SHARED 2
      MPI_MODE_NOCHECK 1
      sizeof(MPI_Status) 24
      offsetof(MPI_Status,MPI_SOURCE) 0
      offsetof(MPI_Status,MPI_TAG) 4
      offsetof(MPI_Status,MPI_ERROR) 8
      sizeof(MPI_Comm) 8
      MPI_SUCCESS 0
      MPI_ERR_TRUNCATE 15
      MPI_ERR_NO_MEM 39
      MPI_ERR_COMM 5
      MPI_ERR_COUNT 2
      MPI_ERR_OTHER 16
      MPI_ERR_PENDING 19
      MPI_ERR_IN_STATUS 18
      MPIX_ERR_PROC_FAILED 75
      MPIX_ERR_PROC_FAILED_PENDING 76
      MPIX_ERR_REVOKED 77
      """;

  @Test
  void of_standard_isThePublishedHeader() {
    assertThat(shown(Constants.of(Abi.STANDARD, NOTHING))).isEqualTo(STANDARD);
  }

  @Test
  void of_mpich_isItsHeader() {
    assertThat(shown(Constants.of(Abi.MPICH, NOTHING))).isEqualTo(MPICH);
  }

  @Test
  void of_openMpi_isItsHeader() {
    List<String> symbols = new ArrayList<>();
    SymbolLookup numbered =
        name -> {
          symbols.add(name);
          return Optional.of(MemorySegment.ofAddress(0x7000_0000_0000L + symbols.size()));
        };
    String shown = shown(Constants.of(Abi.OPEN_MPI, numbered));
    for (int i = 0; i < symbols.size(); i++) {
      shown = shown.replace("0x70000000%04x\n".formatted(i + 1), symbols.get(i) + "\n");
    }
    assertThat(shown).isEqualTo(OPEN_MPI);
  }

  @Test
  void of_installedOpenMpi_findsEverySymbol() {
    MpiLibrary openMpi =
        MpiLibraries.here().find(CommConfig.builder().build()).stream()
            .filter(library -> library.abi() == Abi.OPEN_MPI)
            .findFirst()
            .orElseGet(() -> abort("no Open MPI is installed"));
    try (Arena arena = Arena.ofConfined()) {
      SymbolLookup library = SymbolLookup.libraryLookup(openMpi.file(), arena);
      Constants constants = Constants.of(Abi.OPEN_MPI, library);
      assertThat(constants.commWorld)
          .isEqualTo(library.findOrThrow("ompi_mpi_comm_world").address());
      assertThat(shown(constants).lines().filter(line -> line.contains("0x7")).distinct())
          .hasSize(31);
    }
  }

  @Test
  void of_openMpiWithoutASymbol_namesIt() {
    assertThatThrownBy(() -> Constants.of(Abi.OPEN_MPI, NOTHING))
        .isInstanceOf(BackendUnavailableException.class)
        .hasMessageContaining("exports no ompi_mpi_comm_world (expected: Open MPI 4 or 5)");
  }

  @Test
  void of_openMpiWithoutSymbolsThatNothingNeeds_hasTheOthers() {
    Set<String> lacking =
        Set.of("ompi_request_null", "ompi_mpi_win_null", "ompi_mpi_datatype_null");
    Constants constants =
        Constants.of(
            Abi.OPEN_MPI,
            name -> Optional.of(MemorySegment.ofAddress(1)).filter(_ -> !lacking.contains(name)));
    assertThat(constants.commWorld).isOne();
    assertThat(List.of(constants.requestNull, constants.winNull, constants.datatypeNull))
        .containsOnly(0L);
  }

  @Test
  void typesAndOps_thatMpiDoesNotHave_areRefused() {
    Constants constants = Constants.of(Abi.STANDARD, NOTHING);
    assertThat(constants.type(DataType.BOOL)).isEqualTo(constants.type(DataType.UINT8));
    assertThatThrownBy(() -> constants.type(DataType.BFLOAT16))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("BFLOAT16 (expected: one that MPI has a predefined type for)");
    assertThatThrownBy(() -> constants.op(Predefined.AVERAGE))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("AVERAGE (expected: one that MPI has a predefined operator for)");
  }

  private static String shown(Constants is) {
    Map<String, String> lines = new LinkedHashMap<>();
    lines.put("MPI_COMM_WORLD", hex(is.commWorld));
    lines.put("MPI_COMM_SELF", hex(is.commSelf));
    lines.put("MPI_COMM_NULL", hex(is.commNull));
    lines.put("MPI_REQUEST_NULL", hex(is.requestNull));
    lines.put("MPI_INFO_NULL", hex(is.infoNull));
    lines.put("MPI_WIN_NULL", hex(is.winNull));
    lines.put("MPI_ERRORS_RETURN", hex(is.errorsReturn));
    lines.put("MPI_DATATYPE_NULL", hex(is.datatypeNull));
    lines.put("MPI_BYTE", hex(is.byteType));
    lines.put("MPI_FLOAT", hex(is.type(DataType.FLOAT32)));
    lines.put("MPI_DOUBLE", hex(is.type(DataType.FLOAT64)));
    lines.put("MPI_INT64_T", hex(is.type(DataType.INT64)));
    lines.put("MPI_INT32_T", hex(is.type(DataType.INT32)));
    lines.put("MPI_INT16_T", hex(is.type(DataType.INT16)));
    lines.put("MPI_INT8_T", hex(is.type(DataType.INT8)));
    lines.put("MPI_UINT64_T", hex(is.type(DataType.UINT64)));
    lines.put("MPI_UINT32_T", hex(is.type(DataType.UINT32)));
    lines.put("MPI_UINT16_T", hex(is.type(DataType.UINT16)));
    lines.put("MPI_UINT8_T", hex(is.type(DataType.UINT8)));
    lines.put("MPI_C_FLOAT_COMPLEX", hex(is.type(DataType.COMPLEX64)));
    lines.put("MPI_C_DOUBLE_COMPLEX", hex(is.type(DataType.COMPLEX128)));
    lines.put("MPI_SUM", hex(is.op(Predefined.SUM)));
    lines.put("MPI_PROD", hex(is.op(Predefined.PRODUCT)));
    lines.put("MPI_MIN", hex(is.op(Predefined.MIN)));
    lines.put("MPI_MAX", hex(is.op(Predefined.MAX)));
    lines.put("MPI_BAND", hex(is.op(Predefined.BIT_AND)));
    lines.put("MPI_BOR", hex(is.op(Predefined.BIT_OR)));
    lines.put("MPI_BXOR", hex(is.op(Predefined.BIT_XOR)));
    lines.put("MPI_LAND", hex(is.op(Predefined.LOGICAL_AND)));
    lines.put("MPI_LOR", hex(is.op(Predefined.LOGICAL_OR)));
    lines.put("MPI_LXOR", hex(is.op(Predefined.LOGICAL_XOR)));
    lines.put("MPI_IN_PLACE", hex(is.inPlace));
    lines.put("MPI_STATUS_IGNORE", hex(is.statusIgnore));
    lines.put("MPI_STATUSES_IGNORE", hex(is.statusesIgnore));
    lines.put("MPI_ANY_SOURCE", "" + is.anySource);
    lines.put("MPI_ANY_TAG", "" + is.anyTag);
    lines.put("MPI_PROC_NULL", "" + is.procNull);
    lines.put("MPI_UNDEFINED", "" + is.undefined);
    lines.put("MPI_COMM_TYPE_SHARED", "" + is.commTypeShared);
    lines.put("MPI_THREAD_SINGLE", "" + is.threadSingle);
    lines.put("MPI_THREAD_FUNNELED", "" + is.threadFunneled);
    lines.put("MPI_THREAD_SERIALIZED", "" + is.threadSerialized);
    lines.put("MPI_THREAD_MULTIPLE", "" + is.threadMultiple);
    lines.put("MPI_TAG_UB", "" + is.tagUb);
    lines.put("MPI_MAX_ERROR_STRING", "" + is.maxErrorString);
    lines.put("MPI_MAX_LIBRARY_VERSION_STRING", "" + is.maxLibraryVersionString);
    lines.put("MPI_LOCK_SHARED", "" + is.lockShared);
    lines.put("MPI_MODE_NOCHECK", "" + is.modeNocheck);
    lines.put("sizeof(MPI_Status)", "" + is.statusBytes);
    lines.put("offsetof(MPI_Status,MPI_SOURCE)", "" + is.statusSourceOffset);
    lines.put("offsetof(MPI_Status,MPI_TAG)", "" + is.statusTagOffset);
    lines.put("offsetof(MPI_Status,MPI_ERROR)", "" + is.statusErrorOffset);
    lines.put("sizeof(MPI_Comm)", "" + is.handleBytes);
    lines.put("MPI_SUCCESS", "" + Constants.SUCCESS);
    lines.put("MPI_ERR_TRUNCATE", "" + is.errTruncate);
    lines.put("MPI_ERR_NO_MEM", "" + is.errNoMem);
    lines.put("MPI_ERR_COMM", "" + is.errComm);
    lines.put("MPI_ERR_COUNT", "" + is.errCount);
    lines.put("MPI_ERR_OTHER", "" + is.errOther);
    lines.put("MPI_ERR_PENDING", "" + is.errPending);
    lines.put("MPI_ERR_IN_STATUS", "" + is.errInStatus);
    lines.put("MPIX_ERR_PROC_FAILED", "" + is.errProcFailed);
    lines.put("MPIX_ERR_PROC_FAILED_PENDING", "" + is.errProcFailedPending);
    lines.put("MPIX_ERR_REVOKED", "" + is.errRevoked);
    StringBuilder shown = new StringBuilder();
    lines.forEach((name, value) -> shown.append(name).append(' ').append(value).append('\n'));
    return shown.toString();
  }

  private static String hex(long value) {
    return "0x" + Long.toHexString(value);
  }
}
