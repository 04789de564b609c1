import org.jspecify.annotations.NullMarked;

/// The command line.
@NullMarked
module org.comm4j.cli {
  requires com.google.gson;
  requires info.picocli;
  requires java.compiler;
  requires java.logging;
  requires java.management;
  requires org.comm4j.core;
  requires org.comm4j.guice;
  requires org.comm4j.tck;
  requires static org.jspecify;

  opens org.comm4j.cli to
      info.picocli;
}
