package org.comm4j.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import java.lang.reflect.RecordComponent;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.comm4j.api.CommConfig.CheckLevel;
import org.comm4j.api.CommConfig.Setting;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CommConfigTest {
  private static final Map<String, Set<String>> BACKENDS =
      Map.of("local", Set.of(), "shm", Set.of("WINDOW", "DIR"), "my-net", Set.of("PORT"));

  @Test
  void builder_untouched_hasTheDocumentedDefaults() {
    CommConfig config = CommConfig.builder().build();

    assertThat(config.backend()).isEqualTo("auto");
    assertThat(config.rank()).isEmpty();
    assertThat(config.timeout()).isEqualTo(Duration.ofMinutes(5));
    assertThat(config.liveness()).isEqualTo(Duration.ofSeconds(10));
    assertThat(config.joinTimeout()).isEqualTo(Duration.ofSeconds(60));
    assertThat(config.reduction()).isEqualTo(Reduction.FAST);
    assertThat(config.check()).isEqualTo(CheckLevel.BASIC);
    assertThat(config.synchronousSend()).isFalse();
    assertThat(config.launcher()).isEqualTo("none");
    assertThat(config).isEqualTo(CommConfig.fromEnvironment(Map.of()));
  }

  @Test
  void settings_everyComponent_isDescribedOnceWithItsDefault() {
    List<String> components =
        Arrays.stream(CommConfig.class.getRecordComponents())
            .map(RecordComponent::getName)
            .filter(name -> !Set.of("options", "launcher", "launchVariables").contains(name))
            .toList();

    assertThat(CommConfig.settings()).extracting(Setting::name).isEqualTo(components);
    assertThat(CommConfig.settings()).extracting(Setting::variable).doesNotHaveDuplicates();
    assertThat(CommConfig.settings())
        .allSatisfy(setting -> {
          assertThat(setting.variable()).startsWith("COMM_");
          assertThat(setting.doc()).endsWith(".");
          assertThat(setting.reason()).endsWith(".");
          assertThat(setting.unit()).isNotBlank();
          assertThat(setting.range()).isNotBlank();
        });
    CommConfig.Builder builder = CommConfig.builder();
    CommConfig.settings().stream()
        .filter(setting -> !setting.defaultValue().matches("not set|from .*"))
        .forEach(setting -> builder.set(setting.variable(), setting.defaultValue()));
    assertThat(builder.build()).isEqualTo(CommConfig.builder().build());
  }

  @Test
  void fromEnvironment_everySetting_isRead() {
    CommConfig config =
        CommConfig.fromEnvironment(
            Map.ofEntries(
                Map.entry("COMM_BACKEND", "shm"),
                Map.entry("COMM_RANK", "1"),
                Map.entry("COMM_WORLD_SIZE", "4"),
                Map.entry("COMM_LOCAL_RANK", "1"),
                Map.entry("COMM_LOCAL_WORLD_SIZE", "2"),
                Map.entry("COMM_NODE_RANK", "0"),
                Map.entry("COMM_MASTER_ADDR", "host"),
                Map.entry("COMM_MASTER_PORT", "1234"),
                Map.entry("COMM_SESSION", "job-7"),
                Map.entry("COMM_SECRET_FILE", "/run/secret"),
                Map.entry("COMM_TIMEOUT", "30s"),
                Map.entry("COMM_LIVENESS", "500ms"),
                Map.entry("COMM_JOIN_TIMEOUT", "2m"),
                Map.entry("COMM_REDUCTION", "ordered"),
                Map.entry("COMM_CHECK", "FULL"),
                Map.entry("COMM_SYNC_SEND", "1"),
                Map.entry("COMM_TUNING", "tuned.json"),
                Map.entry("COMM_PLUGIN_PATH", "a.jar:b.jar"),
                Map.entry("COMM_SHM_WINDOW", "1GiB"),
                Map.entry("PATH", "/bin")));

    assertThat(config)
        .isEqualTo(
            CommConfig.builder()
                .backend("shm")
                .rank(1)
                .worldSize(4)
                .localRank(1)
                .localWorldSize(2)
                .nodeRank(0)
                .masterAddress("host")
                .masterPort(1234)
                .session("job-7")
                .secretFile(Path.of("/run/secret"))
                .timeout(Duration.ofSeconds(30))
                .liveness(Duration.ofMillis(500))
                .joinTimeout(Duration.ofMinutes(2))
                .reduction(Reduction.ORDERED)
                .check(CheckLevel.FULL)
                .synchronousSend(true)
                .tuning(Path.of("tuned.json"))
                .pluginPath("a.jar:b.jar")
                .option("COMM_SHM_WINDOW", "1GiB")
                .launcher(
                    "comm4j",
                    List.of(
                        "COMM_WORLD_SIZE",
                        "COMM_RANK",
                        "COMM_LOCAL_WORLD_SIZE",
                        "COMM_LOCAL_RANK",
                        "COMM_NODE_RANK"))
                .build());
    assertThat(config.toBuilder().build()).isEqualTo(config);
  }

  @Test
  void builder_null_namesTheSetting() {
    CommConfig.Builder builder = CommConfig.builder();
    assertThatNullPointerException().isThrownBy(() -> builder.backend(null)).withMessage("backend");
    assertThatNullPointerException().isThrownBy(() -> builder.secret(null)).withMessage("secret");
    assertThatNullPointerException().isThrownBy(() -> builder.timeout(null)).withMessage("timeout");
    assertThatNullPointerException().isThrownBy(() -> builder.check(null)).withMessage("check");
  }

  @Test
  void toBuilder_changedTimeout_keepsTheRest() {
    CommConfig config = CommConfig.builder().rank(1).worldSize(2).build();

    CommConfig changed = config.toBuilder().timeout(Duration.ofSeconds(1)).build();

    assertThat(changed.rank()).hasValue(1);
    assertThat(changed.timeout()).isEqualTo(Duration.ofSeconds(1));
    assertThat(config.timeout()).isEqualTo(Duration.ofMinutes(5));
    assertThat(config.launcher()).isEqualTo("program");
  }

  @ParameterizedTest
  @CsvSource({
    "500ms, PT0.5S",
    "30s, PT30S",
    "5min, PT5M",
    "2m, PT2M",
    "1h, PT1H",
    "PT1M30S, PT1M30S"
  })
  void timeout_acceptedForms_areRead(String text, Duration expected) {
    Duration timeout = CommConfig.builder().set("COMM_TIMEOUT", text).build().timeout();

    assertThat(timeout).isEqualTo(expected);
    assertThat(Values.duration("text", Values.text(timeout))).isEqualTo(expected);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        " ",
        "30",
        "-1s",
        "0s",
        "0ms",
        "PT0S",
        "-PT5S",
        "1.5s",
        "5 min",
        "soon",
        "PT",
        "30S",
        "NaN",
        "999999999999999999h",
        "99000000min",
        "P99999D",
        "99999999999999999999s"
      })
  void timeout_nonsense_isRefusedWithVariableAndRemedy(String text) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> CommConfig.fromEnvironment(Map.of("COMM_TIMEOUT", text)))
        .withMessageContaining("COMM_TIMEOUT: ")
        .withMessageContaining("expected: ");
  }

  @Test
  void timeout_withoutUnit_suggestsOne() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> CommConfig.fromEnvironment(Map.of("COMM_TIMEOUT", "30")))
        .withMessageContaining("'30'")
        .withMessageEndingWith("add a unit, for example 30s");
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "00", "99999999999999999999"})
  void timeout_withoutUnitAndNoTimeWithOne_suggestsNone(String text) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> CommConfig.fromEnvironment(Map.of("COMM_TIMEOUT", text)))
        .withMessageContaining("'" + text + "' (expected: a positive time")
        .withMessageNotContaining("unit");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "COMM_BACKEND | SHM | auto or a backend's name",
        "COMM_BACKEND | ../x | auto or a backend's name",
        "COMM_REDUCTION | quick | fast or ordered",
        "COMM_CHECK | 1 | basic or full",
        "COMM_SYNC_SEND | yes | 1 or true, 0 or false",
        "COMM_SESSION | a b | characters without spaces",
        "COMM_SHM_WINDOW | '' | a value",
        "COMM_PLUGIN_PATH | '' | a value",
        "COMM_TUNING | '' | a value",
        "COMM_SECRET | '' | a value",
        "COMM_SECRET_FILE | '' | a value",
      })
  void setting_nonsense_isRefusedWithVariableAndExpectation(
      String variable, String text, String expected) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> CommConfig.fromEnvironment(Map.of(variable, text)))
        .withMessageContaining(variable + ": '" + text + "'")
        .withMessageContaining("expected: ")
        .withMessageContaining(expected);
  }

  @ParameterizedTest
  @ValueSource(strings = {"1ms", "99ms", "PT0.001000001S"})
  void liveness_shorterThanPauses_isRefused(String text) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> CommConfig.builder().set("COMM_LIVENESS", text))
        .withMessageContaining("COMM_LIVENESS: " + text)
        .withMessageContaining("expected: 100ms or more")
        .withMessageContaining("although it lives");
    assertRefused(
        CommConfig.builder().liveness(Duration.parse("PT0.099S")), "liveness: 99ms", "100ms");
  }

  @Test
  void liveness_shortOrLongerThanTheTimeout_isTaken() {
    assertThat(CommConfig.builder().set("COMM_LIVENESS", "100ms").build().liveness())
        .isEqualTo(Duration.ofMillis(100));
    var patient = CommConfig.builder().timeout(Duration.ofSeconds(1)).build();
    assertThat(patient.liveness()).isGreaterThan(patient.timeout());
  }

  @Test
  void record_inconsistent_isRefused() {
    assertRefused(CommConfig.builder().rank(0), "rank: 0 without worldSize", "give");
    assertRefused(CommConfig.builder().worldSize(2), "worldSize: 2 without rank", "give");
    assertRefused(CommConfig.builder().rank(2).worldSize(2), "rank: '2'", "0..1");
    assertRefused(CommConfig.builder().rank(-1).worldSize(2), "rank: '-1'", "0..1");
    assertRefused(CommConfig.builder().rank(0).worldSize(0), "worldSize: '0'", "1 or more");
    assertRefused(CommConfig.builder().localRank(0), "localRank: 0", "rank and worldSize");
    CommConfig.Builder pair = CommConfig.builder().rank(0).worldSize(2);
    assertRefused(pair.localWorldSize(3), "localWorldSize: '3'", "1..2");
    assertRefused(pair.localWorldSize(1).localRank(1), "localRank: '1'", "0..0");
    assertRefused(CommConfig.builder().masterPort(0), "masterPort: '0'", "1..65535");
    assertRefused(CommConfig.builder().masterPort(65_536), "masterPort: '65536'", "1..65535");
    assertRefused(CommConfig.builder().masterAddress("h:1"), "h:1", "COMM_MASTER_PORT");
    assertRefused(CommConfig.builder().masterAddress("http://h"), "http://h", "host name");
    assertRefused(CommConfig.builder().timeout(Duration.ZERO), "timeout: 0s", "positive");
    assertRefused(CommConfig.builder().liveness(Duration.ofNanos(-1)), "liveness: ", "positive");
    assertRefused(
        CommConfig.builder().joinTimeout(Duration.ofSeconds(Long.MAX_VALUE)),
        "joinTimeout",
        "days");
    assertRefused(CommConfig.builder().option("COMM_TIMEOUT", "1s"), "COMM_TIMEOUT", "timeout");
    assertRefused(CommConfig.builder().option("SHM_WINDOW", "1"), "SHM_WINDOW", "COMM_<BACKEND>");
  }

  private static void assertRefused(CommConfig.Builder builder, String value, String expected) {
    assertThatIllegalArgumentException()
        .isThrownBy(builder::build)
        .withMessageContaining(value)
        .withMessageContaining("expected: ")
        .withMessageContaining(expected);
  }

  @Test
  void masterPort_notGiven_isTheUsualOneWhereThereIsAnAddress() {
    CommConfig.Builder builder = CommConfig.builder();
    assertThat(builder.build().masterPort()).isEmpty();
    assertThat(builder.masterAddress("host").build().masterPort()).hasValue(29500);
    assertThat(builder.masterPort(1234).build().masterPort()).hasValue(1234);
  }

  @Test
  void masterAddress_ipv6_isAHost() {
    assertThat(CommConfig.builder().masterAddress("fe80::1%eth0").build().masterAddress())
        .contains("fe80::1%eth0");
  }

  @Test
  void shown_nameOfASecret_isNotTheValue() {
    assertThat(CommConfig.shown("COMM_SHM_TOKEN", "hunter2")).isEqualTo("(not shown)");
    assertThat(CommConfig.shown("my_password_old", "hunter2")).isEqualTo("(not shown)");
    assertThat(CommConfig.shown("COMM_SECRT", "hunter2")).isEqualTo("(not shown)");
    assertThat(CommConfig.shown("COMM_SERCET_FILE", "hunter2")).isEqualTo("(not shown)");
    assertThat(CommConfig.shown("COMM_SHM_DIR", "/x")).isEqualTo("/x");
    assertThat(CommConfig.shown("SECRT", "/x")).isEqualTo("/x");
  }

  @Test
  void secret_given_neverShows() {
    CommConfig config =
        CommConfig.fromEnvironment(
            Map.of("COMM_SECRET", "hunter2", "COMM_SHM_TOKEN", "hunter3", "COMM_SHM_DIR", "/x"));

    assertThat(config.secret()).contains(Secret.of("hunter2"));
    assertThat(config.secret().orElseThrow().bytes()).asString().isEqualTo("hunter2");
    assertThat(config.toString())
        .doesNotContain("hunter")
        .contains("COMM_SHM_DIR=/x", "secret=(not shown)");
    assertThat(config.secret().toString()).doesNotContain("hunter");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> config.checkOptions(BACKENDS, ""))
        .withMessageContaining("COMM_SHM_TOKEN")
        .withMessageNotContaining("hunter");
  }

  @Test
  void secret_bytesOverwritten_staysAsItWas() {
    byte[] bytes = {1, 2, 3};
    Secret secret = Secret.of(bytes);

    Arrays.fill(bytes, (byte) 0);
    Arrays.fill(secret.bytes(), (byte) 0);

    assertThat(secret.bytes()).containsExactly(1, 2, 3);
    assertThat(secret).isNotEqualTo(Secret.of(bytes)).isEqualTo(Secret.of(new byte[] {1, 2, 3}));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Secret.of(""))
        .withMessageContaining("expected: at least one byte");
  }

  @Test
  void secret_besideItsFile_isRefusedWithoutShowingIt() {
    assertThatIllegalArgumentException()
        .isThrownBy(() ->
            CommConfig.fromEnvironment(
                Map.of("COMM_SECRET", "hunter2", "COMM_SECRET_FILE", "/run/s")))
        .withMessageContaining("COMM_SECRET_FILE: '/run/s'")
        .withMessageContaining("unset COMM_SECRET")
        .withMessageNotContaining("hunter2");
    assertRefused(
        CommConfig.builder().secret(Secret.of("x")).secretFile(Path.of("f")),
        "secretFile: f",
        "one of them");
  }

  @Test
  void checkOptions_known_areAccepted() {
    CommConfig config =
        CommConfig.fromEnvironment(Map.of("COMM_SHM_WINDOW", "1GiB", "COMM_MY_NET_PORT", "9"));

    assertThat(config.options()).containsOnlyKeys("COMM_SHM_WINDOW", "COMM_MY_NET_PORT");
    assertThatCode(() -> config.checkOptions(BACKENDS, "")).doesNotThrowAnyException();
  }

  @ParameterizedTest
  @CsvSource({
    "COMM_TIMOUT, COMM_TIMEOUT",
    "COMM_RANKS, COMM_RANK",
    "COMM_SHM_WINDOWS, COMM_SHM_WINDOW",
    "COMM_SHN_WINDOW, COMM_SHM_WINDOW",
    "COMM_MY_NET_PORTS, COMM_MY_NET_PORT",
    "COMM_SESSION_PORT, COMM_SESSION_PORTS",
    "COMM_SESSION_INSECUR, COMM_SESSION_INSECURE"
  })
  void checkOptions_misspelt_suggestsTheNearest(String variable, String meant) {
    CommConfig config = CommConfig.fromEnvironment(Map.of(variable, "7"));

    assertThatIllegalArgumentException()
        .isThrownBy(() -> config.checkOptions(BACKENDS, ""))
        .withMessageStartingWith(variable + ": '7' (expected: ")
        .withMessageEndingWith("did you mean " + meant + "?");
  }

  @Test
  void checkOptions_ofNoBackend_namesTheBackends() {
    CommConfig config = CommConfig.builder().option("COMM_TELEGRAPH_WIRE", "2").build();

    assertThatIllegalArgumentException()
        .isThrownBy(() -> config.checkOptions(BACKENDS, ""))
        .withMessageContaining("local, my-net, shm")
        .withMessageContaining("class path");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> config.checkOptions(Map.of(), ""))
        .withMessageContaining("none");
  }
}
