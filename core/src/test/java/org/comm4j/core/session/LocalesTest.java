package org.comm4j.core.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import org.comm4j.api.CommConfig;
import org.comm4j.api.spi.HostIdentity;
import org.comm4j.api.spi.Session.Member;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What ranks hold against each other, on hosts with different locales: a comma for the point,
/// digits of their own, another small i.
final class LocalesTest {
  private static final CommConfig CONFIG =
      CommConfig.builder()
          .backend("shm")
          .liveness(Duration.ofMillis(12_500))
          .option("COMM_SHM_WINDOW", "1MiB")
          .build();

  private final Locale before = Locale.getDefault();

  @AfterEach
  void restore() {
    Locale.setDefault(before);
  }

  @ParameterizedTest
  @ValueSource(strings = {"de", "tr", "fa", "ar-EG", "bn", "mr"})
  void settings_anotherLocale_isTheSame(String locale) {
    Locale.setDefault(Locale.ROOT);
    String settings = Settings.of(CONFIG);
    HostIdentity host = LocalHost.identity();
    Locale.setDefault(Locale.forLanguageTag(locale));
    assertThat(Settings.of(CONFIG)).isEqualTo(settings);
    assertThat(LocalHost.identity()).isEqualTo(host);
  }

  /// The launchers of several hosts read who is missing out of these words.
  @ParameterizedTest
  @ValueSource(strings = {"de", "fa"})
  void missing_anotherLocale_isTheSame(String locale) {
    Locale.setDefault(Locale.forLanguageTag(locale));
    var roster = new Roster(Optional.of("job"), OptionalInt.empty());
    var member = new Member(0, new HostIdentity("host", "id"), 1, Set.of(), List.of());
    roster.admit(new JoinRequest("1", "job", 0, member, 3, 1000, 1000, ""), _ -> true);
    assertThat(roster.missing(1_500_000_000))
        .startsWith("ranks 1, 2 of 3 did not join within 1.5 s (joined: 0 on host)");
  }
}
