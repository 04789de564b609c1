package org.comm4j.tck.example;

import java.util.List;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.tck.CommunicatorContract;
import org.comm4j.tck.ThreadGroups;

/// `queue` keeps the contract.
final class QueueContractTest extends CommunicatorContract {
  /// All but the deadlines, which are the engine's and take long.
  @Override
  protected String wanted() {
    return "(?!.*\\bF4\\b).*";
  }

  /// Collectives in groups of other sizes are the engine's too.
  @Override
  protected List<Integer> otherSizes() {
    return List.of();
  }

  @Override
  protected LocalGroup open(int size, CommConfig config) {
    return ThreadGroups.open(new QueueProvider(), size, config);
  }
}
