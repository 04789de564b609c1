package org.comm4j.backend.mpi;

import static org.assertj.core.api.Assertions.assertThat;

import org.comm4j.api.CommConfig;
import org.comm4j.api.DataType;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.Reduction;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class WaysTest {
  @ParameterizedTest
  @CsvSource({
    "allReduce, FLOAT32, SUM, 8, 2, FAST, the library reduces",
    "allReduce, FLOAT32, SUM, 8589934592, 2, FAST, can't count so many",
    "allReduce, FLOAT32, SUM, 8, 3, FAST, found to differ between ranks",
    "allReduce, FLOAT32, SUM, 8, 4, ORDERED, MPI_Allgather brings all data",
    "allReduce, FLOAT32, SUM, 1000000, 4, ORDERED, COMM_REDUCTION=ordered",
    "reduce, FLOAT32, MIN, 8, 4, FAST, other rules for MIN of FLOAT32",
    "scan, INT8, SUM, 8, 4, FAST, other rules for SUM of INT8",
    "reduceScatter, INT32, SUM, 8, 4, FAST, the library reduces",
    "reduceScatter, INT32, SUM, 4294967296, 4, FAST, can't count so many",
    "broadcast, INT32, , 8, 4, FAST, MPI_Bcast",
    "allGather, INT32, , 8, 4, FAST, MPI_Allgather",
    "allToAllV, INT32, , 8, 4, FAST, messages of the library",
    "barrier, INT8, , 0, 4, FAST, MPI_Barrier",
    "allReduce, INT32, SUM, 8, 1, FAST, copied",
  })
  void of_anyCall_saysWhichWay(
      String operation,
      DataType type,
      ReduceOp.@Nullable Predefined op,
      long bytes,
      int ranks,
      Reduction reduction,
      String says) {
    CommConfig config = CommConfig.builder().reduction(reduction).build();

    assertThat(Ways.of(operation, type, op, bytes, ranks, config, false)).contains(says);
  }

  @ParameterizedTest
  @CsvSource({
    "allReduce, FLOAT32, SUM, 8589934592, the library reduces",
    "reduceScatter, FLOAT32, SUM, 4294967296, can't count so many",
    "reduce, FLOAT32, SUM, 8589934592, can't count so many",
    "broadcast, INT32, , 8, MPI_Bcast_c",
    "allGatherV, INT32, , 8, MPI_Allgatherv_c; beyond 2^31 elements messages",
    "barrier, INT8, , 0, MPI_Barrier",
  })
  void of_largeCounts_saysSo(
      String operation, DataType type, ReduceOp.@Nullable Predefined op, long bytes, String says) {
    CommConfig config = CommConfig.builder().build();

    assertThat(Ways.of(operation, type, op, bytes, 2, config, true)).contains(says);
  }
}
