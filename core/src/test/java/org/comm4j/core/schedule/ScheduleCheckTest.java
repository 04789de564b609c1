package org.comm4j.core.schedule;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.comm4j.core.schedule.Space.INPUT;
import static org.comm4j.core.schedule.Space.OUTPUT;
import static org.comm4j.core.schedule.Space.SCRATCH;
import static org.comm4j.core.schedule.Space.WORK;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.comm4j.core.schedule.Step.AwaitPeer;
import org.comm4j.core.schedule.Step.Copy;
import org.comm4j.core.schedule.Step.Done;
import org.comm4j.core.schedule.Step.Finish;
import org.comm4j.core.schedule.Step.Publish;
import org.comm4j.core.schedule.Step.ReadPeer;
import org.comm4j.core.schedule.Step.Receive;
import org.comm4j.core.schedule.Step.ReceiveFold;
import org.comm4j.core.schedule.Step.ReceiveReduce;
import org.comm4j.core.schedule.Step.ReceiveReduceBefore;
import org.comm4j.core.schedule.Step.Reduce;
import org.comm4j.core.schedule.Step.ReducePeer;
import org.comm4j.core.schedule.Step.Send;
import org.comm4j.core.schedule.Step.Wire;
import org.junit.jupiter.api.Test;

/// The check finds what is wrong: small right plans, and each with one fault planted.
class ScheduleCheckTest {
  private static final Slice IN = new Slice(INPUT, 0, 2);
  private static final Slice OUT = new Slice(OUTPUT, 0, 2);
  private static final Slice TEMP = new Slice(SCRATCH, 0, 2);
  private static final Slice WIDE = new Slice(WORK, 0, 2);

  /// Two ranks, two elements: rank 1 sends its input, rank 0 folds, finishes and sends the result.
  private static final class Plans {
    final List<List<Step>> first = new ArrayList<>();
    final List<List<Step>> second = new ArrayList<>();
    Shape shape = shape(CollectiveKind.ALL_REDUCE, false, 0);
    boolean inPlace;
    boolean leftFold = true;
    int stages;
    int secondStages = -1;

    Plans rank0(Step... round) {
      first.add(List.of(round));
      return this;
    }

    Plans rank1(Step... round) {
      second.add(List.of(round));
      return this;
    }

    Plans replace(int rank, int round, Step... steps) {
      (rank == 0 ? first : second).set(round, List.of(steps));
      return this;
    }

    Plans inPlace() {
      inPlace = true;
      return this;
    }

    void check() {
      Map<Integer, Schedule> plans =
          Map.of(0, plan(first, stages), 1, plan(second, secondStages < 0 ? stages : secondStages));
      ScheduleCheck.check(shape, plans::get, leftFold, inPlace);
    }

    void isRight() {
      assertThatCode(this::check).doesNotThrowAnyException();
    }

    void hasFault(String message) {
      assertThatThrownBy(this::check)
          .isInstanceOf(ScheduleCheck.Fault.class)
          .hasMessageContaining(message);
    }

    private static Schedule plan(List<List<Step>> rounds, int stages) {
      return Schedule.ofPeerMemory(
          rounds.size(), 2, 2, stages, round -> new Round(rounds.get(round)));
    }
  }

  private static Shape shape(CollectiveKind kind, boolean widened, long windowBytes) {
    return new Shape(kind, 2, 2, 0, null, null, 2, 4, widened, false, windowBytes, null);
  }

  private static Plans allReduce() {
    return new Plans()
        .rank0(new Copy(IN, OUT), new ReceiveReduce(1, OUT, Wire.VALUE))
        .rank0(new Finish(OUT, OUT, 2), new Send(1, OUT))
        .rank1(new Send(0, IN))
        .rank1(new Receive(0, OUT, Wire.VALUE));
  }

  private static Plans widenedAllReduce() {
    Plans plans =
        new Plans()
            .rank0(new Copy(IN, WIDE), new ReceiveReduce(1, WIDE, Wire.VALUE))
            .rank0(new Finish(WIDE, OUT, 2), new Send(1, OUT))
            .rank1(new Send(0, IN))
            .rank1(new Receive(0, OUT, Wire.VALUE));
    plans.shape = shape(CollectiveKind.ALL_REDUCE, true, 0);
    return plans;
  }

  private static Plans peerAllReduce() {
    Plans plans =
        new Plans()
            .rank0(
                new Publish(0, IN),
                new Copy(IN, TEMP),
                new AwaitPeer(1, 0),
                new ReducePeer(1, 0, 0, TEMP, Wire.VALUE),
                new Done(0),
                new Finish(TEMP, OUT, 2))
            .rank0(new Publish(1, OUT), new Done(1))
            .rank1(new Publish(0, IN), new Done(0))
            .rank1(new AwaitPeer(0, 1), new ReadPeer(0, 1, 0, OUT, Wire.VALUE), new Done(1));
    plans.shape = shape(CollectiveKind.ALL_REDUCE, false, 4);
    plans.stages = 2;
    return plans;
  }

  @Test
  void check_rightPlans_pass() {
    allReduce().isRight();
    allReduce().inPlace().isRight();
    widenedAllReduce().isRight();
    widenedAllReduce().inPlace().isRight();
    peerAllReduce().isRight();
    peerAllReduce().inPlace().isRight();
  }

  // Messages

  @Test
  void check_receiveMissing_isADeadlock() {
    allReduce()
        .replace(0, 0, new Copy(IN, OUT))
        .hasFault(
            "deadlock: rank 0, round 1, send output[0..2) to 1 waits, and rank 1 is in round 0;"
                + " rank 1, round 0, send input[0..2) to 0 waits, and rank 0 is in round 1");
  }

  @Test
  void check_sendToOneThatEnded_saysSo() {
    allReduce()
        .rank0(new Send(1, OUT))
        .hasFault("deadlock: rank 0, round 2, send output[0..2) to 1 waits, but rank 1 has ended");
  }

  @Test
  void check_bothSendFirst_needsBuffering() {
    new Plans()
        .rank0(new Send(1, IN))
        .rank0(new Copy(IN, OUT), new ReceiveReduce(1, OUT, Wire.VALUE))
        .rank0(new Finish(OUT, OUT, 2))
        .rank1(new Send(0, IN))
        .rank1(new Copy(IN, OUT), new ReceiveReduceBefore(0, OUT, Wire.VALUE))
        .rank1(new Finish(OUT, OUT, 2))
        .hasFault("deadlock: rank 0, round 0, send input[0..2) to 1 waits, and rank 1");
  }

  @Test
  void check_countsDiffer_namesBothSides() {
    allReduce()
        .replace(1, 0, new Send(0, IN.part(0, 1)))
        .hasFault(
            "rank 1, round 0, send input[0..1) to 0 sends 1 elements but rank 0, round 0, reduce"
                + " output[0..2) with 1 takes 2");
  }

  @Test
  void check_wireTypesDiffer_isFound() {
    widenedAllReduce()
        .replace(0, 0, new Copy(IN, WIDE), new ReceiveReduce(1, WIDE, Wire.ACCUMULATOR))
        .hasFault("expects the accumulation type but gets the data's type");
  }

  @Test
  void check_peerIsItself_isFound() {
    allReduce()
        .replace(1, 0, new Send(1, IN))
        .hasFault("rank 1, round 0, send input[0..2) to 1: peer 1 (expected: another rank)");
  }

  @Test
  void check_leftBarrierTooEarly_isFound() {
    Slice nothing = new Slice(INPUT, 0, 0);
    Plans barrier =
        new Plans().rank0(new Receive(1, nothing, Wire.VALUE)).rank1(new Send(0, nothing));
    barrier.shape =
        new Shape(CollectiveKind.BARRIER, 2, 0, 0, null, null, 1, 1, false, false, 0, null);
    barrier.hasFault("rank 1 leaves without having heard of rank 0");
    barrier
        .replace(0, 0, new Receive(1, nothing, Wire.VALUE), new Send(1, nothing))
        .replace(1, 0, new Send(0, nothing), new Receive(0, nothing, Wire.VALUE))
        .isRight();
  }

  // Slices

  @Test
  void check_sliceOutside_isFound() {
    allReduce()
        .replace(1, 1, new Receive(0, new Slice(OUTPUT, 1, 2), Wire.VALUE))
        .hasFault(
            "receive output[1..3) from 0: output[1..3) is outside the buffer, which has 2"
                + " elements");
  }

  @Test
  void check_messagesOfARoundOverlap_isFound() {
    allReduce()
        .replace(
            1, 0, new Send(0, IN), new Receive(0, OUT, Wire.VALUE), new Receive(0, OUT, Wire.VALUE))
        .hasFault("overlaps another message of its round: receive output[0..2) from 0");
  }

  @Test
  void check_sentWhileWrittenInPlace_isFoundOnlyInPlace() {
    Plans plans =
        new Plans()
            .rank0(new Send(1, IN), new Copy(IN, TEMP), new ReceiveReduce(1, TEMP, Wire.VALUE))
            .rank0(new Finish(TEMP, OUT, 2))
            .rank1(new Send(0, IN), new Receive(0, OUT, Wire.VALUE))
            .rank1(new Reduce(IN, OUT), new Finish(OUT, OUT, 2));
    plans.isRight();
    plans.inPlace().hasFault("overlaps another message of its round");
  }

  @Test
  void check_inputUsedAfterItWasOverwritten_isFoundOnlyInPlace() {
    Plans plans =
        allReduce()
            .replace(0, 0, new Receive(1, OUT, Wire.VALUE))
            .replace(
                0,
                1,
                new Copy(IN, TEMP),
                new Reduce(OUT, TEMP),
                new Finish(TEMP, OUT, 2),
                new Send(1, OUT));
    plans.isRight();
    plans
        .inPlace()
        .hasFault("output[0] is finish((x1 ∘ x1)[0] / 2) (expected: finish((x0 ∘ x1)[0] / 2))");
  }

  @Test
  void check_localStepsOverlap_isFound() {
    allReduce()
        .replace(
            1, 1, new Copy(IN, OUT), new Copy(OUT.part(0, 1), OUT.part(1, 1)), new Reduce(OUT, OUT))
        .hasFault("reduce output[0..2) into output[0..2): its slices overlap");
  }

  // Values

  @Test
  void check_inputWritten_isFound() {
    allReduce()
        .replace(1, 1, new Receive(0, IN, Wire.VALUE))
        .hasFault("rank 1, round 1, receive input[0..2) from 0: writes the input");
  }

  @Test
  void check_unwrittenRead_isFound() {
    allReduce()
        .replace(0, 0, new ReceiveReduce(1, OUT, Wire.VALUE))
        .hasFault("reads output[0], which nothing was written to");
  }

  @Test
  void check_contributionTwice_isFound() {
    allReduce()
        .replace(0, 1, new Reduce(IN, OUT), new Finish(OUT, OUT, 2), new Send(1, OUT))
        .hasFault("output[0] is finish(((x0 ∘ x1) ∘ x0)[0] / 2) (expected: finish((x0 ∘ x1)[0]");
    Plans fixed =
        allReduce().replace(0, 1, new Reduce(IN, OUT), new Finish(OUT, OUT, 3), new Send(1, OUT));
    fixed.leftFold = false;
    fixed.hasFault("(expected: each of x0..x1 once, element 0, finished / 2)");
  }

  @Test
  void check_contributionTwiceInsteadOfAnother_isFound() {
    Plans fixed =
        allReduce()
            .replace(
                0,
                0,
                new Copy(IN, OUT),
                new Copy(IN, TEMP),
                new Reduce(TEMP, OUT),
                new Receive(1, TEMP, Wire.VALUE));
    fixed.leftFold = false;
    fixed.hasFault("rank 0, output[0] is finish((x0 ∘ x0)[0] / 2)");
  }

  @Test
  void check_wrongOrder_isFoundOnlyIfPromised() {
    Plans plans =
        allReduce().replace(0, 0, new Copy(IN, OUT), new ReceiveReduceBefore(1, OUT, Wire.VALUE));
    plans.hasFault("rank 0, output[0] is finish((x1 ∘ x0)[0] / 2) (expected: finish((x0 ∘ x1)");
    plans.leftFold = false;
    plans.isRight();
  }

  @Test
  void check_foldedAsItArrives_isRightInOrderAndWhereNothingOverlaps() {
    allReduce().replace(0, 0, new ReceiveFold(1, IN, OUT, Wire.VALUE, true)).isRight();
    allReduce()
        .replace(0, 0, new ReceiveFold(1, IN, OUT, Wire.VALUE, false))
        .hasFault("rank 0, output[0] is finish((x1 ∘ x0)[0] / 2)");
    allReduce()
        .replace(0, 0, new ReceiveFold(1, IN.part(0, 1), OUT, Wire.VALUE, true))
        .hasFault("1 elements to");
    allReduce()
        .replace(0, 0, new Send(1, OUT), new ReceiveFold(1, OUT, OUT, Wire.VALUE, true))
        .hasFault("overlaps another message of its round");
  }

  @Test
  void check_otherOrderOnAnotherRank_isFound() {
    Plans plans =
        new Plans()
            .rank0(new Copy(IN, OUT), new Send(1, IN), new ReceiveReduce(1, OUT, Wire.VALUE))
            .rank0(new Finish(OUT, OUT, 2))
            .rank1(new Copy(IN, OUT), new Send(0, IN), new ReceiveReduce(0, OUT, Wire.VALUE))
            .rank1(new Finish(OUT, OUT, 2));
    plans.leftFold = false;
    plans.hasFault(
        "rank 1, output[0] is finish((x1 ∘ x0)[0] / 2) but rank 0's is finish((x0 ∘ x1)[0] / 2)");
  }

  @Test
  void check_notFinished_isFound() {
    allReduce().replace(0, 1, new Send(1, OUT)).hasFault("rank 0, output[0] is (x0 ∘ x1)[0]");
  }

  @Test
  void check_finishedTwice_isFound() {
    allReduce()
        .rank1(new Finish(OUT, OUT, 2))
        .hasFault(
            "rank 1, round 2, finish output[0..2) to output[0..2) / 2: uses a finished value");
  }

  @Test
  void check_wrongDivisor_isFound() {
    allReduce()
        .replace(0, 1, new Finish(OUT, OUT, 1), new Send(1, OUT))
        .hasFault("is finish((x0 ∘ x1)[0] / 1) (expected: finish((x0 ∘ x1)[0] / 2))");
  }

  @Test
  void check_elementsMixedUp_isFound() {
    allReduce()
        .replace(
            0,
            0,
            new Copy(IN.part(0, 1), OUT.part(1, 1)),
            new Copy(IN.part(1, 1), OUT.part(0, 1)),
            new ReceiveReduce(1, OUT, Wire.VALUE))
        .hasFault("combines element 1 with element 0");
  }

  @Test
  void check_outputNotDueIsWritten_isFound() {
    Plans scan =
        new Plans()
            .rank0(new Send(1, IN), new Copy(IN, OUT))
            .rank1(new Receive(0, TEMP, Wire.VALUE))
            .rank1(new Finish(TEMP, OUT, 1));
    scan.shape = shape(CollectiveKind.EXCLUSIVE_SCAN, false, 0);
    scan.hasFault("rank 0, output[0] is x0[0] (expected: nothing)");
    scan.replace(0, 0, new Send(1, IN)).isRight();
  }

  @Test
  void check_movedToTheWrongPlace_isFound() {
    Slice own = new Slice(OUTPUT, 0, 2);
    Slice other = new Slice(OUTPUT, 2, 2);
    Plans gather =
        new Plans()
            .rank0(new Copy(IN, own), new Send(1, IN), new Receive(1, other, Wire.VALUE))
            .rank1(new Copy(IN, own), new Send(0, IN), new Receive(0, other, Wire.VALUE));
    gather.shape = shape(CollectiveKind.ALL_GATHER, false, 0);
    gather.hasFault("rank 1, output[0] is x1[0] (expected: x0[0])");
  }

  @Test
  void check_reducedInTheDatasType_isFound() {
    widenedAllReduce()
        .replace(0, 0, new Copy(IN, OUT), new ReceiveReduce(1, OUT, Wire.VALUE))
        .hasFault("reduces in the data's type (expected: the accumulation type)");
  }

  @Test
  void check_narrowedWithoutFinish_isFound() {
    widenedAllReduce()
        .replace(0, 1, new Copy(WIDE, OUT), new Send(1, OUT))
        .hasFault("narrows to the data's type (expected: only Finish does)");
  }

  // Peer memory

  @Test
  void check_publishedMoreThanTheWindow_isFound() {
    Plans plans = peerAllReduce();
    plans.shape = shape(CollectiveKind.ALL_REDUCE, false, 3);
    plans.hasFault("publish #0 input[0..2): 4 bytes (expected: at most the window's 3)");
  }

  @Test
  void check_readWithoutAwait_isFound() {
    peerAllReduce()
        .replace(1, 1, new ReadPeer(0, 1, 0, OUT, Wire.VALUE), new Done(1))
        .hasFault("read output[0..2) from 0 #1 at 0: without AwaitPeer before it");
  }

  @Test
  void check_readAfterDone_isFound() {
    peerAllReduce()
        .replace(1, 1, new AwaitPeer(0, 1), new Done(1), new ReadPeer(0, 1, 0, OUT, Wire.VALUE))
        .hasFault("after this rank has done stage 1");
  }

  @Test
  void check_readAfterPublishingTheNextStage_isFound() {
    peerAllReduce()
        .replace(
            0,
            0,
            new Publish(0, IN),
            new AwaitPeer(1, 0),
            new Publish(1, IN),
            new ReadPeer(1, 0, 0, OUT, Wire.VALUE),
            new Done(0))
        .hasFault("after publishing stage 1, which tells the others that this rank is done with");
  }

  @Test
  void check_readBeyondWhatIsPublished_isFound() {
    peerAllReduce()
        .replace(1, 1, new AwaitPeer(0, 1), new ReadPeer(0, 1, 1, OUT, Wire.VALUE), new Done(1))
        .hasFault("at 1: the peer has published 2 elements");
  }

  @Test
  void check_awaitedButNeverPublished_isADeadlock() {
    peerAllReduce()
        .replace(0, 1, new Done(1))
        .hasFault("deadlock: rank 1, round 1, await 0 #1 waits, but rank 0 has ended");
  }

  @Test
  void check_doneMissing_isFound() {
    peerAllReduce()
        .replace(1, 0, new Publish(0, IN))
        .hasFault("rank 1, round 1, done #1: after stage -1 (expected: the next stage)");
    peerAllReduce()
        .replace(1, 1, new AwaitPeer(0, 1), new ReadPeer(0, 1, 0, OUT, Wire.VALUE))
        .hasFault("rank 1 ended after Done of stage 0 (expected: Done of every stage");
  }

  @Test
  void check_publishedTwoStagesAheadOfDone_isADeadlock() {
    Plans plans = peerAllReduce();
    plans.stages = 3;
    plans
        .replace(1, 0, new Publish(0, IN), new Publish(2, IN), new Done(0))
        .rank0(new Done(2))
        .rank1(new Done(2))
        .hasFault("rank 1, round 0, publish #2 input[0..2) waits for all ranks' Done of stage 0");
  }

  @Test
  void check_stagesDiffer_isFound() {
    Plans plans = peerAllReduce();
    plans.secondStages = 1;
    plans.hasFault("rank 1 has 1 stages but rank 0 has 2 (expected: the same on all ranks)");
  }

  @Test
  void check_publishedOutputWritten_isFound() {
    peerAllReduce()
        .replace(0, 1, new Publish(1, OUT), new Done(1), new Copy(TEMP, OUT))
        .hasFault("writes a part of the output that others may read: it was published in stage 1");
  }
}
