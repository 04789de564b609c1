package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.function.UnaryOperator;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// The contract of transports is tested too, with some that are broken on purpose.
@Timeout(60)
class TransportContractTest {
  /// For what is caught because it never arrives.
  private static final Duration BOUND = Duration.ofSeconds(1);

  private static TransportContract contract(UnaryOperator<Transport> wire, Duration bound) {
    return new TransportContract() {
      @Override
      protected List<? extends Transport> transports(int size) {
        return MemoryTransport.group(size, 1024, 0).stream().map(wire).toList();
      }

      @Override
      protected Duration bound() {
        return bound;
      }
    };
  }

  private static void isCaught(ThrowingCallable test, TransportContract contract) {
    assertThatThrownBy(test).isInstanceOf(AssertionError.class);
    assertThatCode(contract::closeAll).doesNotThrowAnyException();
  }

  @Test
  void close_losesWhatWasTaken_isCaught() {
    var contract = contract(BrokenWire.Lagging::new, BOUND);
    isCaught(() -> contract.close_wayFull_whatWasTakenArrives(100), contract);
  }

  @Test
  void park_takesTheInterrupt_isCaught() {
    var contract = contract(BrokenWire.SoundAsleep::new, Duration.ofSeconds(30));
    isCaught(contract::park_interrupted_keepsTheFlag, contract);
  }

  /// Not by the bound of the others, which then wait in vain.
  @Test
  void offer_corruptsWhatOneRankGets_isCaughtAtOnce() {
    var contract = contract(BrokenWire.Corrupting::new, Duration.ofMinutes(10));
    isCaught(() -> contract.offer_ranksOnTheirOwnThreads_arriveInOrder(2), contract);
  }
}
