import org.jspecify.annotations.NullMarked;

/// Ranks as threads of one JVM (`local`) and as processes of one host (`shm`).
@NullMarked
module org.comm4j.backend.local {
  requires org.comm4j.core;
  requires static org.jspecify;

  provides org.comm4j.api.spi.BackendProvider with
      org.comm4j.backend.local.LocalProvider,
      org.comm4j.backend.local.ShmProvider;
  provides org.comm4j.core.transport.HostTransports with
      org.comm4j.backend.local.ShmTransports;
}
