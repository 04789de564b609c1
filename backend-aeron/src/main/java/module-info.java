import org.jspecify.annotations.NullMarked;

/// Ranks as processes over Aeron UDP (`aeron`).
@NullMarked
module org.comm4j.backend.aeron {
  requires io.aeron.client;
  requires io.aeron.driver;
  requires org.agrona;
  requires org.comm4j.core;
  requires static org.jspecify;

  uses org.comm4j.core.transport.HostTransports;

  provides org.comm4j.api.spi.BackendProvider with
      org.comm4j.backend.aeron.AeronProvider;
}
