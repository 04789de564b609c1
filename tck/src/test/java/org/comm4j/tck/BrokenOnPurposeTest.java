package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.spi.BackendCommunicator;
import org.comm4j.api.spi.Session;
import org.comm4j.core.engine.EngineCommunicator;
import org.comm4j.core.transport.Transport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The kit is tested too: transports and communicators that are broken on purpose, each caught by a
/// check of the rule that it breaks.
class BrokenOnPurposeTest {
  private static final Duration BOUND = Duration.ofSeconds(20);

  /// For what is caught because its check never ends.
  private static final Duration BOUND_OF_ENDLESS = Duration.ofSeconds(3);

  /// Nothing of it waits in vain, so a busy machine may take its time.
  private static final Duration BOUND_OF_WHOLE = Duration.ofMinutes(2);

  private static final int SIZE = 4;

  /// Something broken.
  ///
  /// @param rule must be named by what catches it
  /// @param bound of each check
  record Broken(
      String what,
      String rule,
      Duration bound,
      UnaryOperator<Session> session,
      UnaryOperator<Transport> wire,
      UnaryOperator<BackendCommunicator> door) {
    static Broken session(String what, String rule, UnaryOperator<Session> session) {
      return new Broken(
          what, rule, BOUND, session, UnaryOperator.identity(), UnaryOperator.identity());
    }

    static Broken wire(String what, String rule, UnaryOperator<Transport> wire) {
      return new Broken(
          what, rule, BOUND, UnaryOperator.identity(), wire, UnaryOperator.identity());
    }

    static Broken door(String what, String rule, UnaryOperator<BackendCommunicator> door) {
      return new Broken(
          what, rule, BOUND, UnaryOperator.identity(), UnaryOperator.identity(), door);
    }

    Broken within(Duration bound) {
      return new Broken(what, rule, bound, session, wire, door);
    }

    static Broken fold(String what, String rule, BrokenDoors.Fold fold) {
      return door(what, rule, BrokenDoors.folding(fold));
    }

    LocalGroup open(int size, CommConfig config) {
      List<MemoryTransport> transports = MemoryTransport.group(size, 1024, 0);
      return ThreadGroups.open(
          size,
          joined -> {
            Transport transport = wire.apply(transports.get(joined.rank()));
            return door.apply(
                EngineCommunicator.open("broken", session.apply(joined), transport, null, config));
          });
    }

    @Override
    public String toString() {
      return what + " (" + rule + ")";
    }
  }

  static Stream<Broken> everythingBroken() {
    return Stream.of(
        Broken.wire("drops payloads", "P1", BrokenWire.Dropping::new),
        Broken.wire("duplicates payloads", "P1", BrokenWire.Duplicating::new),
        Broken.wire("reorders payloads of a pair", "P1", BrokenWire.Reordering::new),
        Broken.wire("corrupts a byte", "P1", BrokenWire.Corrupting::new),
        Broken.wire("corrupts a byte of a collective", "O4", BrokenWire.Corrupting::new),
        Broken.wire("truncates payloads", "O6", BrokenWire.Truncating::new),
        Broken.wire("keeps payloads", "P11", BrokenWire.Keeping::new),
        Broken.session("never hears of a death", "F5", BrokenOnPurposeTest::deaf),
        Broken.session("never hears of a leave", "F11", BrokenOnPurposeTest::deaf),
        Broken.fold("folds in another order", "B3", BrokenDoors::reversed),
        Broken.fold("has other bits on each rank", "B1", BrokenDoors::startingHere),
        Broken.fold("has other bits the second time", "B2", BrokenDoors::asItComes),
        Broken.fold("rounds each time", "T3", BrokenDoors::roundingEachTime),
        Broken.fold("sums for an average of integers", "T4", BrokenDoors::sumForIntegers),
        Broken.fold("sums for an average of floats", "T5", BrokenDoors::sumForFloats),
        Broken.fold("loses NaN in MAX", "T6", BrokenDoors::losingNan),
        Broken.fold("takes bits for truth", "T8", BrokenDoors::bitsForLogic),
        Broken.fold("takes the highest index", "T9", BrokenDoors::highestIndex),
        Broken.fold("has no saturation", "T11", BrokenDoors::infiniteE4m3),
        Broken.fold("has negative NaNs", "T12", BrokenDoors::negativeNan),
        Broken.fold("saturates integers", "T2", BrokenDoors::saturating),
        Broken.door("turns user-defined operators", "T13", BrokenDoors.userOperatorsAreTurned()),
        Broken.door("ignores the root", "O3", BrokenDoors.rootIsAlwaysZero()),
        Broken.door("ignores epilogues", "E1", BrokenDoors.epiloguesAreIgnored()),
        Broken.door("starts biases anew", "E1", BrokenDoors.biasesStartAnew()),
        Broken.door("writes no other type", "E2", BrokenDoors.outputsKeepTheInputsType()),
        Broken.door("overwrites residuals", "E3", BrokenDoors.residualsAreOverwritten()),
        Broken.door("ignores each rank's epilogue", "E4", BrokenDoors.epiloguesAreIgnored()),
        Broken.door("ignores expressions", "E6", BrokenDoors.expressionsAreIgnored()),
        Broken.door("refuses expressions", "E6", BrokenDoors.expressionsAreRefused()),
        Broken.door("shrinks without saying so", "G8", BrokenDoors.shrinkIsNotSaid()),
        Broken.door("has no barrier", "O16", BrokenDoors.barrierIsNothing()),
        Broken.door("is off by one in V-forms", "O5", BrokenDoors.displacementsAreOffByOne()),
        Broken.door("writes inputs", "D4", BrokenDoors.inputsAreWritten()),
        Broken.door("loses inputs on failure", "F2", BrokenDoors.inputsAreLostOnFailure()),
        Broken.door("writes ignored outputs", "D5", BrokenDoors.ignoredOutputsAreWritten()),
        Broken.door("does not zero memory", "D10", BrokenDoors.memoryIsNotZeroed()),
        Broken.door("ignores tags", "P3", BrokenDoors.tagsAreIgnored()),
        Broken.door("ignores sources", "P3", BrokenDoors.sourcesAreIgnored()),
        Broken.door("is not woken by interrupts", "F9", BrokenDoors.sleepersAreNotInterrupted()),
        Broken.door("goes on after its own abort", "F6", BrokenDoors.ownAbortsEndNothing())
            .within(BOUND_OF_ENDLESS),
        Broken.door("makes children alone", "G9", BrokenDoors.childrenAreMadeAlone())
            .within(BOUND_OF_ENDLESS),
        Broken.door("does not compare operators", "M2", BrokenDoors.operatorsAreNotCompared())
            .within(BOUND_OF_ENDLESS),
        Broken.door("does not wait in sync", "O25", BrokenDoors.syncIsNothing()),
        Broken.door("ignores keys", "G2", BrokenDoors.keysAreIgnored()),
        Broken.door("closes slowly", "L1", BrokenDoors.closeTakesLong()),
        Broken.door("never closes", "F10", BrokenDoors.closeNeverEnds()).within(BOUND_OF_ENDLESS));
  }

  /// A session that never has news.
  private static Session deaf(Session session) {
    return (Session)
        Proxy.newProxyInstance(
            Session.class.getClassLoader(),
            new Class<?>[] {Session.class},
            (_, method, arguments) -> {
              try {
                return switch (method.getName()) {
                  case "news" -> Session.News.NONE;
                  case "onNews" -> null;
                  default -> method.invoke(session, arguments);
                };
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  @ParameterizedTest
  @MethodSource("everythingBroken")
  void broken_onPurpose_isCaughtByItsRule(Broken broken) {
    List<LiveCheck> checks =
        LiveCheck.ofCommunicators().stream()
            .filter(check -> check.rules().contains(broken.rule()))
            .toList();
    assertThat(checks).isNotEmpty();
    for (LiveCheck check : checks) {
      RuleViolation violation = run(check, broken, Duration.ofSeconds(2));
      if (violation != null && violation.rules().contains(broken.rule())) {
        return;
      }
    }
    throw new AssertionError(
        "what %s was not caught by a check of %s".formatted(broken.what(), broken.rule()));
  }

  /// @param timeout of calls, of which some wait in vain where something is broken
  @org.jspecify.annotations.Nullable
  private static RuleViolation run(LiveCheck check, Broken broken, Duration timeout) {
    CommConfig told =
        CommConfig.builder()
            .timeout(timeout)
            .option("COMM_BROKEN_EXPRESSIONS", CommunicatorContract.EXPRESSION)
            .build();
    CommConfig config = check.needs().setting().apply(told);
    try {
      RankThreads.run(
          check,
          broken.open(Math.max(SIZE, check.needs().ranks()), config),
          config,
          1,
          broken.bound());
      return null;
    } catch (RuleViolation violation) {
      return violation;
    }
  }

  @Test
  void broken_keepsMemoryOfClosedGroups_isCaught() {
    List<byte[]> kept = new ArrayList<>();
    leavesMemory(() -> {
      kept.add(new byte[1_000_000]);
      return UnaryOperator.identity();
    });
    assertThat(kept).hasSize(12);
  }

  @Test
  void broken_keepsMemoryOfAbortedGroups_isCaught() {
    List<byte[]> kept = Collections.synchronizedList(new ArrayList<>());
    leavesMemory(() -> BrokenDoors.abortsKeep(kept));
    assertThat(kept).isNotEmpty();
  }

  /// @param doors called for each group
  private static void leavesMemory(Supplier<UnaryOperator<BackendCommunicator>> doors) {
    var contract =
        new CommunicatorContract() {
          @Override
          protected LocalGroup open(int size, CommConfig config) {
            return Broken.door("keeps memory", "L8", doors.get()).open(size, config);
          }

          @Override
          Duration patience() {
            return Duration.ofSeconds(1); // what is kept stays
          }
        };
    assertThatExceptionOfType(RuleViolation.class)
        .isThrownBy(contract::closedGroups_leaveNothing)
        .satisfies(violation -> assertThat(violation.rules()).containsExactly("L8"));
  }

  @Test
  void broken_neverOpens_isReportedAsNotEnded() {
    var contract =
        new CommunicatorContract() {
          @Override
          protected LocalGroup open(int size, CommConfig config) throws Exception {
            new CountDownLatch(1).await();
            throw new AssertionError("it has opened");
          }

          @Override
          protected Duration bound() {
            return Duration.ofMillis(200);
          }
        };
    assertThatExceptionOfType(RuleViolation.class)
        .isThrownBy(contract::closedGroups_leaveNothing)
        .withMessageContaining("opening a group of 4 has not ended");
  }

  /// What ranks throw when they are interrupted at last does not hide that they waited for ever.
  @Test
  void broken_receiveNeverEnds_isReportedAsNotEnded() {
    Broken broken =
        Broken.door("never ends a receive", "F10", BrokenDoors.receivesNeverEnd())
            .within(BOUND_OF_ENDLESS);
    LiveCheck check =
        LiveCheck.ofCommunicators().stream()
            .filter(each -> each.name().equals("abort_othersWait_endsTheirCalls"))
            .findAny()
            .orElseThrow();
    assertThat(run(check, broken, Duration.ofMinutes(10)))
        .hasMessageContaining("has not ended within")
        .hasMessageContaining("tck-rank-0:")
        .satisfies(violation -> assertThat(violation.rules()).contains("F10"));
  }

  /// What is not broken is not caught.
  @ParameterizedTest
  @MethodSource("wholeOnes")
  void whole_backend_isNotCaught(LiveCheck check) {
    Broken whole = Broken.wire("nothing", "", UnaryOperator.identity()).within(BOUND_OF_WHOLE);
    assertThat(run(check, whole, BOUND_OF_WHOLE)).isNull();
  }

  static Stream<LiveCheck> wholeOnes() {
    return LiveCheck.ofCommunicators().stream()
        .filter(
            check -> check.rules().stream().anyMatch(List.of("P1", "O4", "T13", "G2")::contains));
  }
}
