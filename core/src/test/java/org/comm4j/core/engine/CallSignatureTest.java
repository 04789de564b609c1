package org.comm4j.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.HostData;
import org.comm4j.api.Partition;
import org.comm4j.api.ReduceOp;
import org.junit.jupiter.api.Test;

class CallSignatureTest {
  /// Also where one differs by so much more as another by so much less.
  @Test
  void digest_ofOtherCalls_isAnother() {
    Set<Long> digests = new HashSet<>();
    int signatures = 0;
    for (long what = 0; what < 40; what++) {
      for (long count = 0; count < 2000; count++) {
        for (long detail = 0; detail < 3; detail++) {
          digests.add(new CallSignature(what, count, detail << 32).digest());
          signatures++;
        }
      }
    }

    assertThat(digests).hasSize(signatures);
  }

  /// What is described alike differs in something that is not shown, which is not what the call has
  /// not.
  @Test
  void difference_describedAlike_namesWhatTheCallHas() {
    CallSignature ofParts = ofParts(1, 1);
    CallSignature ofOthers = ofParts(1, 2);

    assertThat(ofParts.difference(0, 1, 2, ofOthers.what(), ofOthers.count()))
        .isEqualTo(
            "rank 1's collective #2 is allGatherV(INT32) with other counts per rank or another algorithm"
                + " (expected: the same arguments and the same COMM_TUNING on all ranks)"
                + " but rank 0 started allGatherV(INT32)");
  }

  private static CallSignature ofParts(int first, int second) {
    Partition parts = Partition.of(first, second);
    var call =
        new Collective.AllGatherV(
            CommData.of(new int[first]), CommData.of(new int[first + second]), parts);
    return CallSignature.of(call, 0, 2, CallSignature.Purpose.USER);
  }

  /// As one compares what has travelled with the own.
  @Test
  void equals_nameOfTheOperatorHasNotTravelled_isTheSame() {
    CallSignature mine = ofOperator("a");
    var travelled = new CallSignature(mine.what(), mine.count(), mine.detail());

    assertThat(travelled).isEqualTo(mine).hasSameHashCodeAs(mine).isNotEqualTo(ofOperator("b"));
  }

  /// The name of the other one does not travel.
  @Test
  void difference_operatorsOfOtherNames_saysSoAndNamesTheOwn() {
    CallSignature mine = ofOperator("a");
    CallSignature theirs = ofOperator("b");

    assertThat(mine.difference(0, 1, 2, theirs.what(), theirs.count()))
        .isEqualTo(
            "rank 1's collective #2 is allReduce(a user-defined operator, INT32 × 3) with a user-defined"
                + " operator of another name or another algorithm (expected: the same arguments and"
                + " the same COMM_TUNING on all ranks) but rank 0 started allReduce(user-defined 'a',"
                + " INT32 × 3)");
  }

  /// Hash codes of strings are the same for pairs of letters that differ like these.
  @Test
  void detail_operatorsOfSimilarNames_isAnother() {
    List<String> names = List.of("a", "b", "v1", "v2", "merge-v1", "merge-v2", "sumAa", "sumBB");
    assertThat(names.stream().map(name -> ofOperator(name).detail()).distinct())
        .hasSize(names.size());
    assertThat(ofOperator("sumAa")).isEqualTo(ofOperator("sumAa"));
  }

  private static CallSignature ofOperator(String name) {
    HostData data = CommData.of(new int[3]);
    ReduceOp op = ReduceOp.of(name, (_, _, _, _) -> {});
    return CallSignature.of(
        new Collective.AllReduce(data, data, op), 0, 2, CallSignature.Purpose.USER);
  }
}
