import org.jspecify.annotations.NullMarked;

/// Guice modules for applications that use comm4j.
@NullMarked
module org.comm4j.guice {
  requires transitive com.google.guice;
  requires transitive org.comm4j.api;
  // The automatic module com.google.guice needs them but cannot say so.
  requires com.google.common;
  requires jakarta.inject;
  requires static org.jspecify;

  exports org.comm4j.guice;

  opens org.comm4j.guice to
      com.google.guice;
}
