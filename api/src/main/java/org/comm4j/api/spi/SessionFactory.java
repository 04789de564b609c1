package org.comm4j.api.spi;

import java.util.List;
import org.comm4j.api.CommConfig;

/// Brings the ranks of a launch together. Found by [java.util.ServiceLoader]; `core` has one.
public interface SessionFactory {
  /// Joins the session that the configuration names and waits until all ranks have.
  ///
  /// @param config with rank, world size and a meeting place
  /// @param usableBackends names that this rank could use, best first; the other ranks see them
  /// @return the session, complete; the caller closes it
  /// @throws org.comm4j.api.JoinException if the group does not come together; says why
  Session join(CommConfig config, List<String> usableBackends);
}
