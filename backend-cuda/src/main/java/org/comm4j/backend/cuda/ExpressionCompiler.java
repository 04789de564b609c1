package org.comm4j.backend.cuda;

import java.nio.file.Path;
import java.util.Optional;
import org.comm4j.api.spi.Availability;

/// Compiles the kernels of [Expression]s at run time. Thread-safe.
interface ExpressionCompiler {
  /// {@return why it can't be used on this host; empty if it can} Judged by looking only.
  Optional<Availability> missing(CudaOptions options);

  /// {@return the file of the library that compiles; empty where there is none}
  Optional<Path> file(CudaOptions options);

  /// Compiles an expression's kernels, or gives what it has compiled before.
  ///
  /// @return PTX, as [CudaDevice#load] takes it
  /// @throws IllegalArgumentException if the expression is wrong, with what the compiler says
  /// @throws org.comm4j.api.BackendUnavailableException if the compiler can't be used
  byte[] compile(Expression expression, CudaOptions options);
}
