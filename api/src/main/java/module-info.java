import org.jspecify.annotations.NullMarked;

/// What users and plugin authors compile against.
@NullMarked
module org.comm4j.api {
  requires static transitive org.jspecify;
}
