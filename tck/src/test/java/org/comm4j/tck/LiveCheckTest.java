package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.comm4j.api.Capabilities;
import org.comm4j.api.Capability;
import org.comm4j.api.CommConfig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Why checks of a live launch are not run.
class LiveCheckTest {
  private static final Capabilities ALL =
      new Capabilities(EnumSet.allOf(Capability.class), Map.of());

  static Stream<LiveCheck> checksWithASetting() {
    return LiveCheck.all().stream().filter(check -> check.needs().setting() != Needs.Setting.ANY);
  }

  /// What the report says can be put before the command, and then the check is run.
  @ParameterizedTest
  @MethodSource("checksWithASetting")
  void notRun_otherSetting_namesTheVariableToSet(LiveCheck check) {
    CommConfig usual = CommConfig.builder().timeout(Duration.ofMinutes(1)).build();
    Optional<String> reason = check.notRun(ALL, 16, 1, usual, true);
    assertThat(reason).isPresent();
    var setting = Pattern.compile("it needs another setting: (COMM_\\w+)=(\\w+)( or less)?");
    var named = setting.matcher(reason.orElseThrow());
    assertThat(named.matches()).as(reason.orElseThrow()).isTrue();
    CommConfig set = usual.toBuilder().set(named.group(1), named.group(2)).build();
    assertThat(check.notRun(ALL, 16, 1, set, true)).isEmpty();
  }

  /// A check that did nothing would be one that has passed.
  @Test
  void notRun_needsOneHost_saysSo() {
    CommConfig config = CommConfig.builder().timeout(Duration.ofSeconds(2)).build();
    List<LiveCheck> checks =
        LiveCheck.all().stream().filter(check -> check.needs().oneHost()).toList();
    assertThat(checks).isNotEmpty();
    for (LiveCheck check : checks) {
      assertThat(check.notRun(ALL, 16, 2, config, true)).hasValue("it needs all ranks on one host");
      assertThat(check.notRun(ALL, 16, 1, config, true)).isEmpty();
    }
  }
}
