package org.comm4j.backend.mpi;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/// The functions of the MPI library that this process uses, but for the collectives
/// ([MpiCollectives]): each returns the library's error code. Handles and counts of elements are
/// `long`s whatever the library's are.
///
/// Initialised on first use, when [Functions] knows the library. Handles to functions are
/// constants, so that a call costs some nanoseconds.
final class Mpi {
  private static final MethodHandle INIT_THREAD = Functions.find("MPI_Init_thread", "ppip");
  private static final MethodHandle INITIALIZED = Functions.find("MPI_Initialized", "p");
  private static final MethodHandle FINALIZED = Functions.find("MPI_Finalized", "p");
  private static final MethodHandle FINISH = Functions.find("MPI_Finalize", "");
  private static final MethodHandle QUERY_THREAD = Functions.find("MPI_Query_thread", "p");
  private static final MethodHandle ABORT =
      Functions.findUnordered("MPI_Abort", "Hi"); // another thread may wait in the library
  private static final MethodHandle ERROR_STRING = Functions.find("MPI_Error_string", "ipp");
  private static final MethodHandle ERROR_CLASS = Functions.find("MPI_Error_class", "ip");
  private static final MethodHandle COMM_RANK = Functions.find("MPI_Comm_rank", "Hp");
  private static final MethodHandle COMM_SIZE = Functions.find("MPI_Comm_size", "Hp");
  private static final MethodHandle COMM_IDUP = Functions.find("MPI_Comm_idup", "Hpp");
  private static final MethodHandle COMM_SPLIT = Functions.find("MPI_Comm_split", "Hiip");
  private static final MethodHandle COMM_SPLIT_TYPE =
      Functions.find("MPI_Comm_split_type", "HiiHp");
  private static final MethodHandle COMM_GROUP = Functions.find("MPI_Comm_group", "Hp");
  private static final MethodHandle GROUP_INCL = Functions.find("MPI_Group_incl", "Hipp");
  private static final MethodHandle GROUP_TRANSLATE_RANKS =
      Functions.find("MPI_Group_translate_ranks", "HipHp");
  private static final MethodHandle GROUP_FREE = Functions.find("MPI_Group_free", "p");
  private static final MethodHandle COMM_CREATE_GROUP =
      Functions.find("MPI_Comm_create_group", "HHip");
  private static final MethodHandle COMM_FREE = Functions.find("MPI_Comm_free", "p");
  private static final MethodHandle WIN_SET_ERRHANDLER =
      Functions.find("MPI_Win_set_errhandler", "HH");
  private static final MethodHandle COMM_SET_ERRHANDLER =
      Functions.find("MPI_Comm_set_errhandler", "HH");
  private static final MethodHandle COMM_GET_ATTR = Functions.find("MPI_Comm_get_attr", "Hipp");
  private static final MethodHandle ALLOC_MEM = Functions.find("MPI_Alloc_mem", "lHp");
  private static final MethodHandle FREE_MEM = Functions.find("MPI_Free_mem", "p");
  private static final MethodHandle TYPE_CONTIGUOUS = Functions.find("MPI_Type_contiguous", "iHp");
  private static final MethodHandle TYPE_CREATE_STRUCT =
      Functions.find("MPI_Type_create_struct", "ipppp");
  private static final MethodHandle TYPE_COMMIT = Functions.find("MPI_Type_commit", "p");
  private static final MethodHandle TYPE_FREE = Functions.find("MPI_Type_free", "p");
  private static final MethodHandle WIN_ALLOCATE_SHARED =
      Functions.find("MPI_Win_allocate_shared", "liHHpp");
  private static final MethodHandle WIN_SHARED_QUERY =
      Functions.find("MPI_Win_shared_query", "Hippp");
  private static final MethodHandle WIN_FREE = Functions.find("MPI_Win_free", "p");
  private static final MethodHandle WIN_LOCK_ALL = Functions.find("MPI_Win_lock_all", "iH");
  private static final MethodHandle WIN_UNLOCK_ALL = Functions.find("MPI_Win_unlock_all", "H");
  private static final MethodHandle WIN_SYNC = Functions.find("MPI_Win_sync", "H");
  private static final MethodHandle SEND = Functions.find("MPI_Send", "pnHiiH");
  private static final MethodHandle SSEND = Functions.find("MPI_Ssend", "pnHiiH");
  private static final MethodHandle ISEND = Functions.find("MPI_Isend", "pnHiiHp");
  private static final MethodHandle ISSEND = Functions.find("MPI_Issend", "pnHiiHp");
  private static final MethodHandle RECV = Functions.find("MPI_Recv", "pnHiiHp");
  private static final MethodHandle IRECV = Functions.find("MPI_Irecv", "pnHiiHp");
  private static final MethodHandle IPROBE = Functions.find("MPI_Iprobe", "iiHpp");
  private static final MethodHandle TEST = Functions.find("MPI_Test", "ppp");
  private static final MethodHandle AWAIT = Functions.find("MPI_Wait", "pp");
  private static final MethodHandle CANCEL = Functions.find("MPI_Cancel", "p");
  private static final MethodHandle TEST_CANCELLED = Functions.find("MPI_Test_cancelled", "pp");
  private static final MethodHandle GET_ELEMENTS = Functions.find("MPI_Get_elements_x", "pHp");

  private Mpi() {}

  static int initThread(
      MemorySegment argc, MemorySegment argv, int required, MemorySegment provided) {
    try {
      return (int) INIT_THREAD.invokeExact(argc, argv, required, provided);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int initialized(MemorySegment flag) {
    try {
      return (int) INITIALIZED.invokeExact(flag);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int finalized(MemorySegment flag) {
    try {
      return (int) FINALIZED.invokeExact(flag);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int finish() {
    try {
      return (int) FINISH.invokeExact();
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int queryThread(MemorySegment provided) {
    try {
      return (int) QUERY_THREAD.invokeExact(provided);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int abort(long comm, int code) {
    try {
      return (int) ABORT.invokeExact(comm, code);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int errorString(int code, MemorySegment text, MemorySegment length) {
    try {
      return (int) ERROR_STRING.invokeExact(code, text, length);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int errorClass(int code, MemorySegment errorClass) {
    try {
      return (int) ERROR_CLASS.invokeExact(code, errorClass);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int commRank(long comm, MemorySegment rank) {
    try {
      return (int) COMM_RANK.invokeExact(comm, rank);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int commSize(long comm, MemorySegment size) {
    try {
      return (int) COMM_SIZE.invokeExact(comm, size);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int commIdup(long comm, MemorySegment made, MemorySegment request) {
    try {
      return (int) COMM_IDUP.invokeExact(comm, made, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int commSplit(long comm, int color, int key, MemorySegment made) {
    try {
      return (int) COMM_SPLIT.invokeExact(comm, color, key, made);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int commSplitType(long comm, int type, int key, long info, MemorySegment made) {
    try {
      return (int) COMM_SPLIT_TYPE.invokeExact(comm, type, key, info, made);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int commGroup(long comm, MemorySegment made) {
    try {
      return (int) COMM_GROUP.invokeExact(comm, made);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int groupIncl(long group, int count, MemorySegment ranks, MemorySegment made) {
    try {
      return (int) GROUP_INCL.invokeExact(group, count, ranks, made);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int groupTranslateRanks(
      long group, int count, MemorySegment ranks, long other, MemorySegment translated) {
    try {
      return (int) GROUP_TRANSLATE_RANKS.invokeExact(group, count, ranks, other, translated);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int groupFree(MemorySegment group) {
    try {
      return (int) GROUP_FREE.invokeExact(group);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int commCreateGroup(long comm, long group, int tag, MemorySegment made) {
    try {
      return (int) COMM_CREATE_GROUP.invokeExact(comm, group, tag, made);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int commFree(MemorySegment comm) {
    try {
      return (int) COMM_FREE.invokeExact(comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int winSetErrhandler(long window, long handler) {
    try {
      return (int) WIN_SET_ERRHANDLER.invokeExact(window, handler);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int commSetErrhandler(long comm, long handler) {
    try {
      return (int) COMM_SET_ERRHANDLER.invokeExact(comm, handler);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int commGetAttr(long comm, int key, MemorySegment value, MemorySegment flag) {
    try {
      return (int) COMM_GET_ATTR.invokeExact(comm, key, value, flag);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int allocMem(long bytes, long info, MemorySegment address) {
    try {
      return (int) ALLOC_MEM.invokeExact(bytes, info, address);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int freeMem(MemorySegment address) {
    try {
      return (int) FREE_MEM.invokeExact(address);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int typeContiguous(int count, long type, MemorySegment made) {
    try {
      return (int) TYPE_CONTIGUOUS.invokeExact(count, type, made);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int typeCreateStruct(
      int count,
      MemorySegment lengths,
      MemorySegment displacements,
      MemorySegment types,
      MemorySegment made) {
    try {
      return (int) TYPE_CREATE_STRUCT.invokeExact(count, lengths, displacements, types, made);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int typeCommit(MemorySegment type) {
    try {
      return (int) TYPE_COMMIT.invokeExact(type);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int typeFree(MemorySegment type) {
    try {
      return (int) TYPE_FREE.invokeExact(type);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int winAllocateShared(
      long bytes, int unit, long info, long comm, MemorySegment address, MemorySegment window) {
    try {
      return (int) WIN_ALLOCATE_SHARED.invokeExact(bytes, unit, info, comm, address, window);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int winSharedQuery(
      long window, int rank, MemorySegment bytes, MemorySegment unit, MemorySegment address) {
    try {
      return (int) WIN_SHARED_QUERY.invokeExact(window, rank, bytes, unit, address);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int winFree(MemorySegment window) {
    try {
      return (int) WIN_FREE.invokeExact(window);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int winLockAll(int assertion, long window) {
    try {
      return (int) WIN_LOCK_ALL.invokeExact(assertion, window);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int winUnlockAll(long window) {
    try {
      return (int) WIN_UNLOCK_ALL.invokeExact(window);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int winSync(long window) {
    try {
      return (int) WIN_SYNC.invokeExact(window);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int send(MemorySegment data, long count, long type, int destination, int tag, long comm) {
    try {
      return (int) SEND.invokeExact(data, count, type, destination, tag, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int ssend(MemorySegment data, long count, long type, int destination, int tag, long comm) {
    try {
      return (int) SSEND.invokeExact(data, count, type, destination, tag, comm);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int isend(
      MemorySegment data,
      long count,
      long type,
      int destination,
      int tag,
      long comm,
      MemorySegment request) {
    try {
      return (int) ISEND.invokeExact(data, count, type, destination, tag, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int issend(
      MemorySegment data,
      long count,
      long type,
      int destination,
      int tag,
      long comm,
      MemorySegment request) {
    try {
      return (int) ISSEND.invokeExact(data, count, type, destination, tag, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int recv(
      MemorySegment data,
      long count,
      long type,
      int source,
      int tag,
      long comm,
      MemorySegment status) {
    try {
      return (int) RECV.invokeExact(data, count, type, source, tag, comm, status);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int irecv(
      MemorySegment data,
      long count,
      long type,
      int source,
      int tag,
      long comm,
      MemorySegment request) {
    try {
      return (int) IRECV.invokeExact(data, count, type, source, tag, comm, request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int iprobe(int source, int tag, long comm, MemorySegment flag, MemorySegment status) {
    try {
      return (int) IPROBE.invokeExact(source, tag, comm, flag, status);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int test(MemorySegment request, MemorySegment flag, MemorySegment status) {
    try {
      return (int) TEST.invokeExact(request, flag, status);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int await(MemorySegment request, MemorySegment status) {
    try {
      return (int) AWAIT.invokeExact(request, status);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int cancel(MemorySegment request) {
    try {
      return (int) CANCEL.invokeExact(request);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int testCancelled(MemorySegment status, MemorySegment flag) {
    try {
      return (int) TEST_CANCELLED.invokeExact(status, flag);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }

  static int getElements(MemorySegment status, long type, MemorySegment count) {
    try {
      return (int) GET_ELEMENTS.invokeExact(status, type, count);
    } catch (Throwable e) {
      throw Functions.failed(e);
    }
  }
}
