package org.comm4j.tck;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/// `docs/contract.md` and the checks are about the same rules.
class ContractTest {
  private static final Pattern RULE = Pattern.compile("(?m)^- \\*\\*([A-Z]\\d+)\\*\\* ");
  private static final Pattern DECLARABLE = Pattern.compile("(?m)^\\| ([A-Z]\\d+) \\|");

  private static String contract() throws IOException {
    return Files.readString(Path.of("..", "docs", "contract.md"));
  }

  private static Set<String> all(Pattern pattern) throws IOException {
    List<String> found =
        pattern.matcher(contract()).results().map((MatchResult each) -> each.group(1)).toList();
    assertThat(found).doesNotHaveDuplicates();
    return new TreeSet<>(found);
  }

  private static Set<String> checked() {
    Set<String> rules = new TreeSet<>();
    LiveCheck.all().forEach(check -> rules.addAll(check.rules()));
    for (Method method : CommunicatorContract.class.getDeclaredMethods()) {
      Rule rule = method.getAnnotation(Rule.class);
      if (rule != null) {
        rules.addAll(Arrays.asList(rule.value()));
      }
    }
    return rules;
  }

  @Test
  void rules_eachOne_hasACheck() throws IOException {
    assertThat(checked()).isEqualTo(all(RULE));
  }

  @Test
  void deviations_closedList_isThatOfTheContract() throws IOException {
    assertThat(all(DECLARABLE)).isEqualTo(new TreeSet<>(LiveVerification.DECLARABLE));
  }

  /// An error that names a rule must be able to stand in the report.
  @Test
  void checks_sources_nameOnlyKnownRules() throws IOException {
    Set<String> known = all(RULE);
    Path sources = Path.of("src", "main", "java", "org", "comm4j", "tck");
    Pattern quoted = Pattern.compile("\"([DTOEPBGAMFXSL]\\d+(?: [DTOEPBGAMFXSL]\\d+)*)\"");
    try (var files = Files.list(sources)) {
      for (Path file : files.toList()) {
        Set<String> named =
            quoted
                .matcher(Files.readString(file))
                .results()
                .flatMap(each -> Arrays.stream(each.group(1).split(" ", -1)))
                .collect(Collectors.toCollection(TreeSet::new));
        assertThat(known).as("%s", file.getFileName()).containsAll(named);
      }
    }
  }

  @Test
  void checks_names_areUnique() {
    assertThat(LiveCheck.all().stream().map(LiveCheck::name)).doesNotHaveDuplicates();
  }
}
