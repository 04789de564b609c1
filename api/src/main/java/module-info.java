/// The API of comm4j, for programs (`org.comm4j.api`) and for plugins (`org.comm4j.api.spi`).
@org.jspecify.annotations.NullMarked
module org.comm4j.api {
  requires static transitive org.jspecify;

  exports org.comm4j.api;
  exports org.comm4j.api.spi;

  uses org.comm4j.api.spi.BackendProvider;
  uses org.comm4j.api.spi.CallListener;
  uses org.comm4j.api.spi.SessionFactory;
}
