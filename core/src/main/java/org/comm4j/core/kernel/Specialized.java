package org.comm4j.core.kernel;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodHandles.Lookup;
import java.util.Objects;

/// One loop in the source, one class per operator in the machine.
///
/// A loop that calls its operator through a field is fast for the first operator and slow from the
/// third on: the JIT compiler keeps one profile per method and gives up inlining when many
/// operators share it. So a loop is written once as a template whose operator is a `static final`
/// constant, and loaded again, as a hidden class, for each operator: each copy has its own profile,
/// and in it the operator is a constant that is always inlined. A copy is made once per kernel and
/// takes less than a millisecond. It belongs to no nest, so a template must not use what is private
/// in another class.
final class Specialized {
  private Specialized() {}

  /// An instance of a copy of `template`, in which [#operator] gives this operator.
  static <T> T copy(Class<? extends T> template, Class<T> as, Object operator) {
    String name = template.getName();
    String file = name.substring(name.lastIndexOf('.') + 1) + ".class";
    try (InputStream bytes = template.getResourceAsStream(file)) {
      if (bytes == null) {
        throw new FileNotFoundException(
            file
                + ", of the library; if too many files are open, let its process open more (ulimit -n)");
      }
      Lookup copy =
          MethodHandles.lookup()
              .defineHiddenClassWithClassData(bytes.readAllBytes(), operator, true);
      return as.cast(copy.lookupClass().getDeclaredConstructor().newInstance());
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + e.getMessage(), e);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError("cannot specialize " + name, e);
    }
  }

  /// For a template's static initializer: the operator of this copy.
  static <T> T operator(Lookup template, Class<T> type) {
    try {
      return Objects.requireNonNull(
          MethodHandles.classData(template, "_", type), "a template is not used itself");
    } catch (IllegalAccessException e) {
      throw new LinkageError("cannot read the operator", e);
    }
  }
}
