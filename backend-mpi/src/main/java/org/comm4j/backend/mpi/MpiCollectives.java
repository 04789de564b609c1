package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// The collectives of the MPI library, blocking and (`start…`) non-blocking: each returns the
/// library's error code. As in [Mpi], handles are `long`s.
final class MpiCollectives {
  private static final MethodHandle BARRIER = Functions.find("MPI_Barrier", "H");
  private static final MethodHandle START_BARRIER = Functions.find("MPI_Ibarrier", "Hp");
  private static final MethodHandle BROADCAST = Functions.find("MPI_Bcast", "piHiH");
  private static final MethodHandle START_BROADCAST = Functions.find("MPI_Ibcast", "piHiHp");
  private static final MethodHandle ALL_REDUCE = Functions.find("MPI_Allreduce", "ppiHHH");
  private static final MethodHandle START_ALL_REDUCE = Functions.find("MPI_Iallreduce", "ppiHHHp");
  private static final MethodHandle REDUCE = Functions.find("MPI_Reduce", "ppiHHiH");
  private static final MethodHandle START_REDUCE = Functions.find("MPI_Ireduce", "ppiHHiHp");
  private static final MethodHandle REDUCE_SCATTER_BLOCK =
      Functions.find("MPI_Reduce_scatter_block", "ppiHHH");
  private static final MethodHandle START_REDUCE_SCATTER_BLOCK =
      Functions.find("MPI_Ireduce_scatter_block", "ppiHHHp");
  private static final MethodHandle REDUCE_SCATTER = Functions.find("MPI_Reduce_scatter", "pppHHH");
  private static final MethodHandle START_REDUCE_SCATTER =
      Functions.find("MPI_Ireduce_scatter", "pppHHHp");
  private static final MethodHandle SCAN = Functions.find("MPI_Scan", "ppiHHH");
  private static final MethodHandle START_SCAN = Functions.find("MPI_Iscan", "ppiHHHp");
  private static final MethodHandle EXCLUSIVE_SCAN = Functions.find("MPI_Exscan", "ppiHHH");
  private static final MethodHandle START_EXCLUSIVE_SCAN = Functions.find("MPI_Iexscan", "ppiHHHp");
  private static final MethodHandle ALL_GATHER = Functions.find("MPI_Allgather", "piHpiHH");
  private static final MethodHandle START_ALL_GATHER = Functions.find("MPI_Iallgather", "piHpiHHp");
  private static final MethodHandle ALL_GATHER_V = Functions.find("MPI_Allgatherv", "piHpppHH");
  private static final MethodHandle START_ALL_GATHER_V =
      Functions.find("MPI_Iallgatherv", "piHpppHHp");
  private static final MethodHandle GATHER = Functions.find("MPI_Gather", "piHpiHiH");
  private static final MethodHandle START_GATHER = Functions.find("MPI_Igather", "piHpiHiHp");
  private static final MethodHandle SCATTER = Functions.find("MPI_Scatter", "piHpiHiH");
  private static final MethodHandle START_SCATTER = Functions.find("MPI_Iscatter", "piHpiHiHp");
  private static final MethodHandle ALL_TO_ALL = Functions.find("MPI_Alltoall", "piHpiHH");
  private static final MethodHandle START_ALL_TO_ALL = Functions.find("MPI_Ialltoall", "piHpiHHp");

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

  static int broadcast(MemorySegment data, int count, long type, int root, long comm) {
    try {
      return (int) BROADCAST.invokeExact(data, count, type, root, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startBroadcast(
      MemorySegment data, int count, long type, int root, long comm, MemorySegment request) {
    try {
      return (int) START_BROADCAST.invokeExact(data, count, type, root, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int allReduce(
      MemorySegment input, MemorySegment output, int count, long type, long op, long comm) {
    try {
      return (int) ALL_REDUCE.invokeExact(input, output, count, type, op, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startAllReduce(
      MemorySegment input,
      MemorySegment output,
      int count,
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
      int count,
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
      int count,
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
      MemorySegment input, MemorySegment output, int count, long type, long op, long comm) {
    try {
      return (int) REDUCE_SCATTER_BLOCK.invokeExact(input, output, count, type, op, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startReduceScatterBlock(
      MemorySegment input,
      MemorySegment output,
      int count,
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
      MemorySegment input, MemorySegment output, int count, long type, long op, long comm) {
    try {
      return (int) SCAN.invokeExact(input, output, count, type, op, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startScan(
      MemorySegment input,
      MemorySegment output,
      int count,
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
      MemorySegment input, MemorySegment output, int count, long type, long op, long comm) {
    try {
      return (int) EXCLUSIVE_SCAN.invokeExact(input, output, count, type, op, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startExclusiveScan(
      MemorySegment input,
      MemorySegment output,
      int count,
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
      MemorySegment input,
      int inputCount,
      long inputType,
      MemorySegment output,
      int outputCount,
      long outputType,
      long comm) {
    try {
      return (int)
          ALL_GATHER.invokeExact(
              input, inputCount, inputType, output, outputCount, outputType, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startAllGather(
      MemorySegment input,
      int inputCount,
      long inputType,
      MemorySegment output,
      int outputCount,
      long outputType,
      long comm,
      MemorySegment request) {
    try {
      return (int)
          START_ALL_GATHER.invokeExact(
              input, inputCount, inputType, output, outputCount, outputType, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int allGatherV(
      MemorySegment input,
      int inputCount,
      long inputType,
      MemorySegment output,
      MemorySegment counts,
      MemorySegment displacements,
      long outputType,
      long comm) {
    try {
      return (int)
          ALL_GATHER_V.invokeExact(
              input, inputCount, inputType, output, counts, displacements, outputType, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startAllGatherV(
      MemorySegment input,
      int inputCount,
      long inputType,
      MemorySegment output,
      MemorySegment counts,
      MemorySegment displacements,
      long outputType,
      long comm,
      MemorySegment request) {
    try {
      return (int)
          START_ALL_GATHER_V.invokeExact(
              input,
              inputCount,
              inputType,
              output,
              counts,
              displacements,
              outputType,
              comm,
              request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int gather(
      MemorySegment input,
      int inputCount,
      long inputType,
      MemorySegment output,
      int outputCount,
      long outputType,
      int root,
      long comm) {
    try {
      return (int)
          GATHER.invokeExact(
              input, inputCount, inputType, output, outputCount, outputType, root, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startGather(
      MemorySegment input,
      int inputCount,
      long inputType,
      MemorySegment output,
      int outputCount,
      long outputType,
      int root,
      long comm,
      MemorySegment request) {
    try {
      return (int)
          START_GATHER.invokeExact(
              input, inputCount, inputType, output, outputCount, outputType, root, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int scatter(
      MemorySegment input,
      int inputCount,
      long inputType,
      MemorySegment output,
      int outputCount,
      long outputType,
      int root,
      long comm) {
    try {
      return (int)
          SCATTER.invokeExact(
              input, inputCount, inputType, output, outputCount, outputType, root, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startScatter(
      MemorySegment input,
      int inputCount,
      long inputType,
      MemorySegment output,
      int outputCount,
      long outputType,
      int root,
      long comm,
      MemorySegment request) {
    try {
      return (int)
          START_SCATTER.invokeExact(
              input, inputCount, inputType, output, outputCount, outputType, root, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int allToAll(
      MemorySegment input,
      int inputCount,
      long inputType,
      MemorySegment output,
      int outputCount,
      long outputType,
      long comm) {
    try {
      return (int)
          ALL_TO_ALL.invokeExact(
              input, inputCount, inputType, output, outputCount, outputType, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int startAllToAll(
      MemorySegment input,
      int inputCount,
      long inputType,
      MemorySegment output,
      int outputCount,
      long outputType,
      long comm,
      MemorySegment request) {
    try {
      return (int)
          START_ALL_TO_ALL.invokeExact(
              input, inputCount, inputType, output, outputCount, outputType, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }
}
