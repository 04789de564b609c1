import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.comm4j.api.CommConfig;
import org.comm4j.api.LocalGroup;
import org.comm4j.api.Reduction;
import org.junit.jupiter.api.Test;

final class DigitsTrainingTest {
  private static final CommConfig ORDERED =
      CommConfig.builder().reduction(Reduction.ORDERED).build();

  @Test
  void train_oneAndThreeRanks_readsDigitsAndAgreesOnTheWeights() {
    List<DigitsTraining.Result> alone = LocalGroup.call(1, ORDERED, DigitsTraining::train);
    List<DigitsTraining.Result> three = LocalGroup.call(3, ORDERED, DigitsTraining::train);

    assertThat(three.stream().distinct()).hasSize(1);
    assertThat(alone.getFirst().accuracy()).isGreaterThan(0.95);
    assertThat(three.getFirst().accuracy()).isGreaterThan(0.95);
  }
}
