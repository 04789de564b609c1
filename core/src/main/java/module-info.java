/// Sessions, plans, and the engine that runs them over any transport.
@org.jspecify.annotations.NullMarked
module org.comm4j.core {
  requires transitive org.comm4j.api;
  requires static jdk.incubator.vector;
  requires static jdk.jfr;
  requires static org.jspecify;

  exports org.comm4j.core.algorithm;
  exports org.comm4j.core.engine;
  exports org.comm4j.core.kernel;
  exports org.comm4j.core.schedule;
  exports org.comm4j.core.select;
  exports org.comm4j.core.session;
  exports org.comm4j.core.sim;
  exports org.comm4j.core.transport;

  provides org.comm4j.api.spi.CallListener with
      org.comm4j.core.events.CallEvents;
  provides org.comm4j.api.spi.SessionFactory with
      org.comm4j.core.session.DefaultSessionFactory;
}
