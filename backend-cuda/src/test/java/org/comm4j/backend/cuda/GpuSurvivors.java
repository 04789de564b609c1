package org.comm4j.backend.cuda;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.comm4j.api.Collective;
import org.comm4j.api.CommBuffer;
import org.comm4j.api.CommConfig;
import org.comm4j.api.CommData;
import org.comm4j.api.DataType;
import org.comm4j.api.PeerFailedException;
import org.comm4j.api.ReduceOp;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Session;

/// One of the processes that [GpuProcesses] starts, the last of which is killed inside an
/// all-reduce: the others hear of it by an exception that names it, and the communicator without it
/// works.
final class GpuSurvivors {
  private static final int COUNT = 100_000;
  private static final int THREADS = 16; // of a block on the model: each is one of the host

  private final Session session;
  private final CommConfig config;
  private final int victim;
  private final int killer;

  GpuSurvivors(Session session, CommConfig config) {
    this.session = session;
    this.config = config;
    this.victim = session.size() - 1;
    this.killer = victim - 1;
  }

  private static CudaProvider provider(Path folder) throws IOException {
    if (TestDevice.isReal()) {
      return new CudaProvider();
    }
    ModelDriver.get().reset();
    var host = new FakeHost(folder).library("usr/lib64/libcuda.so.1").device("nvidia0");
    UUID process = UUID.randomUUID();
    return new CudaProvider(host.files(), () -> process, THREADS, new ModelCompiler());
  }

  /// @param folder this process's own
  void run(Path folder) throws IOException {
    BackendCommunicator all = provider(folder).open(session, config);
    CommBuffer buffer = all.allocate(DataType.FLOAT32, COUNT);
    check(all, buffer);
    Collective call = new Collective.AllReduce(buffer.data(), buffer.data(), ReduceOp.SUM);
    closeBesideACall(all, buffer, call);
    if (session.rank() == killer) {
      for (int rank = 0; rank < session.size(); rank++) {
        if (rank != killer) {
          session.get("called/" + rank, config.timeout());
        }
      }
      ProcessHandle process = ProcessHandle.of(session.member(victim).pid()).orElseThrow();
      process.destroyForcibly();
      process.onExit().join();
    }
    long start = System.nanoTime();
    try {
      var pending = all.submit(call);
      if (session.rank() != killer) {
        session.put("called/" + session.rank(), new byte[0]);
      }
      pending.await(Long.MAX_VALUE);
      throw new AssertionError("rank %d: the call ended well".formatted(session.rank()));
    } catch (PeerFailedException e) {
      if (!e.ranks().equals(List.of(victim))) {
        throw new AssertionError("expected: rank %d has failed".formatted(victim), e);
      }
      System.out.printf(
          "rank %d of %d: heard after %d ms: %s%n",
          session.rank(),
          session.size(),
          TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start),
          e.getMessage());
    } finally {
      while (session.rank() == victim) {
        LockSupport.park(); // whatever came first, it is to be killed
      }
    }
    BackendCommunicator rest = all.shrink().communicator();
    CommBuffer data = rest.allocate(DataType.FLOAT32, COUNT);
    check(rest, data);
    System.out.printf(
        "rank %d of %d: the communicator of %d works%n",
        session.rank(), session.size(), rest.size());
    data.close();
    rest.close();
    buffer.close();
    all.close();
  }

  /// A communicator is closed while a kernel of another one waits for ranks that come later.
  private void closeBesideACall(BackendCommunicator all, CommBuffer buffer, Collective call) {
    BackendCommunicator second = all.duplicate();
    check(second, buffer);
    if (session.rank() == 0) {
      var waiting = all.submit(call);
      long start = System.nanoTime();
      second.close();
      System.out.printf(
          "rank 0 of %d: beside a kernel that waits, a communicator closed in %d ms%n",
          session.size(), TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start));
      session.put("closed", new byte[0]);
      waiting.await(Long.MAX_VALUE);
    } else {
      session.get("closed", config.timeout());
      second.close();
      var _ = all.run(call);
    }
  }

  private static void check(BackendCommunicator comm, CommBuffer buffer) {
    float[] values = new float[COUNT];
    Arrays.fill(values, comm.rank() + 1);
    buffer.write(0, CommData.of(values));
    var _ = comm.run(new Collective.AllReduce(buffer.data(), buffer.data(), ReduceOp.SUM));
    buffer.read(0, CommData.of(values));
    float expected = comm.size() * (comm.size() + 1) / 2f;
    for (float value : values) {
      if (value != expected) {
        throw new AssertionError("%s (expected: %s)".formatted(value, expected));
      }
    }
  }
}
