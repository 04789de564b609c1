import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.comm4j.api.LocalGroup;
import org.junit.jupiter.api.Test;

final class HeatRingTest {
  @Test
  void run_copperRingOnOneAndOnTwoRanks_givesTheSame() {
    List<HeatRing.Result> alone = LocalGroup.call(2, HeatRing::run);
    List<HeatRing.Result> shared = LocalGroup.call(3, HeatRing::run);

    assertThat(alone).allSatisfy(ring -> assertThat(ring.heat()).isCloseTo(100, within(1e-9)));
    assertThat(shared.get(0)).isEqualTo(shared.get(2));
    assertThat(shared.getFirst().hottest()).isEqualTo(alone.getFirst().hottest());
    assertThat(shared.getFirst().heat()).isCloseTo(100, within(1e-9));
  }
}
