package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.comm4j.api.TransportFailedException;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

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

  @Test
  void park_takesWhatHasCome_isCaught() {
    var contract = contract(BrokenWire.Staging::new, Duration.ofSeconds(30));
    isCaught(contract::park_anotherThreadPollsAndOffers_everythingArrivesInOrder, contract);
  }

  @Test
  void park_hasTheLockOfPoll_isCaught() {
    var contract = contract(BrokenWire.Locking::new, BOUND);
    isCaught(contract::park_anotherThreadPollsAndOffers_isNotWaitedFor, contract);
  }

  @Test
  void wakeUp_findsNobodyAsleep_isCaught() {
    var contract = contract(BrokenWire.Forgetful::new, BOUND);
    isCaught(contract::wakeUp_beforePark_endsThatPark, contract);
    isCaught(contract::park_somethingHasCome_endsIt, contract);
  }

  @Test
  void park_returnsAtOnce_isCaught() {
    var contract = contract(BrokenWire.Sleepless::new, BOUND);
    isCaught(contract::park_nothingHappens_sleeps, contract);
  }

  @Test
  void poll_keepsSomeRoom_isCaught() {
    var taken = new AtomicInteger();
    var contract = contract(wire -> new BrokenWire.Leaking(wire, taken), BOUND);
    isCaught(contract::offer_roomUsedForLong_isGivenBack, contract);
  }

  @Test
  void close_neverEnds_isCaught() {
    var contract = contract(BrokenWire.Lingering::new, BOUND);
    assertThatThrownBy(contract::close_peerPollsNothing_endsSoon)
        .isInstanceOf(AssertionError.class);
  }

  @Test
  void poll_peerHasDied_throwsAndIsCaught() {
    var isOneDead = new AtomicBoolean();
    var contract =
        new TransportContract() {
          @Override
          protected List<? extends Transport> transports(int size) {
            return MemoryTransport.group(size, 1024, 0).stream()
                .map(each -> new BrokenWire.Startled(each, isOneDead))
                .toList();
          }

          @Override
          protected boolean kill(Transport rank) {
            isOneDead.set(true);
            return true;
          }
        };
    assertThatThrownBy(contract::kill_onePeer_isNoFailureOfTheOthers)
        .isInstanceOf(TransportFailedException.class);
    assertThatCode(contract::closeAll).doesNotThrowAnyException();
  }

  @Test
  void close_leavesAFile_isCaught(@TempDir Path folder) {
    var contract =
        new TransportContract() {
          @Override
          protected List<? extends Transport> transports(int size) {
            return MemoryTransport.group(size, 1024, 0).stream()
                .map(each -> new BrokenWire.Littering(each, folder))
                .toList();
          }

          @Override
          protected List<Path> folders() {
            return List.of(folder);
          }

          @Override
          protected Duration bound() {
            return BOUND;
          }
        };
    assertThatThrownBy(contract::close_all_leavesNoFiles)
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining(folder.toString());
  }

  @Test
  void offer_loses_failureSaysHowMuchHasCome() {
    var contract = contract(BrokenWire.Dropping::new, BOUND);
    assertThatThrownBy(() -> contract.offer_noRoom_returnsFalseAndLosesNothing(100))
        .hasMessageContaining("rank 1 received 16 of 17; so far from rank 0: 16");
  }

  /// Not by the bound of the others, which then wait in vain.
  @Test
  void offer_corruptsWhatOneRankGets_isCaughtAtOnce() {
    var contract = contract(BrokenWire.Corrupting::new, Duration.ofMinutes(10));
    isCaught(() -> contract.offer_ranksOnTheirOwnThreads_arriveInOrder(2), contract);
  }
}
