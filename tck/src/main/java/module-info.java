import org.jspecify.annotations.NullMarked;

/// The conformance kit: contracts as JUnit 5 classes that every backend extends.
@NullMarked
module org.comm4j.tck {
  requires java.logging;
  requires jdk.management;
  requires transitive org.assertj.core;
  requires transitive org.comm4j.core;
  requires transitive org.junit.jupiter.api;
  requires transitive org.junit.jupiter.params;
  requires static transitive org.jspecify;

  exports org.comm4j.tck;

  // JUnit calls the tests of a contract, also where only its subclass is a stranger's
  opens org.comm4j.tck to
      org.junit.platform.commons;
}
