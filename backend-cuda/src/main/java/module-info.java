import org.jspecify.annotations.NullMarked;

/// Ranks that own NVIDIA GPUs (`cuda`), over the CUDA driver API.
@NullMarked
module org.comm4j.backend.cuda {
  requires org.comm4j.core;
  requires jcuda;
  requires static org.jspecify;

  uses org.comm4j.core.transport.HostTransports;

  provides org.comm4j.api.spi.BackendProvider with
      org.comm4j.backend.cuda.CudaProvider;
}
