package org.comm4j.core.kernel;

import java.util.Objects;
import org.comm4j.api.ReduceOp;

/// A user-defined operator threw, which is told from what the library throws in the same call. What
/// it threw may be an exception of this library too, of another communicator that it uses.
public final class OperatorFailedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  OperatorFailedException(ReduceOp.UserDefined op, Throwable thrown) {
    super("user-defined operator '%s' threw %s".formatted(op.name(), thrown), thrown);
  }

  /// {@return what the operator threw}
  public Throwable thrown() {
    return Objects.requireNonNull(getCause());
  }

  /// {@return what was thrown, by an operator or the library}
  public static Throwable unwrapped(Throwable thrown) {
    return thrown instanceof OperatorFailedException operator ? operator.thrown() : thrown;
  }
}
