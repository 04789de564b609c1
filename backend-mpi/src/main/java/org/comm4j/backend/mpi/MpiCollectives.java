package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// The collectives of the MPI library, blocking and (`start…`) non-blocking: each returns the
/// library's error code. As in [Mpi], handles and counts are `long`s; arrays of counts and places
/// have the library's form ([CallMemory#counts]). MPI lets what is sent and what is received have
/// counts and types of their own; here they have the same.
final class MpiCollectives {
  private static final MethodHandle BARRIER = Functions.find("MPI_Barrier", "H");
  private static final MethodHandle START_BARRIER = Functions.find("MPI_Ibarrier", "Hp");
  private static final MethodHandle BROADCAST = Functions.find("MPI_Bcast", "pnHiH");
  private static final MethodHandle START_BROADCAST = Functions.find("MPI_Ibcast", "pnHiHp");
  private static final MethodHandle ALL_REDUCE = Functions.find("MPI_Allreduce", "ppnHHH");
  private static final MethodHandle START_ALL_REDUCE = Functions.find("MPI_Iallreduce", "ppnHHHp");
  private static final MethodHandle REDUCE = Functions.find("MPI_Reduce", "ppnHHiH");
  private static final MethodHandle START_REDUCE = Functions.find("MPI_Ireduce", "ppnHHiHp");
  private static final MethodHandle REDUCE_SCATTER_BLOCK =
      Functions.find("MPI_Reduce_scatter_block", "ppnHHH");
  private static final MethodHandle START_REDUCE_SCATTER_BLOCK =
      Functions.find("MPI_Ireduce_scatter_block", "ppnHHHp");
  private static final MethodHandle REDUCE_SCATTER = Functions.find("MPI_Reduce_scatter", "ppNHHH");
  private static final MethodHandle START_REDUCE_SCATTER =
      Functions.find("MPI_Ireduce_scatter", "ppNHHHp");
  private static final MethodHandle SCAN = Functions.find("MPI_Scan", "ppnHHH");
  private static final MethodHandle START_SCAN = Functions.find("MPI_Iscan", "ppnHHHp");
  private static final MethodHandle EXCLUSIVE_SCAN = Functions.find("MPI_Exscan", "ppnHHH");
  private static final MethodHandle START_EXCLUSIVE_SCAN = Functions.find("MPI_Iexscan", "ppnHHHp");
  private static final MethodHandle ALL_GATHER = Functions.find("MPI_Allgather", "pnHpnHH");
  private static final MethodHandle START_ALL_GATHER = Functions.find("MPI_Iallgather", "pnHpnHHp");
  private static final MethodHandle ALL_GATHER_V = Functions.find("MPI_Allgatherv", "pnHpNNHH");
  private static final MethodHandle START_ALL_GATHER_V =
      Functions.find("MPI_Iallgatherv", "pnHpNNHHp");
  private static final MethodHandle GATHER = Functions.find("MPI_Gather", "pnHpnHiH");
  private static final MethodHandle START_GATHER = Functions.find("MPI_Igather", "pnHpnHiHp");
  private static final MethodHandle SCATTER = Functions.find("MPI_Scatter", "pnHpnHiH");
  private static final MethodHandle START_SCATTER = Functions.find("MPI_Iscatter", "pnHpnHiHp");
  private static final MethodHandle ALL_TO_ALL = Functions.find("MPI_Alltoall", "pnHpnHH");
  private static final MethodHandle START_ALL_TO_ALL = Functions.find("MPI_Ialltoall", "pnHpnHHp");

  private MpiCollectives() {}

  static int barrier(long comm) {
    try {
      return (int) BARRIER.invokeExact(comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startBarrier(long comm, MemorySegment request) {
    try {
      return (int) START_BARRIER.invokeExact(comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int broadcast(MemorySegment data, long count, long type, int root, long comm) {
    try {
      return (int) BROADCAST.invokeExact(data, count, type, root, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startBroadcast(
      MemorySegment data, long count, long type, int root, long comm, MemorySegment request) {
    try {
      return (int) START_BROADCAST.invokeExact(data, count, type, root, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int allReduce(
      MemorySegment input, MemorySegment output, long count, long type, long op, long comm) {
    try {
      return (int) ALL_REDUCE.invokeExact(input, output, count, type, op, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startAllReduce(
      MemorySegment input,
      MemorySegment output,
      long count,
      long type,
      long op,
      long comm,
      MemorySegment request) {
    try {
      return (int) START_ALL_REDUCE.invokeExact(input, output, count, type, op, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int reduce(
      MemorySegment input,
      MemorySegment output,
      long count,
      long type,
      long op,
      int root,
      long comm) {
    try {
      return (int) REDUCE.invokeExact(input, output, count, type, op, root, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startReduce(
      MemorySegment input,
      MemorySegment output,
      long count,
      long type,
      long op,
      int root,
      long comm,
      MemorySegment request) {
    try {
      return (int) START_REDUCE.invokeExact(input, output, count, type, op, root, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int reduceScatterBlock(
      MemorySegment input, MemorySegment output, long count, long type, long op, long comm) {
    try {
      return (int) REDUCE_SCATTER_BLOCK.invokeExact(input, output, count, type, op, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startReduceScatterBlock(
      MemorySegment input,
      MemorySegment output,
      long count,
      long type,
      long op,
      long comm,
      MemorySegment request) {
    try {
      return (int)
          START_REDUCE_SCATTER_BLOCK.invokeExact(input, output, count, type, op, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int reduceScatter(
      MemorySegment input,
      MemorySegment output,
      MemorySegment counts,
      long type,
      long op,
      long comm) {
    try {
      return (int) REDUCE_SCATTER.invokeExact(input, output, counts, type, op, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startReduceScatter(
      MemorySegment input,
      MemorySegment output,
      MemorySegment counts,
      long type,
      long op,
      long comm,
      MemorySegment request) {
    try {
      return (int) START_REDUCE_SCATTER.invokeExact(input, output, counts, type, op, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int scan(
      MemorySegment input, MemorySegment output, long count, long type, long op, long comm) {
    try {
      return (int) SCAN.invokeExact(input, output, count, type, op, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startScan(
      MemorySegment input,
      MemorySegment output,
      long count,
      long type,
      long op,
      long comm,
      MemorySegment request) {
    try {
      return (int) START_SCAN.invokeExact(input, output, count, type, op, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int exclusiveScan(
      MemorySegment input, MemorySegment output, long count, long type, long op, long comm) {
    try {
      return (int) EXCLUSIVE_SCAN.invokeExact(input, output, count, type, op, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startExclusiveScan(
      MemorySegment input,
      MemorySegment output,
      long count,
      long type,
      long op,
      long comm,
      MemorySegment request) {
    try {
      return (int) START_EXCLUSIVE_SCAN.invokeExact(input, output, count, type, op, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int allGather(
      MemorySegment input, MemorySegment output, long count, long type, long comm) {
    try {
      return (int) ALL_GATHER.invokeExact(input, count, type, output, count, type, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startAllGather(
      MemorySegment input,
      MemorySegment output,
      long count,
      long type,
      long comm,
      MemorySegment request) {
    try {
      return (int)
          START_ALL_GATHER.invokeExact(input, count, type, output, count, type, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int allGatherV(
      MemorySegment input,
      long count,
      MemorySegment output,
      MemorySegment counts,
      MemorySegment displacements,
      long type,
      long comm) {
    try {
      return (int)
          ALL_GATHER_V.invokeExact(input, count, type, output, counts, displacements, type, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startAllGatherV(
      MemorySegment input,
      long count,
      MemorySegment output,
      MemorySegment counts,
      MemorySegment displacements,
      long type,
      long comm,
      MemorySegment request) {
    try {
      return (int)
          START_ALL_GATHER_V.invokeExact(
              input, count, type, output, counts, displacements, type, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int gather(
      MemorySegment input, MemorySegment output, long count, long type, int root, long comm) {
    try {
      return (int) GATHER.invokeExact(input, count, type, output, count, type, root, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startGather(
      MemorySegment input,
      MemorySegment output,
      long count,
      long type,
      int root,
      long comm,
      MemorySegment request) {
    try {
      return (int)
          START_GATHER.invokeExact(input, count, type, output, count, type, root, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int scatter(
      MemorySegment input, MemorySegment output, long count, long type, int root, long comm) {
    try {
      return (int) SCATTER.invokeExact(input, count, type, output, count, type, root, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startScatter(
      MemorySegment input,
      MemorySegment output,
      long count,
      long type,
      int root,
      long comm,
      MemorySegment request) {
    try {
      return (int)
          START_SCATTER.invokeExact(input, count, type, output, count, type, root, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int allToAll(MemorySegment input, MemorySegment output, long count, long type, long comm) {
    try {
      return (int) ALL_TO_ALL.invokeExact(input, count, type, output, count, type, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startAllToAll(
      MemorySegment input,
      MemorySegment output,
      long count,
      long type,
      long comm,
      MemorySegment request) {
    try {
      return (int)
          START_ALL_TO_ALL.invokeExact(input, count, type, output, count, type, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }
}
